//! A batch: the items taken, judged and committed together.
//!
//! Its stage is in its type. The engine makes a `Batch<Judged>` of a `Batch<Claimed>` if its
//! threads hold the filter, and a `Batch<Sifted>` if they only remember some of what a filter in
//! Redis holds. A commit takes a `Batch<Ready>`. A judged batch becomes one by the record that the
//! log gave for it, so none is committed before it is logged. A sifted batch becomes one as it is:
//! its commit judges it.

use std::sync::Arc;

use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::{Head, Position, Record};

use crate::item::{Items, Unreadable};

/// Some items in some stage of the way from source to sink.
#[derive(Debug)]
pub struct Batch<Stage> {
    items: Arc<Items>,
    /// Most bytes that Redis takes of one item at once.
    most: usize,
    stage: Stage,
}

/// Read from the source; nothing is known of its items yet.
#[derive(Debug)]
pub struct Claimed;

/// Judged against the filter and the fingerprints in flight; nothing is remembered of it yet.
#[derive(Debug)]
pub struct Judged(Findings);

/// Looked up in what the threads remember of a filter in Redis, and in the fingerprints in flight:
/// what goes on may have been seen.
#[derive(Debug)]
pub struct Sifted(Findings);

/// Ready to be committed.
#[derive(Debug)]
pub struct Ready {
    findings: Findings,
    base: Head,
    position: Position,
}

/// What the items of a batch were found to be.
#[derive(Debug, Default)]
pub struct Findings {
    /// The items that go on to the sink, ascending: unseen ones and those that are not filtered.
    pub(crate) onward: Vec<u32>,
    /// Those of `onward` that were passed on unchecked, as they asked (`dont_filter`) or as a rule
    /// has it, ascending.
    pub(crate) unfiltered: Vec<u32>,
    /// Those of `unfiltered` that a rule lets pass, ascending, and its number.
    pub(crate) passed: Vec<(u32, u16)>,
    /// The items that could not be read, ascending, and why.
    pub(crate) rejects: Vec<(u32, Unreadable)>,
    /// What goes on in an item's place, ascending by item; an item that is not here goes on as
    /// received.
    pub(crate) emitted: Vec<(u32, Box<[u8]>)>,
    /// The scores of items, for a sink that sorts by them, ascending by item; 0 where an item is
    /// not here.
    pub(crate) scores: Vec<(u32, f64)>,
    /// The fingerprints that were unseen, in the order of their items: what the log keeps.
    pub(crate) added: Vec<Fingerprint>,
}

impl Findings {
    /// Takes out what is said of the items before `end`.
    fn take_before(&mut self, end: usize) -> Self {
        let before = |index: u32| (index as usize) < end;
        let split = |list: &mut Vec<u32>| {
            let rest = list.split_off(list.partition_point(|&index| before(index)));
            std::mem::replace(list, rest)
        };
        let (onward, unfiltered) = (split(&mut self.onward), split(&mut self.unfiltered));
        let later = self.passed.partition_point(|&(index, _)| before(index));
        let later = self.passed.split_off(later);
        let passed = std::mem::replace(&mut self.passed, later);
        let later = self.rejects.partition_point(|&(index, _)| before(index));
        let later = self.rejects.split_off(later);
        let rejects = std::mem::replace(&mut self.rejects, later);
        let later = self.emitted.partition_point(|&(index, _)| before(index));
        let later = self.emitted.split_off(later);
        let emitted = std::mem::replace(&mut self.emitted, later);
        let later = self.scores.partition_point(|&(index, _)| before(index));
        let later = self.scores.split_off(later);
        let scores = std::mem::replace(&mut self.scores, later);
        let later = self.added.split_off(onward.len() - unfiltered.len());
        let added = std::mem::replace(&mut self.added, later);
        Self { onward, unfiltered, passed, rejects, emitted, scores, added }
    }

    /// The same of items that are counted from `first` on.
    fn moved(mut self, first: usize) -> Self {
        let moved = |index: &mut u32| *index -= u32::try_from(first).expect("an index is one");
        self.onward.iter_mut().for_each(moved);
        self.unfiltered.iter_mut().for_each(moved);
        self.passed.iter_mut().for_each(|(index, _)| moved(index));
        self.rejects.iter_mut().for_each(|(index, _)| moved(index));
        self.emitted.iter_mut().for_each(|(index, _)| moved(index));
        self.scores.iter_mut().for_each(|(index, _)| moved(index));
        self
    }
}

impl Batch<Claimed> {
    /// A batch of items as the source gave them.
    pub fn new(items: Items) -> Self {
        Self { items: Arc::new(items), most: usize::MAX, stage: Claimed }
    }

    /// The same for a Redis that takes at most `most` bytes of one item.
    #[must_use]
    pub fn bounded(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// The same batch with what its items were found to be.
    pub fn found(&self, findings: Findings) -> Batch<Findings> {
        Batch { items: Arc::clone(&self.items), most: self.most, stage: findings }
    }
}

impl Batch<Findings> {
    /// The threads that looked hold all of the filter.
    pub(crate) fn judged(self) -> Batch<Judged> {
        self.map(Judged)
    }

    /// The threads that looked hold none of the filter.
    pub fn sifted(self) -> Batch<Sifted> {
        self.map(Sifted)
    }
}

impl Batch<Judged> {
    /// The same batch once the log has it: `record` is what the log gave for it.
    pub fn logged(self, record: &Record) -> Batch<Ready> {
        let (base, position) = (record.base(), record.position());
        self.map(|Judged(findings)| Ready { findings, base, position })
    }
}

impl Batch<Sifted> {
    /// The same in parts, in order, of which none has more than `most` items that go on.
    ///
    /// # Panics
    /// If `most` is 0.
    pub fn parts(self, most: usize) -> Vec<Self> {
        if self.onward_len() <= most {
            return vec![self];
        }
        let Self { items, most: bytes, stage: Sifted(mut rest) } = self;
        let (mut parts, mut from) = (Vec::new(), 0);
        loop {
            // The part ends before the first item that is one too many.
            let to = rest.onward.get(most).map_or(items.len(), |&index| index as usize);
            let stage = Sifted(rest.take_before(to).moved(from));
            parts.push(Self { items: Arc::new(items.part(from..to)), most: bytes, stage });
            if to == items.len() {
                return parts;
            }
            from = to;
        }
    }

    /// The same batch, to be judged by its commit, which follows that of `base`.
    pub fn after(self, base: Head) -> Batch<Ready> {
        // Where there is no log, nothing is numbered in it.
        let position = Position { head: base.next(), ..Position::START };
        self.map(|Sifted(findings)| Ready { findings, base, position })
    }
}

impl Batch<Ready> {
    /// The head that the batch follows.
    pub fn base(&self) -> Head {
        self.stage.base
    }

    /// The head that the batch becomes when it is committed.
    pub fn head(&self) -> Head {
        self.stage.position.head
    }

    /// The position of the log with this batch as its last.
    pub fn position(&self) -> Position {
        self.stage.position
    }
}

impl<Stage> Batch<Stage> {
    /// All items, as received.
    pub fn items(&self) -> &Items {
        &self.items
    }

    /// Most bytes that Redis takes of one of its items.
    pub fn most(&self) -> usize {
        self.most
    }

    fn map<Next>(self, next: impl FnOnce(Stage) -> Next) -> Batch<Next> {
        Batch { items: self.items, most: self.most, stage: next(self.stage) }
    }
}

impl<Stage: AsRef<Findings>> Batch<Stage> {
    /// How many items go on to the sink.
    pub fn onward_len(&self) -> usize {
        self.stage.as_ref().onward.len()
    }

    /// How many of those were passed on unchecked (`dont_filter`).
    pub fn unfiltered_len(&self) -> usize {
        self.stage.as_ref().unfiltered.len()
    }

    /// The numbers of the rules by which items passed, one for each item.
    pub fn passed(&self) -> impl Iterator<Item = u16> {
        self.stage.as_ref().passed.iter().map(|&(_, rule)| rule)
    }

    /// The fingerprints that the filter holds once this batch is committed, and did not before.
    pub fn added(&self) -> &[Fingerprint] {
        &self.stage.as_ref().added
    }

    /// What goes on to the sink, in order.
    pub fn onward(&self) -> impl Iterator<Item = &[u8]> {
        let Findings { onward, emitted, .. } = self.stage.as_ref();
        let mut emitted = emitted.iter().peekable();
        onward.iter().map(move |&index| {
            while emitted.next_if(|(other, _)| *other < index).is_some() {}
            match emitted.next_if(|(other, _)| *other == index) {
                Some((_, bytes)) => &bytes[..],
                None => self.items.get(index as usize),
            }
        })
    }

    /// The scores of what goes on, in order.
    pub fn onward_scores(&self) -> impl Iterator<Item = f64> {
        let Findings { onward, scores, .. } = self.stage.as_ref();
        let mut scores = scores.iter().peekable();
        onward.iter().map(move |&index| {
            while scores.next_if(|(other, _)| *other < index).is_some() {}
            scores.next_if(|(other, _)| *other == index).map_or(0.0, |&(_, score)| score)
        })
    }

    /// What the items that go on are judged by, in their order; `None` for those that are passed on
    /// unchecked.
    pub fn onward_fingerprints(&self) -> impl Iterator<Item = Option<&Fingerprint>> {
        let Findings { onward, unfiltered, added, .. } = self.stage.as_ref();
        let (mut unfiltered, mut added) = (unfiltered.iter().peekable(), added.iter());
        onward.iter().map(move |index| match unfiltered.next_if_eq(&index) {
            Some(_) => None,
            None => added.next(),
        })
    }

    /// The items that could not be read, as received, in order, and why.
    pub fn rejects(&self) -> impl ExactSizeIterator<Item = (&[u8], &Unreadable)> {
        let rejects = self.stage.as_ref().rejects.iter();
        rejects.map(|(index, reason)| (self.items.get(*index as usize), reason))
    }

    /// Where in [`Batch::items`] each item stands that could not be read.
    pub fn rejected_at(&self) -> impl ExactSizeIterator<Item = usize> {
        self.stage.as_ref().rejects.iter().map(|(index, _)| *index as usize)
    }

    /// The items that were seen before, as received, in order.
    pub fn seen(&self) -> impl Iterator<Item = &[u8]> {
        let Findings { onward, rejects, .. } = self.stage.as_ref();
        let mut others = (onward.iter().peekable(), rejects.iter().peekable());
        self.items.iter().zip(0u32..).filter_map(move |(item, index)| {
            let goes_on = others.0.next_if(|&&other| other == index).is_some();
            let rejected = others.1.next_if(|(other, _)| *other == index).is_some();
            (!goes_on && !rejected).then_some(item)
        })
    }
}

impl AsRef<Findings> for Judged {
    fn as_ref(&self) -> &Findings {
        &self.0
    }
}

impl AsRef<Findings> for Sifted {
    fn as_ref(&self) -> &Findings {
        &self.0
    }
}

impl AsRef<Findings> for Ready {
    fn as_ref(&self) -> &Findings {
        &self.findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Batch<Sifted> {
        let items = [&b"0"[..], b"1", b"2", b"3", b"4"].into_iter().collect();
        let found = Batch::new(items).found(Findings {
            onward: vec![1, 4],
            unfiltered: vec![1],
            passed: vec![(1, 7)],
            rejects: vec![(2, Unreadable::Empty)],
            emitted: vec![(0, b"zero"[..].into()), (4, b"four"[..].into())],
            scores: vec![(0, 1.0), (4, -4.0)],
            added: vec![Fingerprint::Raw20([4; 20])],
        });
        found.sifted()
    }

    #[test]
    fn every_item_goes_one_way() {
        let batch = batch();
        assert_eq!(batch.onward().collect::<Vec<_>>(), [&b"1"[..], b"four"]);
        assert_eq!(batch.onward_scores().collect::<Vec<_>>(), [0.0, -4.0]);
        assert_eq!(batch.seen().collect::<Vec<_>>(), [b"0", b"3"]);
        let rejects: Vec<_> = batch.rejects().collect();
        assert!(matches!(rejects[..], [(b"2", Unreadable::Empty)]));
        assert_eq!(batch.rejected_at().collect::<Vec<_>>(), [2]);
        assert_eq!((batch.onward_len(), batch.unfiltered_len()), (2, 1));
        assert_eq!(batch.passed().collect::<Vec<_>>(), [7]);
        assert_eq!(batch.added(), [Fingerprint::Raw20([4; 20])]);
        let judged_by: Vec<_> = batch.onward_fingerprints().collect();
        assert_eq!(judged_by, [None, Some(&Fingerprint::Raw20([4; 20]))]);
    }

    #[test]
    fn parts_are_the_whole_in_order() {
        for most in 1..=3 {
            let parts = batch().parts(most);
            assert_eq!(parts.len(), if most == 1 { 2 } else { 1 });
            assert!(parts.iter().all(|part| part.onward_len() <= most));
            let all = |of: fn(&Batch<Sifted>) -> Vec<Vec<u8>>| parts.iter().flat_map(of).collect();
            let items: Vec<Vec<u8>> = all(|part| part.items().iter().map(<[u8]>::to_vec).collect());
            assert_eq!(items, [b"0", b"1", b"2", b"3", b"4"]);
            let onward: Vec<Vec<u8>> = all(|part| part.onward().map(<[u8]>::to_vec).collect());
            assert_eq!(onward, [&b"1"[..], b"four"]);
            assert_eq!(parts.iter().flat_map(Batch::passed).collect::<Vec<_>>(), [7]);
            let scores: Vec<_> = parts.iter().flat_map(Batch::onward_scores).collect();
            assert_eq!(scores, [0.0, -4.0]);
            let seen: Vec<Vec<u8>> = all(|part| part.seen().map(<[u8]>::to_vec).collect());
            assert_eq!(seen, [b"0", b"3"]);
            let rejects: Vec<Vec<u8>> =
                all(|part| part.rejects().map(|(item, _)| item.to_vec()).collect());
            assert_eq!(rejects, [b"2"]);
            let judged_by: Vec<_> = parts.iter().flat_map(Batch::onward_fingerprints).collect();
            assert_eq!(judged_by, [None, Some(&Fingerprint::Raw20([4; 20]))]);
        }
    }

    #[test]
    fn a_batch_that_is_ready_follows_its_base() {
        let batch = batch().after(Head::START);
        assert_eq!((batch.base(), batch.head().seq), (Head::START, 1));
        assert_eq!(batch.onward().count(), 2);
    }
}
