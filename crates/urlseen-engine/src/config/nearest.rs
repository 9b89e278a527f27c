//! Search for the known word nearest to a misspelt one.

/// Finds the word of `known` that differs from `word` by the fewest edits. The edits may be at most
/// a third of the length of the known word.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .filter_map(|candidate| {
            // The number of edits is at least the difference in length. So the slow comparison is
            // needed only for words of similar length.
            let most = (candidate.chars().count() / 3).max(1);
            let is_similar = word.len().abs_diff(candidate.len()) <= 4 * most;
            let edits = is_similar.then(|| strsim::osa_distance(word, candidate))?;
            (edits <= most).then_some((edits, candidate))
        })
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        assert_eq!(nearest("lgo", ["log"]), Some("log"));
        assert_eq!(nearest("lag", ["log", "legs"]), Some("log"));
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
