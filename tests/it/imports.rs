//! Test of the imports between rooms: each room may import only the rooms that a table permits.
//!
//! A room is a top-level module of a crate. The compiler checks imports between crates. This test
//! checks imports between rooms.

use std::path::{Component, Path};

use crate::tidy::report;
use crate::util::sources::rust_files;

/// Room, and the rooms that its code may name.
type Rule = (&'static str, &'static [&'static str]);

/// Crates, each with its name in Rust, its name in the rules and its folder.
const CRATES: &[(&str, &str, &str)] = &[
    ("urlseen_core", "core", "crates/urlseen-core/src/"),
    ("urlseen_engine", "engine", "crates/urlseen-engine/src/"),
    ("urlseen_analysis", "analysis", "crates/urlseen-analysis/src/"),
    ("urlseen", "library", "crates/urlseen/src/"),
    ("urlseen_cli", "cli", "src/"),
];

/// Crates without public modules. Each of them is one room.
const FLAT: &[&str] = &["library", "analysis"];

/// Rules. A room may name only the rooms in its row, and these must be above it in this list. So
/// there is no cycle.
///
/// A room without a row fails the test: give it a row first.
const MAY_USE: &[Rule] = &[
    // These rooms use no files, no network, no clock and no threads.
    ("core::fingerprint", &[]),
    ("core::filter", &["core::fingerprint"]),
    ("core::limit", &["core::fingerprint", "core::filter"]),
    // These rooms use files, with blocking calls.
    ("core::storage", &["core::fingerprint", "core::filter", "core::limit"]),
    // These rooms have scripts, and use the network with async calls.
    ("core::redis", &["core::fingerprint", "core::filter", "core::storage"]),
    ("core::redis_filter", &["core::fingerprint", "core::filter", "core::redis"]),
    // This room is for programs, with blocking and async calls.
    (
        "library",
        &[
            "core::fingerprint",
            "core::filter",
            "core::limit",
            "core::storage",
            "core::redis",
            "core::redis_filter",
        ],
    ),
    // These rooms are the inside of the daemon.
    (
        "engine::config",
        &[
            "core::fingerprint",
            "core::filter",
            "core::limit",
            "core::storage",
            "core::redis",
            "core::redis_filter",
        ],
    ),
    (
        "engine::item",
        &[
            "core::fingerprint",
            "core::filter",
            "core::limit",
            "core::storage",
            "core::redis",
            "engine::config",
        ],
    ),
    (
        "engine::engine",
        &[
            "core::fingerprint",
            "core::filter",
            "core::limit",
            "core::storage",
            "engine::config",
            "engine::item",
        ],
    ),
    (
        "engine::flow",
        &[
            "core::fingerprint",
            "core::filter",
            "core::storage",
            "core::redis",
            "engine::config",
            "engine::item",
            "engine::engine",
        ],
    ),
    // These rooms analyse filters without the daemon.
    (
        "analysis",
        &[
            "core::fingerprint",
            "core::filter",
            "core::limit",
            "core::redis",
            "core::redis_filter",
            "engine::config",
            "engine::item",
            "engine::engine",
            "engine::flow",
        ],
    ),
    // These rooms are the crawl in Redis, the daemon and the commands.
    (
        "cli::crawl",
        &[
            "core::fingerprint",
            "core::filter",
            "core::limit",
            "core::storage",
            "core::redis",
            "core::redis_filter",
            "engine::config",
            "engine::item",
            "engine::flow",
        ],
    ),
    (
        "cli::pipeline",
        &[
            "core::filter",
            "core::storage",
            "core::redis",
            "core::redis_filter",
            "engine::config",
            "engine::item",
            "engine::engine",
            "engine::flow",
            "cli::crawl",
        ],
    ),
    (
        "cli::serve",
        &[
            "core::fingerprint",
            "core::filter",
            "core::storage",
            "engine::config",
            "engine::item",
            "engine::engine",
        ],
    ),
    (
        "cli::route",
        &[
            "core::fingerprint",
            "core::filter",
            "core::redis",
            "engine::config",
            "engine::item",
            "engine::flow",
            "cli::crawl",
            "cli::pipeline",
        ],
    ),
    ("cli::admin", &["core::storage", "engine::config", "cli::pipeline", "cli::route"]),
    (
        "cli::cli",
        &[
            "core::fingerprint",
            "core::filter",
            "core::storage",
            "core::redis",
            "core::redis_filter",
            "engine::config",
            "engine::item",
            "engine::engine",
            "engine::flow",
            "analysis",
            "cli::crawl",
            "cli::pipeline",
            "cli::route",
            "cli::serve",
            "cli::admin",
        ],
    ),
];

#[test]
fn rooms_name_only_permitted_rooms() {
    let files = rust_files();
    let sources = files.iter().filter(|file| place(&file.path).is_some()).collect::<Vec<_>>();
    for (_, _, folder) in CRATES {
        assert!(sources.iter().any(|file| file.path.starts_with(folder)), "no sources in {folder}");
    }
    report(sources.iter().flat_map(|file| problems(MAY_USE, &file.path, &file.text)));
}

#[test]
fn the_table_has_no_cycles() {
    report(table_problems(MAY_USE).into_iter());
}

/// Returns the crate of a file, by its name in the rules, and the path of the file inside the
/// crate.
fn place(path: &str) -> Option<(&'static str, &str)> {
    CRATES.iter().find_map(|(_, name, folder)| Some((*name, path.strip_prefix(folder)?)))
}

/// Returns the name of the room for `module` of a crate.
fn room(crate_name: &str, module: &str) -> String {
    if FLAT.contains(&crate_name) {
        crate_name.to_owned()
    } else {
        format!("{crate_name}::{module}")
    }
}

/// Returns the top-level module to which a path inside a crate belongs.
fn module(inside: &str) -> &str {
    inside.split(['/', '.']).next().unwrap_or_default()
}

/// Returns the forbidden imports of the file at `path`, relative to the repository.
fn problems(table: &[Rule], path: &str, text: &str) -> Vec<String> {
    let (crate_name, inside) = place(path).expect("a file of a crate");
    if !FLAT.contains(&crate_name) && ["lib.rs", "main.rs"].contains(&inside) {
        return Vec::new();
    }
    let own = room(crate_name, module(inside));
    let Some((_, allowed)) = table.iter().find(|(name, _)| *name == own) else {
        return vec![format!("{path}: the table of tests/it/imports.rs lacks the room {own}")];
    };
    let code = without_comments(text);
    let mut problems = Vec::new();
    for name in named(crate_name, &code).into_iter().chain(included(path, &code)) {
        if name != own && !allowed.contains(&name.as_str()) {
            problems.push(format!("{path}: {own} may not name {name}"));
        }
    }
    if !FLAT.contains(&crate_name) && climbs_out(inside, &code) {
        problems.push(format!("{path}: write crate::… for what lies outside of the module"));
    }
    problems
}

/// Returns the rooms whose files are compiled into this file.
fn included(path: &str, code: &str) -> Vec<String> {
    let folder = Path::new(path).parent().expect("a file in a folder");
    let mut rooms = Vec::new();
    for (start, found) in code.match_indices("include_str!(\"") {
        let file = code[start + found.len()..].split('"').next().unwrap_or_default();
        let whole = flattened(&folder.join(file));
        // The data of tests belongs to no room.
        rooms.extend(place(&whole).map(|(name, inside)| room(name, module(inside))));
    }
    rooms
}

/// Returns the path without `..`.
fn flattened(path: &Path) -> String {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            part => parts.push(part.as_os_str().to_str().expect("a path in UTF-8")),
        }
    }
    parts.join("/")
}

/// Returns true if a chain of `super::` leads to the top of the crate. The function relies on
/// rustfmt's layout of inline modules.
fn climbs_out(inside: &str, code: &str) -> bool {
    let modules = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    let mut depth = modules.split('/').count();
    code.lines().any(|line| {
        if line.contains("mod ") && !line.starts_with(' ') && line.ends_with('{') {
            depth += 1;
        } else if line == "}" {
            depth = modules.split('/').count();
        }
        line.contains(&"super::".repeat(depth))
    })
}

fn table_problems(table: &[Rule]) -> Vec<String> {
    let mut problems = Vec::new();
    for (row, (room, allowed)) in table.iter().enumerate() {
        let above = &table[..row];
        if above.iter().any(|(other, _)| other == room) {
            problems.push(format!("{room} stands twice in the table"));
        }
        for name in *allowed {
            if !above.iter().any(|(other, _)| other == name) {
                problems.push(format!("{room} may use {name}, which does not stand above it"));
            }
        }
    }
    problems
}

/// Returns the code without comment lines, because documentation may link to any room.
fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).fold(
        String::new(),
        |mut code, line| {
            code.push_str(line);
            code.push('\n');
            code
        },
    )
}

/// Returns the rooms that the code of a crate names, including those in braces.
fn named(crate_name: &str, code: &str) -> Vec<String> {
    let mut rooms = Vec::new();
    for (start, _) in code.match_indices("::") {
        let before = &code[..start];
        let word = before.len() - before.chars().rev().take_while(|&it| is_word(it)).count();
        // A module in a path can have the same name as a crate.
        if code[..word].ends_with("::") {
            continue;
        }
        let owner = match &code[word..start] {
            "crate" => crate_name,
            other => match CRATES.iter().find(|(name, _, _)| *name == other) {
                Some((_, name, _)) => name,
                None => continue,
            },
        };
        let rest = code[start + 2..].trim_start();
        let modules = match rest.strip_prefix('{') {
            None => vec![first_word(rest)],
            Some(group) => group_names(group),
        };
        rooms.extend(modules.into_iter().map(|module| room(owner, module)));
    }
    rooms
}

/// Returns the first name of each part of `a::b, c::{d, e}, f}`, up to the closing brace.
fn group_names(group: &str) -> Vec<&str> {
    let mut names = vec![first_word(group.trim_start())];
    let mut depth = 0;
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(first_word(group[at + 1..].trim_start())),
            _ => {}
        }
    }
    // After a trailing comma comes no name.
    names.retain(|name| !name.is_empty());
    names
}

/// Returns the identifier or `*` at the start of `text`.
fn first_word(text: &str) -> &str {
    if text.starts_with('*') {
        return "*";
    }
    &text[..text.find(|character| !is_word(character)).unwrap_or(text.len())]
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Rule] = &[
        ("core::low", &[]),
        ("core::side", &[]),
        ("core::middle", &["core::low"]),
        ("library", &["core::low"]),
        ("cli::top", &["core::low", "core::side", "core::middle"]),
        ("cli::over", &["cli::top"]),
    ];

    /// Returns the path of a file in the core.
    fn core(path: &str) -> String {
        format!("crates/urlseen-core/src/{path}")
    }

    #[test]
    fn a_room_names_itself_and_the_rooms_of_its_row() {
        for (path, text) in [
            (core("middle.rs"), "use crate::low::Thing;\nuse crate::middle::Other;"),
            (core("middle/deep/er.rs"), "fn a() { crate::low::f() }"),
            (core("middle.rs"), "use crate::{low};\nstruct A { b: u8, side: u8 }"),
            (core("low.rs"), "//! [`crate::top`]\n    // crate::side::x\nuse other_crate::top;"),
            (core("low/part.rs"), "use super::top;"),
            (core("low/deep/part.rs"), "use super::super::top;"),
            (core("low/part.rs"), "mod tests {\n    use super::super::top;\n}"),
            (core("low.rs"), "mod tests {\n    use super::*;\n}"),
            (core("low/deep/part.rs"), "const A: &str = include_str!(\"../a.lua\");"),
            (core("low.rs"), "const A: &str = include_str!(\"../../../tests/data/a\");"),
            (core("lib.rs"), "pub use crate::top::Thing;"),
            ("crates/urlseen/src/lib.rs".to_owned(), "use crate::a::B;\nuse urlseen_core::low;"),
            ("src/top.rs".to_owned(), "use urlseen_core::{low, middle::{a, b}, side::c};"),
            ("src/over.rs".to_owned(), "use crate::top::x;"),
            ("src/main.rs".to_owned(), "use crate::anything;"),
        ] {
            assert_eq!(problems(TABLE, &path, text), [""; 0], "{path}: {text}");
        }
    }

    #[test]
    fn each_forbidden_name_is_found_in_any_spelling() {
        for (file, text, wrong) in [
            ("middle.rs", "use crate::side;", "core::side"),
            ("middle/mod.rs", "pub(in crate::top) fn a() {}", "core::top"),
            ("middle/a.rs", "fn a() -> Vec<crate::side::B> {}", "core::side"),
            ("middle.rs", "use crate::{\n    low::{self, x},\n    side::y,\n};", "core::side"),
            ("middle.rs", "use crate::{low::{side, x}, top};", "core::top"),
            ("middle.rs", "macro_rules! m { () => { $crate::top::f() } }", "core::top"),
            ("middle.rs", "use crate::*;", "core::*"),
            ("middle.rs", "use crate:: top;", "core::top"),
            ("middle.rs", "use urlseen_cli::over::x;", "cli::over"),
            ("middle.rs", "use urlseen::Filter;", "library"),
            ("middle/a.rs", "const A: &str = include_str!(\"../side/a.lua\");", "core::side"),
        ] {
            let expected = format!("{}: core::middle may not name {wrong}", core(file));
            assert_eq!(problems(TABLE, &core(file), text), [expected], "{text}");
        }
    }

    #[test]
    fn a_chain_of_super_to_the_top_of_a_crate_is_found() {
        for (file, text) in [
            ("low.rs", "use super::top;"),
            ("low.rs", "fn a() {\n    super::top::f()\n}"),
            ("low.rs", "mod tests {\n    use super::*;\n}\nuse super::top;"),
            ("low.rs", "mod tests {\n    use super::super::top;\n}"),
            ("low/mod.rs", "use super::top;"),
            ("low/part.rs", "    use super::super::top;"),
            ("low/deep/mod.rs", "use super::super::top;"),
            ("low/deep/part.rs", "use super::super::super::top;"),
        ] {
            let wrong = "write crate::… for what lies outside of the module";
            assert_eq!(problems(TABLE, &core(file), text), [format!("{}: {wrong}", core(file))]);
        }
    }

    #[test]
    fn a_room_without_a_row_is_found() {
        let wrong = "src/new/mod.rs: the table of tests/it/imports.rs lacks the room cli::new";
        assert_eq!(problems(TABLE, "src/new/mod.rs", ""), [wrong]);
    }

    #[test]
    fn a_cycle_in_the_table_is_found() {
        assert_eq!(table_problems(TABLE), [""; 0]);
        let found = table_problems(&[("a", &["b"]), ("b", &["a", "b"]), ("a", &[])]);
        assert_eq!(
            found,
            [
                "a may use b, which does not stand above it",
                "b may use b, which does not stand above it",
                "a stands twice in the table",
            ]
        );
    }
}
