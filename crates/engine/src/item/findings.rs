//! Findings about the items of a batch, and the fates of its last items.

use urlseen_filter::Lifetimes;
use urlseen_filter::limit::Counted;
use urlseen_fingerprint::Fingerprint;

use super::Unreadable;
use super::batch::Batch;

/// Findings about the items of a batch.
#[derive(Debug, Default)]
pub struct Findings {
    /// Indexes of the items for the sink, ascending: unseen items and unfiltered items.
    pub onward: Vec<u32>,
    /// Indexes of the unfiltered items, ascending. `onward` also has these indexes. The items pass
    /// unchecked, because of the rule with this number, or because of their `dont_filter`.
    pub unfiltered: Vec<(u32, Option<u16>)>,
    /// Indexes of the items that a rule drops, ascending, with the number of the rule.
    pub(crate) dropped: Vec<(u32, u16)>,
    /// Indexes of the items that could not be read, ascending, with the reason.
    pub(crate) rejects: Vec<(u32, Unreadable)>,
    /// Replacements for the sink, each with the index of its item, in ascending order of the index.
    /// An item without a replacement is pushed as received.
    pub(crate) emitted: Vec<(u32, Box<[u8]>)>,
    /// Scores for a sink that is a sorted set, each with the index of its item, in ascending order
    /// of the index. An item without a score has score 0.
    pub(crate) scores: Vec<(u32, f64)>,
    /// Unseen fingerprints in the order of their items. The log stores these.
    pub added: Vec<Fingerprint>,
    /// Lifetimes of the fingerprints in `added`.
    pub(crate) lifetimes: Lifetimes,
    /// Seen fingerprints in the order of their items, if the engine keeps them.
    pub seen: Vec<Fingerprint>,
    /// Number of items with a fingerprint of their own.
    pub own_fingerprints: usize,
    /// Changes of the counts of limits by the items that are let through.
    pub(crate) counted: Vec<Counted>,
    /// Unseen items that are over a limit, in order. They are neither for the sink nor for the
    /// filter.
    pub over_limit: Vec<OverLimit>,
}

/// Unseen item that is over a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverLimit {
    /// Index of the item in its batch.
    pub index: u32,
    /// Fingerprint of the item.
    pub fingerprint: Fingerprint,
    /// Number of the first rule whose group is full.
    pub rule: u16,
    /// Name of this group for people.
    pub group: Box<str>,
}

impl Findings {
    /// Adds the findings about later items that need no judge.
    pub(crate) fn append(&mut self, later: Self) {
        self.unfiltered.extend(later.unfiltered);
        self.dropped.extend(later.dropped);
        self.rejects.extend(later.rejects);
        self.emitted.extend(later.emitted);
        self.scores.extend(later.scores);
        self.own_fingerprints += later.own_fingerprints;
    }

    /// Removes and returns the entries of the items before `end`.
    pub(super) fn take_before(&mut self, end: usize) -> Self {
        let before = |index: u32| (index as usize) < end;
        let onward = split(&mut self.onward, |&index| before(index));
        let unfiltered = split(&mut self.unfiltered, |&(index, _)| before(index));
        let later = self.added.split_off(onward.len() - unfiltered.len());
        Self {
            onward,
            unfiltered,
            dropped: split(&mut self.dropped, |&(index, _)| before(index)),
            rejects: split(&mut self.rejects, |&(index, _)| before(index)),
            emitted: split(&mut self.emitted, |&(index, _)| before(index)),
            scores: split(&mut self.scores, |&(index, _)| before(index)),
            added: std::mem::replace(&mut self.added, later),
            lifetimes: Lifetimes::default(),
            seen: Vec::new(),
            // The number is not known for a part of a batch, so the first part has it.
            own_fingerprints: std::mem::take(&mut self.own_fingerprints),
            counted: Vec::new(),
            over_limit: Vec::new(),
        }
    }

    /// Renumbers the entries so that item `first` becomes item 0.
    pub(super) fn moved(mut self, first: usize) -> Self {
        let moved = |index: &mut u32| *index -= u32::try_from(first).expect("an index is a u32");
        self.onward.iter_mut().for_each(moved);
        self.unfiltered.iter_mut().for_each(|(index, _)| moved(index));
        self.dropped.iter_mut().for_each(|(index, _)| moved(index));
        self.rejects.iter_mut().for_each(|(index, _)| moved(index));
        self.emitted.iter_mut().for_each(|(index, _)| moved(index));
        self.scores.iter_mut().for_each(|(index, _)| moved(index));
        self
    }
}

/// Removes entries from the start of a list as long as `is_before` is true for them, and returns
/// these entries.
fn split<T>(list: &mut Vec<T>, is_before: impl Fn(&T) -> bool) -> Vec<T> {
    let rest = list.split_off(list.iter().take_while(|it| is_before(it)).count());
    std::mem::replace(list, rest)
}

/// Number of items at the end of a batch that may be looked at for each wanted seen item.
const LOOKED: usize = 4;

/// Fate of an item, with the rule or the reason that decided it.
#[derive(Debug, Clone, Copy)]
pub enum Fate<'a> {
    /// The item goes to the sink.
    Unseen,
    /// The item was seen before.
    Seen,
    /// The item goes to the sink unchecked, maybe because of the rule of `[[pass]]` with this
    /// number.
    Unfiltered(Option<u16>),
    /// The rule of `[[drop]]` with this number drops the item.
    Dropped(u16),
    /// The item is unseen, and over the limit of the rule of `[[limit]]` with this number.
    OverLimit(u16),
    /// The item cannot be read.
    Rejected(&'a Unreadable),
}

impl<Stage> Batch<Stage> {
    /// Returns some of the last items as received, with their fates, in order: at most `most` of
    /// each fate. Looks only at a few items, so it is fast for each batch.
    pub fn last_items(&self, most: usize) -> Vec<(&[u8], Fate<'_>)> {
        let Findings { onward, unfiltered, dropped, rejects, .. } = &*self.findings;
        let over = &self.findings.over_limit;
        let is_unseen =
            |index: &&u32| unfiltered.binary_search_by_key(*index, |&(other, _)| other).is_err();
        let is_seen = |index: &u32| {
            onward.binary_search(index).is_err()
                && dropped.binary_search_by_key(index, |&(other, _)| other).is_err()
                && rejects.binary_search_by_key(index, |&(other, _)| other).is_err()
                && over.binary_search_by_key(index, |it| it.index).is_err()
        };
        let all = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        let unseen = onward.iter().rev().filter(is_unseen).map(|&index| (index, Fate::Unseen));
        let seen = (0..all).rev().take(LOOKED * most).filter(is_seen);
        let seen = seen.map(|index| (index, Fate::Seen));
        let unfiltered = unfiltered.iter().rev();
        let unfiltered = unfiltered.map(|&(index, rule)| (index, Fate::Unfiltered(rule)));
        let dropped = dropped.iter().rev().map(|&(index, rule)| (index, Fate::Dropped(rule)));
        let over = over.iter().rev().map(|it| (it.index, Fate::OverLimit(it.rule)));
        let rejects = rejects.iter().rev().map(|(index, why)| (*index, Fate::Rejected(why)));
        let mut last: Vec<_> = unseen.take(most).chain(seen.take(most)).collect();
        last.extend(unfiltered.take(most).chain(dropped.take(most)));
        last.extend(over.take(most).chain(rejects.take(most)));
        last.sort_unstable_by_key(|&(index, _)| index);
        last.into_iter().map(|(index, fate)| (self.items.get(index as usize), fate)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_items_of_each_fate_are_returned_in_order() {
        let items: Vec<_> = (0..100).map(|number: u32| number.to_string()).collect();
        let batch = Batch::new(items.iter().map(String::as_bytes).collect());
        let batch = batch.judged(Findings {
            onward: (0..40).collect(),
            unfiltered: vec![(7, None), (9, Some(5)), (20, None)],
            dropped: vec![(41, 1), (50, 2)],
            rejects: vec![(60, Unreadable::Empty), (99, Unreadable::NoTab)],
            ..Findings::default()
        });
        let batch = batch.sifted();
        let shown = |most| {
            let last = batch.last_items(most).into_iter();
            let text = |item: &[u8]| String::from_utf8(item.to_vec()).unwrap();
            last.map(|(item, fate)| (text(item), format!("{fate:?}"))).collect::<Vec<_>>()
        };
        let expected = [
            ("9", "Unfiltered(Some(5))"),
            ("20", "Unfiltered(None)"),
            ("38", "Unseen"),
            ("39", "Unseen"),
            ("41", "Dropped(1)"),
            ("50", "Dropped(2)"),
            ("60", "Rejected(Empty)"),
            ("97", "Seen"),
            ("98", "Seen"),
            ("99", "Rejected(NoTab)"),
        ];
        let expected = expected.map(|(item, fate)| (item.to_owned(), fate.to_owned()));
        assert_eq!(shown(2), expected);
        assert_eq!(shown(100).len(), 100, "each item has a fate");
        assert_eq!(shown(0), []);
    }
}
