//! Test of the imports between rooms, the top-level modules of a crate: they go in one direction.
//! The compiler checks the imports between crates.

use std::collections::BTreeSet;

use regex::Regex;

use crate::tidy::report;
use crate::util::sources::rust_files;

/// Folder of each crate with rooms, and its rooms. A room may name only rooms before it.
const ROOMS: &[(&str, &[&str])] = &[
    ("crates/engine/src/", &["item", "engine", "flow"]),
    ("src/", &["config", "analysis", "report", "pipeline", "serve", "route", "admin", "cli"]),
];

#[test]
fn rooms_name_only_rooms_before_them() {
    let files = rust_files();
    let found = files.iter().flat_map(|file| {
        let rooms = ROOMS.iter().find_map(|(folder, rooms)| {
            let inside = file.path.strip_prefix(folder)?;
            (inside != "lib.rs" && inside != "main.rs").then_some((inside, *rooms))
        });
        rooms.map(|(inside, rooms)| problems(inside, &file.text, rooms)).unwrap_or_default()
    });
    report(found);
}

/// Returns the names of later or unknown rooms in a file of a crate.
fn problems(inside: &str, text: &str, rooms: &[&str]) -> Vec<String> {
    let own = inside.split(['/', '.']).next().unwrap_or_default();
    let Some(at) = rooms.iter().position(|room| *room == own) else {
        return vec![format!("{inside}: tests/it/imports.rs lacks the room {own}")];
    };
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    // One name, or the first names in braces.
    let paths = Regex::new(r"\bcrate::(?:(\w+|\*)|\{([^;]*?)\};)").expect("a valid expression");
    let inner = Regex::new(r"\{[^{}]*\}").expect("a valid expression");
    let mut named = BTreeSet::new();
    for path in paths.captures_iter(&code) {
        if let Some(name) = path.get(1) {
            named.insert(name.as_str().to_owned());
        } else {
            let mut group = path[2].to_owned();
            while inner.is_match(&group) {
                group = inner.replace_all(&group, "").into_owned();
            }
            let first = |part: &str| part.trim().split("::").next().unwrap_or_default().to_owned();
            named.extend(group.split(',').map(first).filter(|name| !name.is_empty()));
        }
    }
    let later = named.iter().filter(|name| !rooms[..=at].contains(&name.as_str()));
    later.map(|name| format!("{inside}: {own} may not name {name}")).collect()
}

#[test]
fn a_later_room_is_found_in_any_spelling() {
    for (inside, text, wrong) in [
        ("low/part.rs", "use crate::low::a;\n// crate::high::b", None),
        ("high.rs", "use crate::{low::{self, x}, high};", None),
        ("low.rs", "fn a() { crate::high::f() }", Some("low.rs: low may not name high")),
        (
            "low.rs",
            "use crate::{\n    low::x,\n    high::y,\n};",
            Some("low.rs: low may not name high"),
        ),
        ("new.rs", "", Some("new.rs: tests/it/imports.rs lacks the room new")),
    ] {
        let found = problems(inside, text, &["low", "high"]);
        assert_eq!(found.first().map(String::as_str), wrong, "{text}");
    }
}
