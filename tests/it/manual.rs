//! Manual pages and completions, which packages install.

use std::collections::BTreeSet;
use std::fs;

use crate::util::binary::{Run, urlseen};

/// Returns the words that bash offers after `line`.
fn completed(line: &[&str]) -> BTreeSet<String> {
    let script = urlseen(["completions", "bash"]).output();
    let complete = format!(
        "{}\nCOMP_WORDS=(urlseen {}); COMP_CWORD={}\n_urlseen urlseen '{}' ''\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.text(),
        line.join(" "),
        line.len(),
        line.last().unwrap(),
    );
    let output = Run::of("bash", ["-c", &complete]).output();
    assert_eq!((output.code(), &*output.stderr), (Some(0), ""), "{output:?}");
    output.text().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    assert_eq!(completed(&["st"]), words(&["status", "storage"]));
    assert_eq!(completed(&["storage", "re"]), words(&["reset"]));
    assert_eq!(completed(&["run", "--sta"]), words(&["--standby"]));
}

#[test]
fn zsh_and_fish_have_completions() {
    for (shell, line) in [("zsh", "#compdef urlseen"), ("fish", "complete -c urlseen -n")] {
        let output = urlseen(["completions", shell]).output();
        assert_eq!(output.code(), Some(0), "{output:?}");
        assert!(output.text().lines().any(|it| it.starts_with(line)), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page_with_two_examples() {
    let folder = tempfile::tempdir().unwrap();
    let output = urlseen(["man-pages"]).arg(folder.path()).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    let pages = fs::read_dir(folder.path()).unwrap().map(|page| page.unwrap());
    let mut names = BTreeSet::new();
    for page in pages {
        let name = page.file_name().into_string().unwrap();
        let text = fs::read_to_string(page.path()).unwrap();
        if !name.starts_with("urlseen-help") {
            let (_, examples) = text.split_once("\nExamples:\n").expect(&name);
            let examples = examples.lines().take_while(|line| line.starts_with("  urlseen "));
            assert_eq!(examples.count(), 2, "{name}");
        }
        names.insert(name);
    }
    for name in ["urlseen.1", "urlseen-run.1", "urlseen-storage-reset.1"] {
        assert!(names.contains(name), "{names:?}");
    }
    assert!(!names.contains("urlseen-man-pages.1"), "a command for packages only");
}

#[test]
fn a_missing_folder_for_manual_pages_is_explained() {
    let output = urlseen(["man-pages", "missing"]).output();
    assert_eq!(output.code(), Some(3), "{output:?}");
    let said = "cannot write the manual pages to missing; create the folder first";
    assert!(output.stderr.contains(said), "{output:?}");
}
