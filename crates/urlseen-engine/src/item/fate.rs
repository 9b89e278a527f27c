//! Fate of an item in a judged batch.

use super::batch::Batch;
use super::{Findings, Unreadable};

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

impl<Stage: AsRef<Findings>> Batch<Stage> {
    /// Returns some of the last items as received, with their fates, in order: at most `most` of
    /// each fate. Looks only at a few items, so it is fast for each batch.
    pub fn last_items(&self, most: usize) -> Vec<(&[u8], Fate<'_>)> {
        let Findings { onward, unfiltered, dropped, rejects, .. } = self.findings();
        let over = self.over_limit();
        let is_unseen =
            |index: &&u32| unfiltered.binary_search_by_key(*index, |&(other, _)| other).is_err();
        let is_seen = |index: &u32| {
            onward.binary_search(index).is_err()
                && dropped.binary_search_by_key(index, |&(other, _)| other).is_err()
                && rejects.binary_search_by_key(index, |&(other, _)| other).is_err()
                && over.binary_search_by_key(index, |it| it.index).is_err()
        };
        let all = u32::try_from(self.items().len()).unwrap_or(u32::MAX);
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
        last.into_iter().map(|(index, fate)| (self.items().get(index as usize), fate)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_items_of_each_fate_are_returned_in_order() {
        let items: Vec<_> = (0..100).map(|number: u32| number.to_string()).collect();
        let batch = Batch::new(items.iter().map(String::as_bytes).collect());
        let batch = batch.found(Findings {
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
