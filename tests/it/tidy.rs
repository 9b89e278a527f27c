//! Style that the compiler does not check: every rule here is one that a reviewer need not keep.

use std::fs;
use std::process::Command;

use crate::util::sources::{Source, root, rust_files, scripts};

/// Characters in a line of Rust.
const LINE: usize = 100;
/// Lines in a file of Rust, and in one of tests or of nothing but data.
const FILE: usize = 400;
const LONG_FILE: usize = 600;
/// Files that are one long table.
const DATA_TABLES: &[&str] = &[];

/// What nothing that lands may hold, each with what to do instead. In halves, as this file is
/// checked too.
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
fn the_pages_that_everybody_opens_first_are_there() {
    let page = |name: &str| fs::read_to_string(root().join(name)).unwrap_or_default();
    report(page_problems(&page("README.md"), &page("CHANGELOG.md")).into_iter());
}

/// Fails with every problem at once.
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
    problems
}

/// Tests lie in `tests/`, or beside what they test in `tests.rs`, `*_test.rs`, `*_tests.rs` or a
/// `tests` folder.
fn allowed_lines(path: &str) -> usize {
    let is_test = path.starts_with("tests/")
        || path.ends_with("/tests.rs")
        || path.ends_with("_test.rs")
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

/// By its first line. One that names python runs it, through whatever shell it may be.
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
fn long_files_are_found_by_what_they_are() {
    for (path, allowed) in [
        ("src/a.rs", FILE),
        ("src/a/contests.rs", FILE),
        ("benches/a.rs", FILE),
        ("src/a/tests.rs", LONG_FILE),
        ("src/a/b_test.rs", LONG_FILE),
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
