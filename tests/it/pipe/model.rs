//! Compares the printed lines with those of an exact set, for random lines of every form and for
//! different numbers of threads.

use std::collections::HashSet;

use super::{filter, gzip, unreadable, zstandard};
use crate::daemon::items::{Identity, Item, Random, item, seeds};

/// Number of lines of a run.
const LINES: usize = 20_000;

/// Number of keys of each form.
const KEYS: usize = 3000;

/// Returns the expected output: the unseen lines, or the seen lines.
fn expected(items: &[Item], print_unseen: bool) -> Vec<u8> {
    let mut met = HashSet::new();
    let mut lines = Vec::new();
    for Item { bytes, identity } in items {
        let is_unseen = match identity {
            Identity::Unreadable => continue,
            Identity::Unfiltered => true,
            Identity::Key(_) => met.insert(identity),
        };
        if is_unseen == print_unseen {
            lines.extend_from_slice(bytes);
            lines.push(b'\n');
        }
    }
    lines
}

#[test]
fn random_lines_pass_as_through_an_exact_set() {
    for seed in seeds(&[1, 2, 3]) {
        let mut random = Random::new(seed);
        let items: Vec<Item> = std::iter::repeat_with(|| item(&mut random, KEYS))
            .filter(|item| !item.bytes.contains(&b'\n'))
            .take(LINES)
            .collect();
        let lines = items.iter().map(|item| &item.bytes[..]).collect::<Vec<_>>().join(&b'\n');
        let bad = items.iter().filter(|item| item.identity == Identity::Unreadable).count();
        let packed: fn(&[u8]) -> Vec<u8> = match random.below(3) {
            0 => <[u8]>::to_vec,
            1 => gzip,
            _ => zstandard,
        };
        let input = packed(&lines);
        for (threads, invert) in [("1", false), ("2", false), ("5", false), ("2", true)] {
            let run = filter(&["--threads", threads]).stdin(input.clone());
            let output = if invert { run.arg("--invert") } else { run }.output();
            let said = format!("seed {seed}, {threads} threads, inverted {invert}");
            assert!(output.stdout == expected(&items, !invert), "other lines: {said}");
            assert_eq!(unreadable(&output.stderr), bad, "{said}: {}", output.stderr);
            assert_eq!(output.code(), Some(i32::from(bad > 0)), "{said}");
        }
    }
}
