//! Rules of style that the compiler does not check.

mod english;
mod versions;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use urlseen_filter::Kind;
use urlseen_filter::choice::FilterPlace;

use crate::util::sources::{Source, root, rust_files, scripts};

/// Maximum number of characters in a line of Rust.
const LINE: usize = 100;
/// Maximum number of lines of a function. Tests may be longer.
const FUNCTION: usize = 70;
/// Maximum number of lines of a file of Rust. Files of tests may be longer.
const FILE: usize = 400;
const TEST_FILE: usize = 600;
/// Mark of a test that does not run, in two parts, because this file is checked, too.
const IGNORED: &str = concat!("#[", "ignore");

#[test]
fn rust_files_are_tidy() {
    let files = rust_files();
    assert!(files.iter().any(|file| file.path == "src/lib.rs"), "no sources found");
    report(files.iter().flat_map(rust_problems));
}

/// Broken builds show that the oracles detect faults. Each of them is a patch, which a change of
/// the sources can make invalid.
#[test]
fn the_patches_of_broken_builds_fit_the_sources() {
    for folder in ["tests/chaos/broken", "tests/chaos/spiders/broken"] {
        let patches = fs::read_dir(root().join(folder)).unwrap();
        let patches = patches.map(|patch| patch.unwrap().path());
        let is_patch = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "patch");
        let patches = patches.filter(is_patch).collect::<Vec<_>>();
        assert!(!patches.is_empty(), "no patches in {folder}");
        for patch in patches {
            let output = Command::new("patch")
                .args(["--dry-run", "--strip=1", "--fuzz=0", "--batch", "--forward", "--input"])
                .arg(&patch)
                .current_dir(root())
                .output()
                .expect("the tests need patch: run scripts/setup");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{}: {text}", patch.display());
        }
    }
}

#[test]
fn shell_scripts_end_at_the_first_error_and_pass_shellcheck() {
    let scripts = scripts();
    let shell = scripts.iter().filter(|script| is_shell(script)).collect::<Vec<_>>();
    let ends = |script: &Source| script.text.lines().any(|line| line == "set -euo pipefail");
    let lacking = shell.iter().filter(|script| !ends(script));
    report(lacking.map(|script| format!("{}: lacks the line: set -euo pipefail", script.path)));
    let output = Command::new("shellcheck")
        .args(shell.iter().map(|script| &script.path))
        .current_dir(root())
        .output()
        .expect("the tests need shellcheck: run scripts/setup");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
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
    let Source { path, text } = file;
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let width = line.chars().count();
        if width > LINE {
            problems.push(format!("{path}:{number}: {width} columns, {LINE} are allowed"));
        }
        if line.contains(IGNORED) {
            problems.push(format!("{path}:{number}: mend or delete a test that does not run"));
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

/// Returns the maximum number of lines of a file. Files of tests are in `tests/`, or have the name
/// `tests.rs` or `*_tests.rs`, or are in a folder `tests`.
fn allowed_lines(path: &str) -> usize {
    let is_test = path.starts_with("tests/")
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
        || path.contains("/tests/");
    if is_test { TEST_FILE } else { FILE }
}

/// Returns true if the first line names a shell. If the line also names Python, the script is not a
/// shell script.
fn is_shell(script: &Source) -> bool {
    let first = script.text.lines().next().unwrap_or_default();
    first.starts_with("#!") && first.contains("sh") && !first.contains("python")
}

#[test]
fn each_rule_for_rust_is_found() {
    let line = "ü".repeat(LINE);
    let function = |lines| format!("pub(super) fn f() {{\n{}}}\n", "    x();\n".repeat(lines - 2));
    let file = |lines| "\n".repeat(lines);
    for (path, text, wrong) in [
        ("src/a.rs", line.clone(), None),
        ("src/a.rs", format!("\n{line}ü"), Some("src/a.rs:2: 101 columns")),
        ("src/a.rs", function(FUNCTION), None),
        ("src/a.rs", function(FUNCTION + 1), Some("src/a.rs:1: a function of 71 lines")),
        ("src/a/tests.rs", function(FUNCTION + 1), None),
        ("src/a.rs", file(FILE), None),
        ("src/a/contests.rs", file(FILE + 1), Some("src/a/contests.rs: 401 lines")),
        ("src/a/b_tests.rs", file(TEST_FILE), None),
        ("src/a/tests/b.rs", file(TEST_FILE + 1), Some("src/a/tests/b.rs: 601 lines")),
        ("tests/it/a.rs", IGNORED.to_owned(), Some("tests/it/a.rs:1: mend")),
    ] {
        let problems = rust_problems(&Source { path: path.to_owned(), text });
        assert_eq!(problems.len(), usize::from(wrong.is_some()), "{path}: {problems:?}");
        assert!(problems.iter().all(|it| it.starts_with(wrong.unwrap())), "{problems:?}");
    }
}
