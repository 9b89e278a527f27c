//! A batch: the items taken, judged and committed together.
//!
//! Its stage is in its type. `Batch<Claimed>` becomes `Batch<Judged>` only in the engine, and that
//! `Batch<Logged>` only in the log, whose proof of having written no one else can make. A commit
//! takes logged batches alone, so none can be committed before it is logged.

use std::sync::Arc;

use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::Record;

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
#[derive(Debug, Default)]
pub struct Judged {
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

/// A batch that the log has.
pub type Logged = Batch<(Judged, Record)>;

impl Judged {
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

    /// What its items were found to be.
    pub fn judged(&self, stage: Judged) -> Batch<Judged> {
        Batch { items: Arc::clone(&self.items), most: self.most, stage }
    }
}

impl Batch<Judged> {
    /// The same in parts, in order, of which none has more than `most` items that go on.
    ///
    /// # Panics
    /// If `most` is 0.
    pub fn parts(self, most: usize) -> Vec<Self> {
        if self.stage.onward.len() <= most {
            return vec![self];
        }
        let Self { items, most: bytes, stage: mut rest } = self;
        let (mut parts, mut from) = (Vec::new(), 0);
        loop {
            // The part ends before the first item that is one too many.
            let to = rest.onward.get(most).map_or(items.len(), |&index| index as usize);
            let stage = rest.take_before(to).moved(from);
            parts.push(Self { items: Arc::new(items.part(from..to)), most: bytes, stage });
            if to == items.len() {
                return parts;
            }
            from = to;
        }
    }

    /// The same batch once the log has it: `proof` is what the log gave for it.
    pub fn with_proof<Proof>(self, proof: Proof) -> Batch<(Judged, Proof)> {
        Batch { items: self.items, most: self.most, stage: (self.stage, proof) }
    }
}

impl<Proof> Batch<(Judged, Proof)> {
    /// What the log gave for this batch.
    pub fn proof(&self) -> &Proof {
        &self.stage.1
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
}

impl<Stage: AsRef<Judged>> Batch<Stage> {
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
        let Judged { onward, emitted, .. } = self.stage.as_ref();
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
        let Judged { onward, scores, .. } = self.stage.as_ref();
        let mut scores = scores.iter().peekable();
        onward.iter().map(move |&index| {
            while scores.next_if(|(other, _)| *other < index).is_some() {}
            scores.next_if(|(other, _)| *other == index).map_or(0.0, |&(_, score)| score)
        })
    }

    /// What the items that go on are judged by, in their order; `None` for those that are passed on
    /// unchecked.
    pub fn onward_fingerprints(&self) -> impl Iterator<Item = Option<&Fingerprint>> {
        let Judged { onward, unfiltered, added, .. } = self.stage.as_ref();
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
        let Judged { onward, rejects, .. } = self.stage.as_ref();
        let mut others = (onward.iter().peekable(), rejects.iter().peekable());
        self.items.iter().zip(0u32..).filter_map(move |(item, index)| {
            let goes_on = others.0.next_if(|&&other| other == index).is_some();
            let rejected = others.1.next_if(|(other, _)| *other == index).is_some();
            (!goes_on && !rejected).then_some(item)
        })
    }
}

impl AsRef<Judged> for Judged {
    fn as_ref(&self) -> &Judged {
        self
    }
}

impl<Proof> AsRef<Judged> for (Judged, Proof) {
    fn as_ref(&self) -> &Judged {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Batch<Judged> {
        let items = [&b"0"[..], b"1", b"2", b"3", b"4"].into_iter().collect();
        Batch::new(items).judged(Judged {
            onward: vec![1, 4],
            unfiltered: vec![1],
            passed: vec![(1, 7)],
            rejects: vec![(2, Unreadable::Empty)],
            emitted: vec![(0, b"zero"[..].into()), (4, b"four"[..].into())],
            scores: vec![(0, 1.0), (4, -4.0)],
            added: vec![Fingerprint::Raw20([4; 20])],
        })
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
            let all = |of: fn(&Batch<Judged>) -> Vec<Vec<u8>>| parts.iter().flat_map(of).collect();
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
    fn a_proof_changes_nothing_else() {
        let batch = batch().with_proof("proof");
        assert_eq!(*batch.proof(), "proof");
        assert_eq!(batch.onward().count(), 2);
    }
}
