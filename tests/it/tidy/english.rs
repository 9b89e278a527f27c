//! Plain English: rules for comments, messages and pages that a test can check.

use regex::Regex;

use super::report;
use crate::util::sources::{Source, pages, rust_files, texts};

/// Words with which doc comments must not begin. A doc comment begins with its subject.
const OPENINGS: &str = r"^(What(ever)?|Who(ever|se)?|Which|Where|Whether|How|That|When)\b";
/// Minimum number of characters of a doc comment. A shorter comment only repeats a name.
const COMMENT_MIN: usize = 22;
/// Maximum number of words of a sentence in README.md and the guides.
const SENTENCE_MAX: usize = 30;
/// Forbidden words, each with its remedy. Each word is written in two parts, because this file is
/// checked, too.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("no", "body"), "programs are not people: name the actor"),
    (concat!("some", "body"), "programs are not people: name the actor"),
    (concat!("who", "ever"), "programs are not people: name the actor"),
    (concat!("the be", "gin"), "the start"),
    (concat!("thousand mil", "lion"), "billion"),
];

#[test]
fn doc_comments_open_with_their_subject_and_say_more_than_the_name() {
    report(rust_files().iter().flat_map(bad_comments));
}

#[test]
fn sentences_of_the_readme_and_the_guides_are_short() {
    let is_read_first =
        |page: &&Source| page.path == "README.md" || page.path.starts_with("docs/guides/");
    report(pages().iter().filter(is_read_first).flat_map(long_sentences));
}

#[test]
fn forbidden_words_appear_nowhere() {
    let all = pages().into_iter().chain(rust_files()).chain(texts());
    report(all.flat_map(|file| forbidden_words(&file)));
}

/// Returns the doc comments of a file that open badly or are too short. Successive lines are one
/// comment.
fn bad_comments(file: &Source) -> Vec<String> {
    let opening = Regex::new(OPENINGS).unwrap();
    let comments = Regex::new(r"(?m)(^ *//[/!].*\n)+").unwrap();
    let mut bad = Vec::new();
    for comment in comments.find_iter(&file.text) {
        let lines = comment.as_str().lines().map(|line| line.trim_start_matches([' ', '/', '!']));
        let text = lines.collect::<Vec<_>>().join(" ");
        let number = file.text[..comment.start()].matches('\n').count() + 1;
        if opening.is_match(&text) || text.chars().count() < COMMENT_MIN {
            bad.push(format!("{}:{number}: {text}", file.path));
        }
    }
    bad
}

/// Returns the sentences of a page that are too long. Code, headings and tables have no sentences.
fn long_sentences(page: &Source) -> Vec<String> {
    let blocks = Regex::new(r"(?ms)^ *```.*?^ *```$").unwrap();
    // A span of code counts as one word. A link counts as the words of its text.
    let spans = Regex::new(r"(?s)``.+?``|`[^`]*`").unwrap();
    let targets = Regex::new(r"\]\([^)]*\)").unwrap();
    let paragraphs = Regex::new(r"(?m)^\s*$|^ *- |^ *\d+\. |^\|.*$|^#.*$|^ {4,}.*$").unwrap();
    let ends = Regex::new(r#"[.?!:]["')*_]*\s"#).unwrap();

    let text = blocks.replace_all(&page.text, "\n\n");
    let text = spans.replace_all(&text, "code");
    let text = targets.replace_all(&text, "]");
    let sentences = paragraphs.split(&text).flat_map(|paragraph| ends.split(paragraph));
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let counted = sentences.map(|it| (it.split_whitespace().filter(is_word).count(), it.trim()));
    let long = counted.filter(|(words, _)| *words > SENTENCE_MAX);
    long.map(|(words, text)| format!("{}: {words} words, write less: {text}", page.path)).collect()
}

fn forbidden_words(file: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = line.to_lowercase();
        for (word, instead) in FORBIDDEN {
            let is_whole = |&(at, _): &(usize, &str)| {
                !line[..at].ends_with(char::is_alphanumeric)
                    && !line[at + word.len()..].starts_with(char::is_alphanumeric)
            };
            if line.match_indices(word).any(|found| is_whole(&found)) {
                problems.push(format!("{}:{number}: {word}: {instead}", file.path));
            }
        }
    }
    problems
}

#[test]
fn each_fault_of_english_is_found() {
    let file = |text: &str| Source { path: "a.md".to_owned(), text: text.to_owned() };
    for (text, found) in [
        ("//! Filters that are kept in memory.\n\n/// The kinds,\n/// in the order of age.\n", 0),
        ("/// What it is, in a line.\nfn a() {}\n    /// A name.\n", 2),
    ] {
        assert_eq!(bad_comments(&file(text)).len(), found, "{text}");
    }
    let (fits, long) = ("a ".repeat(SENTENCE_MAX), "a ".repeat(SENTENCE_MAX + 1));
    for (text, found) in [
        (format!("{fits}. {fits}: {fits}\n\n- {fits}\n- {fits}\n"), 0),
        (format!("```sh\n{long}\n```\n# {long}\n| {long} |\n\n    {long}\n"), 0),
        (format!("{fits}[](c.md) `b`\n").replacen("a ", "", 1), 0),
        (format!("{fits}\nb.\n\n- b. {long}\n1. b\n  {fits}`c d`\n"), 3),
    ] {
        assert_eq!(long_sentences(&file(&text)).len(), found, "{text}");
    }
    for (word, _) in FORBIDDEN {
        assert_eq!(forbidden_words(&file(&format!("a\n{word}'s un{word} {word}s"))).len(), 1);
    }
}
