//! Which module may name which: the direction of the crate, kept by a test.

use crate::tidy::report;
use crate::util::sources::rust_files;

/// A module below `src/`, and the modules it may name.
type Rule = (&'static str, &'static [&'static str]);

/// Stands for every module above.
const ALL: &str = "*";

/// From the bottom up: a module may name only modules above it in this list, and of those only the
/// ones that it gives. So there is no cycle, and data goes one way.
///
/// A module that is not here fails the test: say first what it may use.
const MAY_USE: &[Rule] = &[
    // Pure: no files, no network, no clock, no threads.
    ("request", &[]),
    ("printable", &[]),
    ("hash", &[]),
    ("redisbloom", &["hash"]),
    ("lanes", &[]),
    ("head", &[]),
    ("descriptors", &[]),
    // Writes the file that it is told to.
    ("plot", &[]),
    ("canonical", &["lanes"]),
    ("fingerprint", &["request", "lanes", "canonical"]),
    ("filter", &["hash", "redisbloom", "fingerprint"]),
    ("choice", &["fingerprint"]),
    ("hash_tag", &[]),
    ("script", &[]),
    ("bounded", &[]),
    ("reject", &["bounded"]),
    ("held", &["hash_tag", "script", "reject"]),
    ("definition", &["hash_tag", "head", "fingerprint", "filter", "choice"]),
    ("judge", &["fingerprint", "filter"]),
    ("compare", &["hash", "redisbloom", "fingerprint", "filter"]),
    ("config", &["fingerprint", "choice"]),
    ("item", &["request", "lanes", "bounded", "canonical", "fingerprint", "filter", "config"]),
    ("batch", &["fingerprint", "item"]),
    ("explain", &["request", "canonical", "fingerprint", "config", "item"]),
    // Files, blocking.
    ("input", &["item"]),
    ("state", &["redisbloom", "head", "descriptors", "fingerprint", "filter", "choice", "batch"]),
    // The library, blocking and async.
    (
        "library",
        &[
            "redisbloom",
            "head",
            "canonical",
            "fingerprint",
            "filter",
            "choice",
            "script",
            "held",
            "definition",
            "judge",
            "state",
        ],
    ),
    // Network, async. A source and a sink never name each other, nor the state.
    ("redis", &["hash_tag", "head", "descriptors", "held", "config"]),
    ("rejects", &["script", "reject", "config", "redis"]),
    ("source", &["config", "item", "redis"]),
    ("sink", &["config", "redis"]),
    ("shared", &["head", "fingerprint", "filter", "definition", "judge", "config", "redis"]),
    (
        "protocol",
        &[
            "request",
            "head",
            "filter",
            "fingerprint",
            "script",
            "judge",
            "config",
            "item",
            "state",
            "redis",
            "held",
            "source",
            "sink",
        ],
    ),
    ("upkeep", &["head", "config", "redis", "protocol"]),
    // Flow.
    ("shutdown", &[]),
    ("phase", &[]),
    ("telemetry", &["printable", "config"]),
    ("admin", &["printable", "head", "descriptors", "config", "phase"]),
    (
        "engine",
        &["request", "redisbloom", "head", "filter", "fingerprint", "config", "item", "batch"],
    ),
    (
        "store",
        &[
            "redisbloom",
            "head",
            "descriptors",
            "filter",
            "fingerprint",
            "config",
            "batch",
            "state",
            "engine",
        ],
    ),
    ("desk", &["descriptors", "engine", "fingerprint", "store"]),
    ("pipe", &["item", "batch", "input", "engine", "store"]),
    ("transfer", &["fingerprint", "redisbloom", "config", "redis"]),
    (
        "import",
        &["fingerprint", "config", "item", "batch", "input", "state", "redis", "engine", "store"],
    ),
    (
        "replay",
        &[
            "redisbloom",
            "fingerprint",
            "filter",
            "definition",
            "config",
            "item",
            "input",
            "redis",
            "source",
            "import",
        ],
    ),
    (
        "pipeline",
        &[
            "redisbloom",
            "head",
            "descriptors",
            "filter",
            "bounded",
            "reject",
            "config",
            "item",
            "batch",
            "state",
            "redis",
            "held",
            "protocol",
            "shutdown",
            "phase",
            "engine",
            "store",
            "shared",
            "desk",
        ],
    ),
    ("serve", &["descriptors", "config", "engine", "fingerprint", "item", "desk"]),
    ("cli", &[ALL]),
];

#[test]
fn modules_name_only_what_they_may() {
    let files = rust_files();
    let sources = files.iter().filter(|file| file.path.starts_with("src/")).collect::<Vec<_>>();
    assert!(sources.iter().any(|file| file.path == "src/request.rs"), "no sources found");
    report(sources.iter().flat_map(|file| problems(MAY_USE, &file.path, &file.text)));
}

#[test]
fn the_table_goes_one_way() {
    report(table_problems(MAY_USE).into_iter());
}

/// What is wrong with the imports of the file at `path`, relative to the repository.
fn problems(table: &[Rule], path: &str, text: &str) -> Vec<String> {
    let inside = path.strip_prefix("src/").expect("a file of the crate");
    if ["lib.rs", "main.rs"].contains(&inside) {
        return Vec::new();
    }
    let module = inside.split(['/', '.']).next().unwrap_or_default();
    let Some(row) = table.iter().position(|(name, _)| *name == module) else {
        return vec![format!("{path}: the table of tests/it/imports.rs lacks the module {module}")];
    };
    let (_, allowed) = table[row];
    let above = &table[..row];
    let may = |name: &str| {
        name == module
            || allowed.contains(&name)
            || allowed.contains(&ALL) && above.iter().any(|(other, _)| *other == name)
    };

    let code = without_comments(text);
    let mut problems = Vec::new();
    for name in named(&code) {
        if !may(name) {
            problems.push(format!("{path}: {module} may not name crate::{name}"));
        }
    }
    if climbs_out(inside, &code) {
        problems.push(format!("{path}: write crate::… for what lies outside of the module"));
    }
    problems
}

/// Whether a chain of `super::` leads to the crate's top, the other way to name a module. It counts
/// on the layout that rustfmt gives to inline modules.
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
    for (row, (module, allowed)) in table.iter().enumerate() {
        let above = &table[..row];
        if above.iter().any(|(other, _)| other == module) {
            problems.push(format!("{module} stands twice in the table"));
        }
        for name in *allowed {
            if *name != ALL && !above.iter().any(|(other, _)| other == name) {
                problems.push(format!("{module} may use {name}, which does not stand above it"));
            }
        }
    }
    problems
}

/// The code without lines that are comments: documentation may link to anything.
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

/// The first names behind each `crate::`, those of a braced group one by one.
fn named(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (start, found) in code.match_indices("crate::") {
        // Not `some_crate::`.
        if code[..start].ends_with(is_word) {
            continue;
        }
        let rest = code[start + found.len()..].trim_start();
        match rest.strip_prefix('{') {
            None => names.push(first_word(rest)),
            Some(group) => names.extend(group_names(group)),
        }
    }
    names
}

/// The first name of each part of `a::b, c::{d, e}, f}` up to the brace that closes it.
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
    // Behind a last comma nothing stands.
    names.retain(|name| !name.is_empty());
    names
}

/// The identifier, or the `*`, that `text` begins with.
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

    const TABLE: &[Rule] =
        &[("low", &[]), ("side", &[]), ("middle", &["low"]), ("top", &[ALL]), ("over", &["top"])];

    #[test]
    fn a_module_names_itself_and_what_its_row_gives() {
        for (path, text) in [
            ("src/middle.rs", "use crate::low::Thing;\nuse crate::middle::Other;"),
            ("src/middle/deep/er.rs", "fn a() { crate::low::f() }"),
            ("src/top.rs", "use crate::{low, middle::{a, b}, side::c};"),
            ("src/middle.rs", "use crate::{low};\nstruct A { b: u8, side: u8 }"),
            ("src/low.rs", "//! [`crate::top`]\n    // crate::side::x\nuse other_crate::top;"),
            ("src/low/part.rs", "use super::top;"),
            ("src/low/deep/part.rs", "use super::super::top;"),
            ("src/low/part.rs", "mod tests {\n    use super::super::top;\n}"),
            ("src/low.rs", "mod tests {\n    use super::*;\n}"),
            ("src/lib.rs", "pub use crate::top::Thing;"),
            ("src/main.rs", "use crate::anything;"),
        ] {
            assert_eq!(problems(TABLE, path, text), [""; 0], "{path}: {text}");
        }
    }

    #[test]
    fn anything_else_is_found_however_it_is_written() {
        for (path, text, wrong) in [
            ("src/middle.rs", "use crate::side;", "side"),
            ("src/middle/mod.rs", "pub(in crate::top) fn a() {}", "top"),
            ("src/middle/a.rs", "fn a() -> Vec<crate::side::B> {}", "side"),
            ("src/middle.rs", "use crate::{\n    low::{self, x},\n    side::y,\n};", "side"),
            ("src/middle.rs", "use crate::{low::{side, x}, top};", "top"),
            ("src/middle.rs", "macro_rules! m { () => { $crate::top::f() } }", "top"),
            ("src/middle.rs", "use crate::*;", "*"),
            ("src/middle.rs", "use crate:: top;", "top"),
            ("src/top.rs", "use crate::over::x;", "over"),
            ("src/over.rs", "use crate::low::x;", "low"),
        ] {
            let module = path[4..].split(['/', '.']).next().unwrap();
            let expected = format!("{path}: {module} may not name crate::{wrong}");
            assert_eq!(problems(TABLE, path, text), [expected], "{text}");
        }
    }

    #[test]
    fn the_crate_is_not_reached_by_climbing() {
        for (path, text) in [
            ("src/low.rs", "use super::top;"),
            ("src/low.rs", "fn a() {\n    super::top::f()\n}"),
            ("src/low.rs", "mod tests {\n    use super::*;\n}\nuse super::top;"),
            ("src/low.rs", "mod tests {\n    use super::super::top;\n}"),
            ("src/low/mod.rs", "use super::top;"),
            ("src/low/part.rs", "    use super::super::top;"),
            ("src/low/deep/mod.rs", "use super::super::top;"),
            ("src/low/deep/part.rs", "use super::super::super::top;"),
        ] {
            let found = problems(TABLE, path, text);
            assert_eq!(
                found,
                [format!("{path}: write crate::… for what lies outside of the module")]
            );
        }
    }

    #[test]
    fn a_module_without_a_row_is_found() {
        let found = problems(TABLE, "src/new/mod.rs", "");
        assert_eq!(
            found,
            ["src/new/mod.rs: the table of tests/it/imports.rs lacks the module new"]
        );
    }

    #[test]
    fn a_table_that_goes_in_circles_is_found() {
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
