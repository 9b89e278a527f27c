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
path = "^/search$"
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

/// Each page of this shop has the same path.
#[test]
fn session_ids_are_found_on_a_site_with_one_path() {
    let folder = TempDir::new().unwrap();
    let (mut links, mut random) = (String::new(), fastrand::Rng::with_seed(1));
    for _ in 0..4000 {
        let (id, session) = (random.usize(..300), random.u128(..));
        let route = ["product/product", "product/category", "information"][id % 3];
        let query = format!("route={route}&id={id}&PHPSESSID={session:032x}");
        writeln!(links, "http://shop.example/index.php?{query}").unwrap();
    }
    let replay = |arguments: &[&str]| {
        urlseen(arguments.iter().copied()).dir(folder.path()).stdin(&*links).output()
    };
    let found = replay(&["replay", "--suggest", "-"]);
    let rule = "[[same]]\nhost = '^(www\\.)?shop\\.example$'\ndrop_sessions = \"2026-12\"\n";
    assert!(found.text().ends_with(rule), "{found:?}");
    std::fs::write(folder.path().join("config.toml"), rule).unwrap();
    assert_eq!(Replayed::of(&replay(&["replay", "--json", "-"])).count("new"), 300);
}

/// All links of this crawl lead to different pages.
#[test]
fn nothing_is_suggested_for_a_site_without_duplicates() {
    let run = urlseen(["replay", "--suggest", "-"]).stdin(&*discovered());
    let found = run.output();
    assert!(found.text().ends_with("no rule would save many requests\n"), "{found:?}");
}
