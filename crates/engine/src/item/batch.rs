//! Batch of items that are claimed, judged and committed together.
//!
//! The type of a batch states its stage. If the engine's threads hold the filter, the engine turns
//! a `Batch<Claimed>` into a `Batch<Judged>`. If the threads only cache a part of a filter in
//! Redis, the engine turns the claimed batch into a `Batch<Sifted>`. A commit takes a
//! `Batch<Ready>`. A judged batch becomes ready with the record that the log returned for it, so no
//! batch is committed before it is logged. A sifted batch becomes ready as it is, because its
//! commit judges it.

use std::sync::Arc;

use urlseen_fingerprint::Fingerprint;
use urlseen_storage::{Head, Logged, Position, Record};

use super::findings::Findings;
use crate::item::{Items, Unreadable};

/// Batch of items in one stage on their way from source to sink.
#[derive(Debug)]
pub struct Batch<Stage> {
    /// All items, as received.
    pub items: Arc<Items>,
    /// Findings about the items; nothing in the stage [`Claimed`].
    pub findings: Box<Findings>,
    stage: Stage,
}

/// Stage of items that were read from the source and are not judged.
#[derive(Debug)]
pub struct Claimed;

/// Stage of items that were judged against the filter and the fingerprints in flight. The filter
/// does not hold them yet.
#[derive(Debug)]
pub struct Judged;

/// Stage of items that were looked up in the cached part of a filter in Redis, and in the
/// fingerprints in flight. The commit may still find that some of the items for the sink were seen
/// before.
#[derive(Debug)]
pub struct Sifted;

/// Stage of a batch that can be committed.
#[derive(Debug)]
pub struct Ready {
    base: Head,
    logged: Logged,
}

impl Batch<Claimed> {
    /// Makes a batch of items that were read from the source.
    pub fn new(items: Items) -> Self {
        Self { items: Arc::new(items), findings: Box::default(), stage: Claimed }
    }

    /// Adds the findings of the judge about the items.
    pub fn judged(&self, findings: Findings) -> Batch<Judged> {
        Batch { items: Arc::clone(&self.items), findings: Box::new(findings), stage: Judged }
    }
}

impl Batch<Judged> {
    /// Declares the batch sifted, because the judge does not have the filter.
    pub fn sifted(self) -> Batch<Sifted> {
        self.with(Sifted)
    }

    /// Makes the batch ready. `record` is the value that the log returned for it.
    pub(crate) fn logged(self, record: &Record) -> Batch<Ready> {
        self.with(Ready { base: record.base, logged: record.logged })
    }
}

impl Batch<Sifted> {
    /// Splits the batch into parts, in the order of its items. Each part has at most `most` items
    /// for the sink.
    ///
    /// # Panics
    /// Panics if `most` is 0.
    pub fn parts(self, most: usize) -> Vec<Self> {
        if self.findings.onward.len() <= most {
            return vec![self];
        }
        let Self { items, findings: mut rest, .. } = self;
        let (mut parts, mut from) = (Vec::new(), 0);
        loop {
            // The part ends before the first item for the sink that would exceed `most`.
            let to = rest.onward.get(most).map_or(items.len(), |&index| index as usize);
            let findings = Box::new(rest.take_before(to).moved(from));
            parts.push(Self { items: Arc::new(items.part(from..to)), findings, stage: Sifted });
            if to == items.len() {
                return parts;
            }
            from = to;
        }
    }

    /// Makes the batch ready. Its commit judges the items, and follows the commit with the head
    /// `base`.
    pub fn after(self, base: Head) -> Batch<Ready> {
        // The batch is not logged, so the position has only a head.
        let at = Position { head: base.next(), ..Position::START };
        let logged = Logged { at, ..Logged::START };
        self.with(Ready { base, logged })
    }
}

impl Batch<Ready> {
    /// Returns the head before the commit of the batch.
    pub fn base(&self) -> Head {
        self.stage.base
    }

    /// Returns the head after the commit of the batch.
    pub fn head(&self) -> Head {
        self.stage.logged.at.head
    }

    /// Returns the end of the log after this batch.
    pub fn end(&self) -> Logged {
        self.stage.logged
    }
}

impl<Stage> Batch<Stage> {
    fn with<Next>(self, stage: Next) -> Batch<Next> {
        Batch { items: self.items, findings: self.findings, stage }
    }

    /// Iterates over the items that a rule let pass, as received, each with the number of the rule.
    pub fn passed(&self) -> impl Iterator<Item = (&[u8], u16)> {
        let unfiltered = self.findings.unfiltered.iter();
        unfiltered.filter_map(|&(index, rule)| Some((self.items.get(index as usize), rule?)))
    }

    /// Iterates over the items that a rule drops, as received, each with the number of the rule.
    pub fn dropped(&self) -> impl ExactSizeIterator<Item = (&[u8], u16)> {
        let dropped = self.findings.dropped.iter();
        dropped.map(|&(index, rule)| (self.items.get(index as usize), rule))
    }

    /// Returns the number of items that were seen before.
    pub fn seen_len(&self) -> usize {
        let Findings { onward, dropped, rejects, .. } = &*self.findings;
        let others = onward.len() + dropped.len() + rejects.len() + self.findings.over_limit.len();
        self.items.len() - others
    }

    /// Iterates over the contents for the sink, in order: replacements, or items as received.
    pub fn onward(&self) -> impl Iterator<Item = &[u8]> {
        let Findings { onward, emitted, .. } = &*self.findings;
        let mut emitted = emitted.iter().peekable();
        onward.iter().map(move |&index| {
            while emitted.next_if(|(other, _)| *other < index).is_some() {}
            match emitted.next_if(|(other, _)| *other == index) {
                Some((_, bytes)) => &bytes[..],
                None => self.items.get(index as usize),
            }
        })
    }

    /// Iterates over the scores of the items for the sink, in order.
    pub fn onward_scores(&self) -> impl Iterator<Item = f64> {
        let Findings { onward, scores, .. } = &*self.findings;
        let mut scores = scores.iter().peekable();
        onward.iter().map(move |&index| {
            while scores.next_if(|(other, _)| *other < index).is_some() {}
            scores.next_if(|(other, _)| *other == index).map_or(0.0, |&(_, score)| score)
        })
    }

    /// Iterates over the fingerprints of the items for the sink, in order; `None` for an item that
    /// passed unchecked.
    pub fn onward_fingerprints(&self) -> impl Iterator<Item = Option<&Fingerprint>> {
        let Findings { onward, unfiltered, added, .. } = &*self.findings;
        let mut unfiltered = unfiltered.iter().map(|(index, _)| index).peekable();
        let mut added = added.iter();
        onward.iter().map(move |index| match unfiltered.next_if_eq(&index) {
            Some(_) => None,
            None => added.next(),
        })
    }

    /// Iterates over the items that could not be read, as received and in order, with the reason.
    pub fn rejects(&self) -> impl ExactSizeIterator<Item = (&[u8], &Unreadable)> {
        let rejects = self.findings.rejects.iter();
        rejects.map(|(index, reason)| (self.items.get(*index as usize), reason))
    }

    /// Iterates over the unreadable items. Yields the index of each of them in [`Batch::items`].
    pub(crate) fn rejected_at(&self) -> impl ExactSizeIterator<Item = usize> {
        self.findings.rejects.iter().map(|(index, _)| *index as usize)
    }

    /// Iterates over the items that were seen before, as received and in order.
    pub fn seen(&self) -> impl Iterator<Item = &[u8]> {
        let Findings { onward, dropped, rejects, .. } = &*self.findings;
        let mut onward = onward.iter().peekable();
        let mut dropped = dropped.iter().map(|(index, _)| index).peekable();
        let mut rejects = rejects.iter().map(|(index, _)| index).peekable();
        let mut over = self.findings.over_limit.iter().map(|over| &over.index).peekable();
        self.items.iter().zip(0u32..).filter_map(move |(item, index)| {
            let is_other = onward.next_if_eq(&&index).is_some()
                || dropped.next_if_eq(&&index).is_some()
                || rejects.next_if_eq(&&index).is_some()
                || over.next_if_eq(&&index).is_some();
            (!is_other).then_some(item)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Batch<Sifted> {
        let items = [&b"0"[..], b"1", b"2", b"3", b"4", b"5"].into_iter().collect();
        let found = Batch::new(items).judged(Findings {
            onward: vec![1, 4],
            unfiltered: vec![(1, Some(7))],
            dropped: vec![(5, 3)],
            rejects: vec![(2, Unreadable::Empty)],
            emitted: vec![(0, b"zero"[..].into()), (4, b"four"[..].into())],
            scores: vec![(0, 1.0), (4, -4.0)],
            added: vec![Fingerprint::Raw20([4; 20])],
            ..Findings::default()
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
        assert_eq!((batch.findings.onward.len(), batch.findings.unfiltered.len()), (2, 1));
        assert_eq!(batch.passed().collect::<Vec<_>>(), [(&b"1"[..], 7)]);
        assert_eq!(batch.dropped().collect::<Vec<_>>(), [(&b"5"[..], 3)]);
        assert_eq!(batch.seen_len(), 2);
        assert_eq!(batch.findings.added, [Fingerprint::Raw20([4; 20])]);
        let judged_by: Vec<_> = batch.onward_fingerprints().collect();
        assert_eq!(judged_by, [None, Some(&Fingerprint::Raw20([4; 20]))]);
    }

    #[test]
    fn parts_are_the_whole_in_order() {
        for most in 1..=3 {
            let parts = batch().parts(most);
            assert_eq!(parts.len(), if most == 1 { 2 } else { 1 });
            assert!(parts.iter().all(|part| part.findings.onward.len() <= most));
            let all = |of: fn(&Batch<Sifted>) -> Vec<Vec<u8>>| parts.iter().flat_map(of).collect();
            let items: Vec<Vec<u8>> = all(|part| part.items.iter().map(<[u8]>::to_vec).collect());
            assert_eq!(items, [b"0", b"1", b"2", b"3", b"4", b"5"]);
            let onward: Vec<Vec<u8>> = all(|part| part.onward().map(<[u8]>::to_vec).collect());
            assert_eq!(onward, [&b"1"[..], b"four"]);
            let passed: Vec<_> = parts.iter().flat_map(Batch::passed).collect();
            assert_eq!(passed, [(&b"1"[..], 7)]);
            let dropped: Vec<_> = parts.iter().flat_map(Batch::dropped).collect();
            assert_eq!(dropped, [(&b"5"[..], 3)]);
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
