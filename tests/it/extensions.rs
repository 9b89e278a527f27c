//! Cost of an extension, such as a new kind of filter. For each existing example, the tests limit
//! the number of source files that name it. CONTRIBUTING.md tells how to add an extension. Tests,
//! pages and config.toml do not count.

use crate::tidy::report;
use crate::util::sources::{Source, rust_files};

/// Example of an extension: its words, and the number of files that may contain one of them.
struct Example {
    what: &'static str,
    words: &'static [&'static str],
    most: usize,
}

const fn example(what: &'static str, words: &'static [&'static str], most: usize) -> Example {
    Example { what, words, most }
}

const EXAMPLES: &[Example] = &[
    example("the kind redisson", &["redisson", "Redisson", "RedissonParameters"], 4),
    example("the kind exact", &["exact::KIND", "ExactShards", "ExactParameters"], 4),
    example("the kind redis-lua-scaling", &["redis_lua_scaling", "RedisLuaScaling"], 4),
    example("the sink zset", &["Zset"], 2),
    example("the source stream", &["SourceKind::Stream", "Stream::new("], 2),
    example("the key source.after_commit", &["after_commit:"], 2),
    example("the key source.batch_bytes", &["batch_bytes"], 2),
    example("the key source.linger", &["source.linger", "linger: Option"], 2),
    example("the key serve.request_bytes", &["settings.request_bytes", "request_bytes:"], 2),
    example("the counter rejects_dropped", &["rejects_dropped"], 2),
    example("the counter batches_aborted", &["batches_aborted"], 2),
    example("the counter rollbacks", &["rollbacks"], 2),
];

#[test]
fn an_extension_touches_few_files() {
    let files: Vec<Source> =
        rust_files().into_iter().filter(|file| is_counted(&file.path)).collect();
    report(EXAMPLES.iter().filter_map(|example| problems(example, &files)));
}

/// Returns true for files of the crates that are not tests.
fn is_counted(path: &str) -> bool {
    let is_source = path.starts_with("src/") || path.contains("/src/");
    is_source && !path.contains("test")
}

fn problems(example: &Example, files: &[Source]) -> Option<String> {
    let Example { what, words, most } = example;
    let naming = files.iter().filter(|file| {
        let code = code(&file.text);
        words.iter().any(|word| has_word(&code, word))
    });
    let naming: Vec<&str> = naming.map(|file| file.path.as_str()).collect();
    let list = naming.join(", ");
    match naming.len() {
        0 => Some(format!("no file names {what}: the example is out of date")),
        found if found > *most => {
            Some(format!("{found} files name {what}, {most} are allowed: {list}"))
        }
        _ => None,
    }
}

/// Returns the code of a file without comments and without the tests at its end.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns true if the code contains `word` as a whole name.
fn has_word(code: &str, word: &str) -> bool {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(word).any(|(start, _)| {
        let (before, after) = (&code[..start], &code[start + word.len()..]);
        !before.ends_with(is_name) && !after.starts_with(is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned(), executable: false }
    }

    #[test]
    fn files_that_name_an_example_are_counted() {
        let files = [
            file("src/a.rs", "let limit = config.limit;"),
            file("src/b.rs", "// limit\nlet limited = 1;\n#[cfg(test)]\nmod tests {\n    limit\n}"),
            file("src/c.rs", "fn limit() {}"),
        ];
        let problems = |most| problems(&example("it", &["limit"], most), &files);
        assert_eq!(problems(2), None);
        let expected = "2 files name it, 1 are allowed: src/a.rs, src/c.rs";
        assert_eq!(problems(1).as_deref(), Some(expected));
        let none = super::problems(&example("it", &["other"], 1), &files);
        assert_eq!(none.as_deref(), Some("no file names it: the example is out of date"));
    }
}
