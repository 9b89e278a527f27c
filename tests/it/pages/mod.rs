//! Rules for pages: links lead to existing files and headings, the index names all pages, and
//! pages are short.

mod guides;
mod monitoring;
mod translation;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use regex::Regex;

use crate::tidy::report;
use crate::util::sources::{Source, pages, root, texts};

/// Maximum number of words of some pages. README.md is for readers who have one minute.
const WORDS_MAX: [(&str, usize); 4] = [
    ("README.md", 1_100),
    ("CONTRIBUTING.md", 800),
    ("SECURITY.md", 1_200),
    ("ARCHITECTURE.md", 2_500),
];
/// Maximum number of words of any other page.
const OTHER_WORDS_MAX: usize = 1_800;

#[test]
fn every_local_link_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let anchors: BTreeMap<_, _> =
        pages.iter().map(|page| (page.path.clone(), anchors(&page.text))).collect();
    report(pages.iter().flat_map(|page| link_problems(page, &anchors)));
}

#[test]
fn the_index_names_every_page_of_docs() {
    let pages = pages();
    let index = pages.iter().find(|page| page.path == "docs/README.md").expect("an index");
    let named: BTreeSet<_> =
        links(&index.text).iter().map(|link| target(&index.path, link).0).collect();
    let docs =
        pages.iter().filter(|page| page.path.starts_with("docs/") && page.path != index.path);
    let lacking = docs.filter(|page| !named.contains(&page.path));
    report(lacking.map(|page| format!("docs/README.md: lacks a link to {}", page.path)));
}

#[test]
fn sources_name_only_existing_pages() {
    let name = Regex::new(r"\bdocs/[\w./-]*\w\.(?:md|jsonl|json|svg)\b").unwrap();
    report(texts().iter().flat_map(|source| {
        let named: BTreeSet<_> = name.find_iter(&source.text).map(|found| found.as_str()).collect();
        let missing = named.into_iter().filter(|path| !root().join(path).is_file());
        missing.map(|path| format!("{}: names {path}, which is not there", source.path))
    }));
}

#[test]
fn pages_are_short() {
    report(pages().iter().filter_map(length_problem));
}

fn length_problem(page: &Source) -> Option<String> {
    let own = WORDS_MAX.into_iter().find(|(path, _)| *path == page.path);
    let limit = own.map_or(OTHER_WORDS_MAX, |(_, limit)| limit);
    let words = page.text.split_whitespace().count();
    let problem = || format!("{}: {words} words, {limit} are allowed", page.path);
    (words > limit).then(problem)
}

fn link_problems(page: &Source, anchors: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut problems = Vec::new();
    for link in links(&page.text) {
        let (path, anchor) = target(&page.path, &link);
        if !root().join(&path).exists() {
            problems.push(format!("{}: ({link}) leads to no file", page.path));
        } else if let (Some(anchor), Some(known)) = (anchor, anchors.get(&path))
            && !known.contains(&anchor)
        {
            problems.push(format!("{}: ({link}) leads to no heading of {path}", page.path));
        }
    }
    problems
}

/// Returns the target file of a link on a page, relative to the repository, and the anchor in it.
fn target(page: &str, link: &str) -> (String, Option<String>) {
    let (file, anchor) = match link.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor.to_owned())),
        None => (link, None),
    };
    if file.is_empty() {
        return (page.to_owned(), anchor);
    }
    let mut path = PathBuf::new();
    for part in Path::new(page).with_file_name(file).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            part => path.push(part),
        }
    }
    (path.to_string_lossy().into_owned(), anchor)
}

/// Returns the links of a page that lead to files of the project.
fn links(page: &str) -> Vec<String> {
    let link = Regex::new(r"\]\(([^()\s]+)\)").unwrap();
    let is_local = |link: &str| !link.contains("://") && !link.starts_with("mailto:");
    let prose = without_spans(&without_blocks(page));
    let found = link.captures_iter(&prose).map(|found| found[1].to_owned());
    found.filter(|link| is_local(link)).collect()
}

/// Returns the anchors that GitHub gives the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let link = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let mut known = BTreeSet::new();
    for line in without_blocks(page).lines() {
        let text = line.trim_start_matches('#');
        if text.len() == line.len() || !text.starts_with(' ') {
            continue;
        }
        let text = link.replace_all(text.trim(), "$1").to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(again).find(|name| !known.contains(name));
        known.extend(free);
    }
    known
}

/// Returns the page without its blocks of code, fenced and indented.
fn without_blocks(page: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in page.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}

/// Returns the text without code in backquotes, which may look like a link.
fn without_spans(prose: &str) -> String {
    let span = Regex::new("(?s)``.+?``|`[^`]+`").unwrap();
    span.replace_all(prose, "").into_owned()
}

#[test]
fn anchors_are_the_same_as_on_github() {
    let page = "# Two words\n## `run`: a *b*, c\n### [x](y.md) é_1-2\n## Two words\n#no\n\
                ```\n# code\n```\n    # code\n";
    let expected = ["two-words", "run-a-b-c", "x-é_1-2", "two-words-1"];
    assert_eq!(anchors(page), expected.map(str::to_owned).into());
}

#[test]
fn links_are_found_outside_of_code() {
    let page = "[a](b.md) ![c](d.svg) `[e](f.md)` [g](https://h) [`i`](j.md#k)\n    [l](m.md)\n\
                ```\n[n](o.md)\n```\n[p](#q)\n";
    assert_eq!(links(page), ["b.md", "d.svg", "j.md#k", "#q"]);
}

#[test]
fn each_broken_link_is_found() {
    let page = |text: &str| Source { path: "docs/README.md".to_owned(), text: text.to_owned() };
    let of_readme = anchors("# urlseen\n");
    let known = BTreeMap::from([("README.md".to_owned(), of_readme)]);
    for (text, problems) in [
        ("[a](../README.md) [b](../README.md#urlseen) [c](../src) [d](benchmarks.md)", 0),
        ("[a](../README.md#absent)", 1),
        ("[a](absent.md) [b](../absent.md#urlseen)", 2),
    ] {
        assert_eq!(link_problems(&page(text), &known).len(), problems, "{text}");
    }
}

#[test]
fn a_long_page_is_found() {
    let page = |path: &str, words| Source { path: path.to_owned(), text: "word ".repeat(words) };
    for (path, limit) in WORDS_MAX.into_iter().chain([("a.md", OTHER_WORDS_MAX)]) {
        assert_eq!(length_problem(&page(path, limit)), None);
        assert!(length_problem(&page(path, limit + 1)).is_some(), "{path}");
    }
}
