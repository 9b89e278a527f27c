//! Rules of style that the compiler does not check.

mod english;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use urlseen_core::filter::Kind;
use urlseen_core::filter::choice::FilterPlace;

use crate::util::sources::{Source, root, rust_files, scripts};

/// Maximum number of characters in a line of Rust.
const LINE: usize = 100;
/// Maximum number of lines of a function. Tests may be longer.
const FUNCTION: usize = 70;
/// Maximum number of lines of a file of Rust. Files of tests and files of data may be longer.
const FILE: usize = 400;
const LONG_FILE: usize = 600;
/// Files that contain only one long table.
const DATA_TABLES: &[&str] = &[];

/// Forbidden words, each with its remedy. Each word is written in two parts, because this file is
/// checked, too.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("to", "do!("), "write it, or leave it out"),
    (concat!("unimple", "mented!("), "write it, or leave it out"),
    (concat!("d", "bg!("), "use tracing, or an assertion"),
    (concat!("#[", "ignore"), "a test that does not run proves nothing: mend it or delete it"),
];

#[test]
fn rust_files_are_tidy() {
    let files = rust_files();
    assert!(files.iter().any(|file| file.path == "src/lib.rs"), "no sources found");
    report(files.iter().flat_map(rust_problems));
    // All modules use one convention: a module with parts is the file `mod.rs` in the folder of its
    // parts.
    report(files.iter().filter_map(|file| loose_part(file, &files)));
}

/// Broken builds show that the oracles detect faults. Each of them is a patch, which a change of
/// the sources can make invalid.
#[test]
fn the_patches_of_broken_builds_fit_the_sources() {
    for folder in ["tests/chaos/broken", "integrations/scrapy/tests/broken"] {
        let below = folder.split_once("/tests/").map_or("", |(package, _)| package);
        let patches = fs::read_dir(root().join(folder)).unwrap();
        let patches = patches.map(|patch| patch.unwrap().path());
        let is_patch = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "patch");
        let patches = patches.filter(is_patch).collect::<Vec<_>>();
        assert!(!patches.is_empty(), "no patches in {folder}");
        for patch in patches {
            let output = Command::new("patch")
                .args(["--dry-run", "--strip=1", "--fuzz=0", "--batch", "--forward", "--input"])
                .arg(&patch)
                .current_dir(root().join(below))
                .output()
                .expect("the tests need patch: run scripts/setup");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{}: {text}", patch.display());
        }
    }
}

#[test]
fn scripts_are_tidy() {
    let scripts = scripts();
    assert!(scripts.iter().any(|script| script.path == "scripts/test"), "no scripts found");
    report(scripts.iter().flat_map(script_problems));
}

#[test]
fn shell_scripts_pass_shellcheck() {
    let scripts = scripts();
    let shell = scripts.iter().filter(|script| is_shell(script)).map(|script| &script.path);
    let output = Command::new("shellcheck")
        .args(shell)
        .current_dir(root())
        .output()
        .expect("the tests need shellcheck: run scripts/setup");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_pages_at_the_root_exist() {
    let page = |name: &str| fs::read_to_string(root().join(name)).unwrap_or_default();
    report(page_problems(&page("README.md"), &page("CHANGELOG.md")).into_iter());
}

/// Each kind of filter must be in config.toml, and in the tables of kinds for its places.
#[test]
fn every_kind_of_filter_is_in_the_tables_of_kinds() {
    use FilterPlace::{Local, Redis};
    let config = fs::read_to_string(root().join("config.toml")).unwrap();
    let lines = Kind::all().filter(|kind| !config.contains(&format!("\n#   {kind} ")));
    let lines = lines.map(|kind| format!("config.toml has no line for the kind {kind}"));
    let tables = [
        ("docs/reference/config.md", Local),
        ("docs/reference/storage.md", Local),
        ("docs/guides/redis-filter.md", Redis),
    ];
    let rows = tables.into_iter().flat_map(|(page, place)| {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let has_row = move |kind: &Kind| text.contains(&format!("\n| `{kind}` |"));
        let kinds = Kind::all_in(place).filter(move |kind| !has_row(kind));
        kinds.map(move |kind| format!("{page} has no row for the kind {kind}"))
    });
    report(lines.chain(rows));
}

/// Fails with a list of all problems.
#[track_caller]
pub(crate) fn report(problems: impl Iterator<Item = String>) {
    let problems = problems.collect::<Vec<_>>();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

fn rust_problems(file: &Source) -> Vec<String> {
    let Source { path, text, .. } = file;
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let width = line.chars().count();
        if width > LINE {
            problems.push(format!("{path}:{number}: {width} columns, {LINE} are allowed"));
        }
        for (word, instead) in FORBIDDEN {
            if line.contains(word) {
                problems.push(format!("{path}:{number}: {word}: {instead}"));
            }
        }
    }
    let (lines, allowed) = (text.lines().count(), allowed_lines(path));
    if lines > allowed {
        problems.push(format!("{path}: {lines} lines, {allowed} are allowed: one file, one noun"));
    }
    if allowed == FILE {
        let long = functions(text).filter(|(_, lines)| *lines > FUNCTION);
        problems.extend(long.map(|(at, lines)| {
            format!("{path}:{at}: a function of {lines} lines, {FUNCTION} are allowed")
        }));
    }
    problems
}

/// Returns the first line and the number of lines of each function with a body. This search relies
/// on rustfmt's layout.
fn functions(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let lines = text.lines().collect::<Vec<_>>();
    (0..lines.len()).filter_map(move |at| {
        let line = lines[at].trim_start();
        let indent = &lines[at][..lines[at].len() - line.len()];
        let is_function = line.starts_with("fn ") || line.contains(" fn ");
        if !is_function || line.starts_with("//") || line.ends_with([';', '}']) {
            return None;
        }
        let end = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| rest == "}");
        Some((at + 1, lines[at..].iter().position(end)? + 1))
    })
}

/// Returns a message if a file has the same name as a folder beside it. Such a file must be
/// `mod.rs` in that folder.
fn loose_part(file: &Source, files: &[Source]) -> Option<String> {
    let path = &file.path;
    let parts = format!("{}/", path.strip_suffix(".rs")?);
    let has_parts = files.iter().any(|other| other.path.starts_with(&parts));
    has_parts.then(|| format!("{path}: move it to {parts}mod.rs, beside its parts"))
}

/// Returns the maximum number of lines of a file. Files of tests are in `tests/`, or have the name
/// `tests.rs` or `*_tests.rs`, or are in a folder `tests`.
fn allowed_lines(path: &str) -> usize {
    let is_test = path.starts_with("tests/")
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
        || path.contains("/tests/");
    if is_test || DATA_TABLES.contains(&path) { LONG_FILE } else { FILE }
}

fn script_problems(script: &Source) -> Vec<String> {
    let Source { path, text, executable } = script;
    let mut problems = Vec::new();
    if !executable {
        problems.push(format!("{path}: not executable: chmod +x, or give it a name ending"));
    }
    if !text.starts_with("#!/") {
        problems.push(format!("{path}: does not begin with a #! line"));
    }
    if is_shell(script) && !text.lines().any(|line| line == "set -euo pipefail") {
        problems.push(format!("{path}: lacks the line: set -euo pipefail"));
    }
    problems
}

/// Returns true if the first line names a shell. If the line also names Python, the script is not a
/// shell script.
fn is_shell(script: &Source) -> bool {
    let first = script.text.lines().next().unwrap_or_default();
    first.starts_with("#!") && first.contains("sh") && !first.contains("python")
}

fn page_problems(readme: &str, changelog: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if !readme.starts_with("# urlseen\n") {
        problems.push("README.md: missing, or does not begin with its title".to_owned());
    }
    if !changelog.lines().any(|line| line == "## Unreleased") {
        problems.push("CHANGELOG.md: lacks the section: ## Unreleased".to_owned());
    }
    problems
}

#[test]
fn long_lines_are_counted_in_characters() {
    let fits = "ü".repeat(LINE);
    assert_eq!(rust_problems(&rust("src/a.rs", &fits)), [""; 0]);
    let problems = rust_problems(&rust("src/a.rs", &format!("\n{fits}ü")));
    assert_eq!(problems, ["src/a.rs:2: 101 columns, 100 are allowed"]);
}

#[test]
fn long_functions_are_found() {
    let body = "    x();\n".repeat(FUNCTION - 1);
    let text = |body: &str| format!("struct A;\n\npub(super) fn f() {{\n{body}}}\n");
    let problems = rust_problems(&rust("src/a.rs", &text(&body)));
    assert_eq!(problems, ["src/a.rs:3: a function of 71 lines, 70 are allowed"]);
    assert_eq!(rust_problems(&rust("src/a.rs", &text(&body[9..]))), [""; 0]);
    assert_eq!(rust_problems(&rust("src/a/tests.rs", &text(&body))), [""; 0]);
}

#[test]
fn long_files_are_found_by_their_kind() {
    for (path, allowed) in [
        ("src/a.rs", FILE),
        ("src/a/contests.rs", FILE),
        ("benches/a.rs", FILE),
        ("src/a/tests.rs", LONG_FILE),
        ("src/a/b_tests.rs", LONG_FILE),
        ("src/a/tests/b.rs", LONG_FILE),
        ("tests/it/a.rs", LONG_FILE),
    ] {
        assert_eq!(rust_problems(&rust(path, &"\n".repeat(allowed))), [""; 0]);
        let problems = rust_problems(&rust(path, &"\n".repeat(allowed + 1)));
        assert_eq!(problems.len(), 1, "{path}");
        assert!(problems[0].contains(&format!("{allowed} are allowed")), "{problems:?}");
    }
}

#[test]
fn each_forbidden_word_is_found() {
    for (word, instead) in FORBIDDEN {
        let problems = rust_problems(&rust("src/a.rs", &format!("fn a() {{\n    {word})\n}}")));
        assert_eq!(problems, [format!("src/a.rs:2: {word}: {instead}")]);
    }
}

#[test]
fn each_rule_for_scripts_is_found() {
    let good = "#!/usr/bin/env bash\nset -euo pipefail\n";
    let python = "#!/usr/bin/env -S sh -c 'exec ../.venv/bin/python \"$0\"'\n";
    for (text, executable, wrong) in [
        (good, true, None),
        (python, true, None),
        (good, false, Some("not executable")),
        ("set -euo pipefail\n", true, Some("does not begin with a #! line")),
        ("#!/bin/sh\nset -eu\n", true, Some("lacks the line")),
        ("#!/usr/bin/env bash\n# set -euo pipefail\n", true, Some("lacks the line")),
    ] {
        let script = Source { path: "scripts/a".to_owned(), text: text.to_owned(), executable };
        let problems = script_problems(&script);
        assert_eq!(problems.len(), usize::from(wrong.is_some()), "{text}: {problems:?}");
        assert!(problems.iter().all(|problem| problem.contains(wrong.unwrap())), "{problems:?}");
    }
}

#[test]
fn missing_pages_and_sections_are_found() {
    assert_eq!(page_problems("# urlseen\n", "# Changelog\n\n## Unreleased\n"), [""; 0]);
    assert_eq!(page_problems("", "").len(), 2);
    assert_eq!(page_problems("# urlseen\n", "## Unreleased soon\n").len(), 1);
}

fn rust(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned(), executable: false }
}
