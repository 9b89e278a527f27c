//! A batch: the items taken, judged and committed together.
//!
//! Its stage is in its type. `Batch<Taken>` becomes `Batch<Judged>` only in the engine, and that
//! `Batch<Logged>` only in the log, whose proof of having written no one else can make. A commit
//! takes logged batches alone, so none can be committed before it is logged.

use std::sync::Arc;

use crate::fingerprint::Fingerprint;
use crate::item::{Items, Unreadable};

/// Some items in some stage of the way from source to sink.
#[derive(Debug)]
pub struct Batch<Stage> {
    items: Arc<Items>,
    stage: Stage,
}

/// Read from the source; nothing is known of its items yet.
#[derive(Debug)]
pub struct Taken;

/// Judged against the filter and the fingerprints in flight; nothing is remembered of it yet.
#[derive(Debug, Default)]
pub struct Judged {
    /// The items that go on to the sink, ascending: unseen ones and those that are not filtered.
    pub(crate) onward: Vec<u32>,
    /// Those of `onward` that were passed on unchecked, as they asked (`dont_filter`), ascending.
    pub(crate) unfiltered: Vec<u32>,
    /// The items that could not be read, ascending, and why.
    pub(crate) rejects: Vec<(u32, Unreadable)>,
    /// What goes on in an item's place, ascending by item; an item that is not here goes on as
    /// received.
    pub(crate) emitted: Vec<(u32, Box<[u8]>)>,
    /// The fingerprints that were unseen, in the order of their items: what the log keeps.
    pub(crate) added: Vec<Fingerprint>,
}

impl Batch<Taken> {
    /// A batch of items as the source gave them.
    pub fn new(items: Items) -> Self {
        Self { items: Arc::new(items), stage: Taken }
    }

    /// What its items were found to be.
    pub(crate) fn judged(&self, stage: Judged) -> Batch<Judged> {
        Batch { items: Arc::clone(&self.items), stage }
    }
}

impl Batch<Judged> {
    /// The same batch once the log has it: `proof` is what the log gave for it.
    pub fn with_proof<Proof>(self, proof: Proof) -> Batch<(Judged, Proof)> {
        Batch { items: self.items, stage: (self.stage, proof) }
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
            rejects: vec![(2, Unreadable::Empty)],
            emitted: vec![(0, b"zero"[..].into()), (4, b"four"[..].into())],
            added: vec![Fingerprint::Raw20([4; 20])],
        })
    }

    #[test]
    fn every_item_goes_one_way() {
        let batch = batch();
        assert_eq!(batch.onward().collect::<Vec<_>>(), [&b"1"[..], b"four"]);
        assert_eq!(batch.seen().collect::<Vec<_>>(), [b"0", b"3"]);
        let rejects: Vec<_> = batch.rejects().collect();
        assert!(matches!(rejects[..], [(b"2", Unreadable::Empty)]));
        assert_eq!(batch.rejected_at().collect::<Vec<_>>(), [2]);
        assert_eq!((batch.onward_len(), batch.unfiltered_len()), (2, 1));
        assert_eq!(batch.added(), [Fingerprint::Raw20([4; 20])]);
        let judged_by: Vec<_> = batch.onward_fingerprints().collect();
        assert_eq!(judged_by, [None, Some(&Fingerprint::Raw20([4; 20]))]);
    }

    #[test]
    fn a_proof_changes_nothing_else() {
        let batch = batch().with_proof("proof");
        assert_eq!(*batch.proof(), "proof");
        assert_eq!(batch.onward().count(), 2);
    }
}
