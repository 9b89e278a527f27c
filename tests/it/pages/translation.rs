//! README.zh-CN.md is README.md in Chinese: both have the same commands, numbers and links.

use regex::Regex;

use crate::tidy::report;
use crate::util::sources::pages;

#[test]
fn the_chinese_readme_has_the_commands_numbers_and_links_of_the_english_one() {
    let pages = pages();
    let text = |path| &pages.iter().find(|page| page.path == path).expect(path).text;
    report(differences(text("README.md"), text("README.zh-CN.md")).into_iter());
}

/// Returns what is different in blocks of code, rows of tables, and links. The first link leads to
/// the other page.
fn differences(english: &str, chinese: &str) -> Vec<String> {
    let parts = |page| [blocks(page), rows(page), links(page).split_off(1)];
    let names = ["block of code", "row of a table", "link"];
    let mut problems = Vec::new();
    for ((name, one), other) in names.into_iter().zip(parts(english)).zip(parts(chinese)) {
        if one.len() != other.len() {
            problems.push(format!("{} and {} of the kind: {name}", one.len(), other.len()));
        }
        let different = one.into_iter().zip(other).filter(|(one, other)| one != other);
        problems.extend(different.map(|(one, other)| format!("{name}: {one} is not {other}")));
    }
    problems
}

fn blocks(page: &str) -> Vec<String> {
    let block = Regex::new("(?ms)^```.*?^```$").unwrap();
    block.find_iter(page).map(|found| found.as_str().to_owned()).collect()
}

/// Returns the commands, links and numbers of each row, in the order of the alphabet, because the
/// languages have them in another order.
fn rows(page: &str) -> Vec<String> {
    let fact = Regex::new(r"`[^`]*`|\]\([^)]*\)|\d[\d.,]*\d|\d").unwrap();
    let facts = |row| {
        let mut facts: Vec<_> = fact.find_iter(row).map(|found| found.as_str()).collect();
        facts.sort_unstable();
        facts.join(" ")
    };
    page.lines().filter(|line| line.starts_with('|')).map(facts).collect()
}

fn links(page: &str) -> Vec<String> {
    let link = Regex::new(r"\]\(([^)]*)\)").unwrap();
    link.captures_iter(page).map(|found| found[1].to_owned()).collect()
}

#[test]
fn each_difference_of_a_translation_is_found() {
    let english = "[zh](b.md)\n| a 1,000 `x y` | [b](c.md) |\n```sh\nls\n```\n[d](e.md)\n";
    let chinese = english.replace("zh](b", "en](a").replace("a 1,000 `x y`", "`x y` 1,000");
    assert_eq!(differences(english, &chinese), [""; 0]);
    for (right, wrong) in [
        ("1,000", "1,001"),
        ("x y", "x z"),
        ("ls", "ll"),
        ("```sh", "```sh by-hand"),
        ("e.md", "f.md"),
        ("| a", "\n| b |\n| a"),
    ] {
        let changed = english.replace(right, wrong).replacen("b.md", "a.md", 1);
        assert!(!differences(english, &changed).is_empty(), "{wrong}");
    }
}
