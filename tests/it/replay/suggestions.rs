//! Rules that `urlseen replay --suggest` finds in the links of a crawl.

use std::fmt::Write as _;

use serde_json::Value;
use tempfile::TempDir;

use super::Replayed;
use crate::util::binary::urlseen;
use crate::util::links::discovered;

/// Number of different pages behind [`links`].
const PAGES: usize = 300 + 6 * 40 + 200 + 30 + 1;

/// Makes the links of a shop: pages, lists with page numbers, articles with ids, and index pages,
/// all with a session id, and some with `www.` or a tracking parameter. A search page combines
/// three parameters.
fn links() -> String {
    let (mut links, mut random) = (String::new(), fastrand::Rng::with_seed(1));
    for round in 0..4 {
        let mut link = |path: &str| {
            let www = if random.bool() { "www." } else { "" };
            let mark = if path.contains('?') { '&' } else { '?' };
            let sid = random.u64(..);
            let more = if random.u8(..4) == 0 { "&utm_source=mail" } else { "" };
            writeln!(links, "https://{www}shop.example{path}{mark}sid={sid:016x}{more}").unwrap();
        };
        (0..300).for_each(|number| link(&format!("/p/{number}")));
        for list in ["a", "b", "c", "d", "e", "f"] {
            (1..=40).for_each(|page| link(&format!("/list/{list}?page={page}")));
        }
        (0..200).for_each(|id| link(&format!("/article?id={id}")));
        let index = if round % 2 == 0 { "" } else { "index.html" };
        (0..30).for_each(|number| link(&format!("/dir/{number}/{index}")));
    }
    let letter = |number: usize| char::from(b'a' + u8::try_from(number % 8).unwrap());
    for number in 0..512 {
        let [color, size, sort] = [number, number / 8, number / 64].map(letter);
        let query = format!("color={color}&size={size}&sort[]={sort}&sid={number:016x}");
        writeln!(links, "https://shop.example/search?{query}").unwrap();
    }
    links
}

#[test]
fn suggested_rules_can_be_pasted_and_merge_what_is_the_same_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let links = links();
    let replay = |arguments: &[&str]| {
        urlseen(arguments.iter().copied()).dir(folder.path()).stdin(&*links).output()
    };
    let found = replay(&["replay", "--suggest", "-"]);
    assert_eq!(found.code(), Some(0), "{found:?}");
    let (_, rules) = found.text().split_once("\n# ").unwrap();
    assert_eq!(
        rules.split_once('\n').unwrap().1,
        r#"
[[same]]
host = '^(www\.)?shop\.example$'
drop_params = ["sid"]
fold = ["index", "www"]

[[same]]
host = '^(www\.)?shop\.example$'
path = '^/search$'
drop_params = ["color", "size", "sort[]"]

[fingerprint]
drop_tracking = "2026-11"
"#
    );
    let without = Replayed::of(&replay(&["replay", "--json", "-"]));
    std::fs::write(folder.path().join("config.toml"), format!("# {rules}")).unwrap();
    let with = Replayed::of(&replay(&["replay", "--json", "-"]));
    assert!(without.count("new") > 3 * PAGES, "{}", without.report);
    assert_eq!(with.count("new"), PAGES);
    let json = replay(&["replay", "--suggest", "--json", "-"]);
    let found: Value = serde_json::from_str(json.text()).unwrap();
    let expected =
        serde_json::json!({ "links": links.lines().count(), "urls": PAGES, "rules": [] });
    assert_eq!(found, expected, "with these rules, nothing is left to suggest");
}

/// All links of this crawl lead to different pages.
#[test]
fn nothing_is_suggested_for_a_site_without_duplicates() {
    let run = urlseen(["replay", "--suggest", "-"]).stdin(&*discovered());
    let found = run.output();
    assert!(found.text().ends_with("no rule would save many requests\n"), "{found:?}");
}

/// A calendar grows until the last link. Products, lists and tickets do not, or count nothing.
#[test]
fn a_limit_is_suggested_for_pages_without_an_end() {
    let folder = TempDir::new().unwrap();
    let mut links = String::new();
    for number in 0..4000 {
        let (day, ticket) = (number / 4, number * number * 37);
        let (year, month) = (2000 + day / 12, day % 12 + 1);
        writeln!(links, "http://a.x/product/{}\nhttp://a.x/ticket/{ticket}", number % 300).unwrap();
        if number % 4 == 0 {
            let page = day + 1;
            writeln!(links, "http://a.x/calendar/{year}/{month:02}").unwrap();
            writeln!(links, "http://a.x/list?page={page}").unwrap();
        }
    }
    let replay = |arguments: &[&str]| {
        urlseen(arguments.iter().copied()).dir(folder.path()).stdin(&*links).output()
    };
    let found = replay(&["replay", "--suggest", "-"]);
    let (_, rules) = found.text().split_once("\n# ").unwrap();
    let star = "[0-9A-Fa-f._:-]+";
    assert_eq!(
        rules.split_once('\n').unwrap().1,
        format!(
            r#"
[[limit]]
name = "a.x/calendar/*/*"
host = '^(www\.)?a\.x$'
path = '^/calendar/{star}/{star}$'
by = "pattern"
max = 100

[[limit]]
name = "a.x/list?page"
host = '^(www\.)?a\.x$'
path = '^/list$'
by = "parameter"
parameter = "page"
max = 100
"#
        )
    );
    std::fs::write(folder.path().join("config.toml"), format!("# {rules}")).unwrap();
    let replayed = Replayed::of(&replay(&["replay", "--json", "-"]));
    // 100 months, 100 pages of the list, all products and all tickets.
    assert_eq!(replayed.count("new"), 100 + 100 + 300 + 4000);
    assert_eq!(replayed.count("over_limit"), 900 + 900);
    let by_rule = replayed.report["over_limit_by_rule"].as_array().unwrap();
    let shown = by_rule.iter().map(|rule| rule["examples"].as_array().unwrap().len());
    assert_eq!(shown.collect::<Vec<_>>(), [10, 10]);
}
