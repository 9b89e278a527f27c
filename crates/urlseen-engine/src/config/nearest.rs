//! Search for the known word nearest to a misspelt one.

/// Finds the word of `known` that `word` was probably meant to be. It needs the fewest edits, and
/// at most a third of the known word's length.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .filter_map(|candidate| {
            let most = (candidate.chars().count() / 3).max(1);
            edits(word, candidate, most).map(|edits| (edits, candidate))
        })
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Computes the optimal string alignment distance: the number of characters to insert, delete,
/// replace or swap with their neighbour. Returns `None` if it is over `most`.
fn edits(from: &str, to: &str, most: usize) -> Option<usize> {
    // The distance is at least the difference in length, so a very long word costs nothing.
    if from.len().abs_diff(to.len()) > 4 * most {
        return None;
    }
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before = vec![0; to.len() + 1];
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for i in 0..from.len() {
        let mut row = vec![i + 1; to.len() + 1];
        for j in 0..to.len() {
            let replaced = above[j] + usize::from(from[i] != to[j]);
            row[j + 1] = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    Some(above[to.len()]).filter(|edits| *edits <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (from, to, wanted) in [
            ("capacity", "capacity", 0),
            ("capasity", "capacity", 1),
            ("capacit", "capacity", 1),
            ("capaccity", "capacity", 1),
            ("cpaacity", "capacity", 1),
            ("kitten", "sitting", 3),
            ("", "abc", 3),
        ] {
            assert_eq!(edits(from, to, 9), Some(wanted), "{from} -> {to}");
        }
        assert_eq!(edits("kitten", "sitting", 2), None);
    }

    #[test]
    fn only_near_words_are_suggested() {
        let known = ["filter", "fingerprint", "log"];
        assert_eq!(nearest("fliter", known), Some("filter"));
        assert_eq!(nearest("logs", known), Some("log"));
        assert_eq!(nearest("queue", known), None);
        assert_eq!(nearest(&"filter".repeat(1000), known), None);
    }
}
