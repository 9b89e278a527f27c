//! Tests that `config.toml` and the defaults agree.

use super::super::layers::DEFAULT_FILE;
use super::super::*;
use super::load;
use std::path::Path;

fn documented() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DEFAULT_FILE);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_documented_file_is_the_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(DEFAULT_FILE);
    let documented = Config::load(Sources { file: Some(path), ..Sources::default() });
    assert_eq!(documented, Ok(Config::default()));
    assert_eq!(load("", &[], &[]), Ok(Config::default()));
}

/// The commented-out lines of `config.toml` show the values that are derived from the default name
/// of the crawl.
#[test]
fn the_documented_file_with_derived_names_is_the_default_too() {
    let whole: String = documented()
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(key)
                if ["key = ", "keys = ", "dir = ", "kind = ", "error_rate = "]
                    .iter()
                    .any(|name| key.starts_with(name)) =>
            {
                key
            }
            _ => line,
        })
        .flat_map(|line| [line, "\n"])
        .collect();
    assert_ne!(whole, documented());
    assert_eq!(load(&whole, &[], &[]), Ok(Config::default()));
}

#[test]
fn the_documented_file_has_every_key_once_and_in_order() {
    let mut section = String::new();
    let mut keys = Vec::new();
    for line in documented().lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if let Some((key, _)) = line.trim_start_matches("# ").split_once(" = ")
            && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        {
            keys.push(format!("{section}.{key}"));
        }
    }
    assert_eq!(keys, KEYS);
}
