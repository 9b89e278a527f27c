//! Findings about the items of a batch.

use urlseen_core::filter::lifetime::Lifetimes;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::limit::Counted;

use super::Unreadable;

/// Findings about the items of a batch.
#[derive(Debug, Default)]
pub struct Findings {
    /// Indexes of the items for the sink, ascending: unseen items and unfiltered items.
    pub(crate) onward: Vec<u32>,
    /// Indexes of the unfiltered items, ascending. `onward` also has these indexes. The items pass
    /// unchecked, because of the rule with this number, or because of their `dont_filter`.
    pub(crate) unfiltered: Vec<(u32, Option<u16>)>,
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
    pub(crate) added: Vec<Fingerprint>,
    /// Lifetimes of the fingerprints in `added`.
    pub(crate) lifetimes: Lifetimes,
    /// Seen fingerprints in the order of their items, if the engine keeps them.
    pub(crate) seen: Vec<Fingerprint>,
    /// Number of items with a fingerprint of their own.
    pub(crate) own_fingerprints: usize,
    /// Decisions of the limits about the unseen items; `None` if there are none.
    pub(crate) limited: Option<Box<Limited>>,
}

/// Decisions of the limits about the unseen items of a batch.
#[derive(Debug, Default)]
pub struct Limited {
    /// Changes of the counts by the items that are let through.
    pub(crate) counted: Vec<Counted>,
    /// Items over a limit, in order. They are neither for the sink nor for the filter.
    pub(crate) over: Vec<OverLimit>,
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

impl Limited {
    /// Returns true if no limit concerns any item.
    pub(crate) fn is_empty(&self) -> bool {
        self.counted.is_empty() && self.over.is_empty()
    }
}

impl Findings {
    /// Returns the changes of the counts by the items that limits let through.
    pub(crate) fn counted(&self) -> &[Counted] {
        self.limited.as_ref().map_or(&[], |limited| &limited.counted)
    }

    /// Returns the unseen items that are over a limit, in order.
    pub(crate) fn over_limit(&self) -> &[OverLimit] {
        self.limited.as_ref().map_or(&[], |limited| &limited.over)
    }

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
            limited: None,
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
    let rest = list.split_off(list.partition_point(is_before));
    std::mem::replace(list, rest)
}
