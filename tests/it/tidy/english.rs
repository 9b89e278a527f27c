//! Plain English: rules for comments, messages and pages that a test can check.

use super::report;
use crate::util::sources::{Source, pages, rust_files, texts};

/// Words with which doc comments must not begin. A doc comment begins with its subject.
const OPENINGS: &[&str] = &[
    "What",
    "Whatever",
    "Who",
    concat!("Who", "ever"),
    "Whose",
    "Which",
    "Where",
    "Whether",
    "How",
    "That",
    "When",
];
/// Maximum share of doc comments that begin with one of these words, in percent.
const OPENINGS_MAX: usize = 3;
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
fn doc_comments_open_with_their_subject() {
    let files = rust_files();
    let comments = files.iter().flat_map(doc_comments).collect::<Vec<_>>();
    let bad = comments.iter().filter(|comment| opens_badly(&comment.text));
    let bad = bad.map(|comment| format!("{}: {}", comment.at, comment.text)).collect::<Vec<_>>();
    if bad.len() * 100 > comments.len() * OPENINGS_MAX {
        report(bad.into_iter());
    }
}

#[test]
fn no_doc_comment_is_too_short_to_say_more_than_the_name() {
    let files = rust_files();
    let short = files.iter().flat_map(doc_comments).filter(|comment| is_short(&comment.text));
    report(short.map(|comment| format!("{}: {}", comment.at, comment.text)));
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

/// Doc comment with the place of its first line.
struct Comment {
    at: String,
    text: String,
}

/// Returns the doc comments of a file. Each block of lines is one comment.
fn doc_comments(file: &Source) -> Vec<Comment> {
    let mut comments: Vec<Comment> = Vec::new();
    let mut before = "";
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = line.trim();
        let mark = ["///", "//!"].into_iter().find(|mark| line.starts_with(mark)).unwrap_or("");
        let text = line.strip_prefix(mark).unwrap_or("").trim();
        match comments.last_mut().filter(|_| mark == before) {
            _ if mark.is_empty() => {}
            Some(comment) => comment.text.extend([" ", text]),
            None => {
                let at = format!("{}:{number}", file.path);
                comments.push(Comment { at, text: text.to_owned() });
            }
        }
        before = mark;
    }
    comments
}

fn opens_badly(comment: &str) -> bool {
    let first = comment.split(|letter: char| !letter.is_alphabetic()).next();
    first.is_some_and(|first| OPENINGS.contains(&first))
}

fn is_short(comment: &str) -> bool {
    comment.trim().chars().count() < COMMENT_MIN
}

/// Returns the sentences of a page that are too long. Code, headings and tables have no sentences.
fn long_sentences(page: &Source) -> Vec<String> {
    let long = paragraphs(&page.text).into_iter().flat_map(|(number, paragraph)| {
        let counted = sentences(&paragraph).into_iter().map(|it| (words(&it), it));
        let long = counted.filter(|(words, _)| *words > SENTENCE_MAX).collect::<Vec<_>>();
        long.into_iter().map(move |(words, text)| (number, words, text))
    });
    long.map(|(number, words, text)| {
        format!("{}:{number}: {words} words, {SENTENCE_MAX} are allowed: {text}", page.path)
    })
    .collect()
}

/// Returns each paragraph and list item as one line, with the number of its first line.
fn paragraphs(page: &str) -> Vec<(usize, String)> {
    let (mut found, mut is_code, mut is_open) = (Vec::<(usize, String)>::new(), false, false);
    for (number, line) in (1..).zip(page.lines()) {
        let text = line.trim();
        if text.starts_with("```") {
            is_code = !is_code;
        }
        let is_item = text.starts_with("- ")
            || text.split_once(". ").is_some_and(|(start, _)| start.parse::<u32>().is_ok());
        let is_indented_code = line.starts_with("    ") && !is_open && !is_item;
        let is_prose = !text.is_empty() && !text.starts_with(['#', '|']) && text != "```";
        if is_code || is_indented_code || !is_prose {
            is_open = false;
            continue;
        }
        match found.last_mut().filter(|_| is_open && !is_item) {
            Some((_, paragraph)) => paragraph.extend([" ", text]),
            None => found.push((number, text.to_owned())),
        }
        is_open = true;
    }
    found
}

/// Splits a paragraph after each full stop, question mark, exclamation mark or colon before a
/// space. A span of code counts as one word. A link counts as the words of its text.
fn sentences(paragraph: &str) -> Vec<String> {
    let text = without_code_and_links(paragraph);
    let mut all = vec![String::new()];
    let mut before = ' ';
    for letter in text.chars() {
        let is_end = letter == ' ' && matches!(before, '.' | '?' | '!' | ':');
        if is_end {
            all.push(String::new());
        } else if let Some(last) = all.last_mut() {
            last.push(letter);
        }
        if !matches!(letter, '"' | ')' | '*' | '_') {
            before = letter;
        }
    }
    all
}

fn without_code_and_links(paragraph: &str) -> String {
    let outside = paragraph.split('`').enumerate();
    let text: String =
        outside.map(|(number, part)| if number % 2 == 0 { part } else { "code" }).collect();
    let mut left = String::new();
    let mut parts = text.split("](");
    left.push_str(parts.next().unwrap_or_default());
    for part in parts {
        left.push_str(part.split_once(')').map_or("", |(_, after)| after));
    }
    left
}

fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

fn forbidden_words(file: &Source) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = line.to_lowercase();
        for (word, instead) in FORBIDDEN {
            if has_word(&line, word) {
                problems.push(format!("{}:{number}: {word}: {instead}", file.path));
            }
        }
    }
    problems
}

/// Returns true if a line contains these words as whole words.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

#[test]
fn doc_comments_are_found_as_blocks() {
    let file =
        file("//! Kinds of filters.\n\n/// What it is,\n/// in a line.\nfn a() {}\n/// Name.\n");
    let comments = doc_comments(&file);
    let found = comments.iter().map(|it| (&*it.at, &*it.text)).collect::<Vec<_>>();
    assert_eq!(
        found,
        [
            ("a.md:1", "Kinds of filters."),
            ("a.md:3", "What it is, in a line."),
            ("a.md:6", "Name.")
        ]
    );
    assert!(opens_badly("What it is, in a line."));
    assert!(!opens_badly("Whatsoever") && !opens_badly("Kinds, and what they are"));
    assert!(is_short("Kinds of filters.") && !is_short("What it is, in a line."));
}

#[test]
fn long_sentences_are_found_in_all_places() {
    let fits = "a ".repeat(SENTENCE_MAX);
    let long = "a ".repeat(SENTENCE_MAX + 1);
    for text in [
        format!("{fits}.\n"),
        format!("{fits}`b c`.\n").replacen("a ", "", 1),
        format!("{fits}. {fits}: {fits}\n"),
        format!("- {fits}\n- {fits}\n"),
        format!("```sh\n{long}\n```\n# {long}\n| {long} |\n\n    {long}\n"),
        format!("{fits}[b](c.md).\n").replacen("a ", "", 1),
    ] {
        assert_eq!(long_sentences(&file(&text)), [""; 0], "{text}");
    }
    for text in [
        format!("{long}.\n"),
        format!("{fits}\nb.\n"),
        format!("- b. {long}\n"),
        format!("{fits}`b`\n"),
        format!("```\n```\n{long}\n"),
        format!("1. b\n   {fits}\n"),
    ] {
        assert_eq!(long_sentences(&file(&text)).len(), 1, "{text}");
    }
}

#[test]
fn each_forbidden_word_of_a_text_is_found() {
    for (word, instead) in FORBIDDEN {
        let capital = word[..1].to_uppercase() + &word[1..];
        for text in [format!("a {word}, b"), format!("{capital} is"), format!("a\n{word}'s")] {
            let found = forbidden_words(&file(&text));
            assert_eq!(found.len(), 1, "{text}");
            assert!(found[0].ends_with(instead));
        }
        assert_eq!(forbidden_words(&file(&format!("un{word} {word}s"))), [""; 0]);
    }
}

fn file(text: &str) -> Source {
    Source { path: "a.md".to_owned(), text: text.to_owned(), executable: false }
}
