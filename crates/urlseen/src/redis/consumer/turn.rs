//! Order in which a consumer pops from its partitions.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::{Error, ErrorKind};
use urlseen_core::filter::id;

/// Own partitions of a consumer, from which it pops in turn.
pub(super) struct Turn {
    own: Vec<usize>,
    /// Place in `own` of the partition from which the next call pops first.
    next: AtomicUsize,
}

impl Turn {
    /// Begins with a random one of the own partitions, because many consumers may start at the same
    /// time. `chosen` lists the own partitions. If it is empty, all `count` partitions are.
    pub(super) fn new(chosen: &[u16], count: usize) -> Result<Self, Error> {
        if let Some(missing) = chosen.iter().find(|&&number| usize::from(number) >= count) {
            let text = format!(
                "ConsumerOptions: partitions has {missing}; the crawl has {count}, with the \
                 numbers 0 to {}. urlseen divides a crawl at its start (partitions.count in its \
                 config), so start it before the consumers",
                count - 1
            );
            return Err(Error::new(ErrorKind::Spec, text));
        }
        let is_own = |number: &usize| {
            chosen.is_empty() || chosen.iter().any(|&it| usize::from(it) == *number)
        };
        let own: Vec<_> = (0..count).filter(is_own).collect();
        let random = usize::try_from(id::random() >> 32).unwrap_or(0);
        let next = AtomicUsize::new(random % own.len());
        Ok(Self { own, next })
    }

    /// Returns the own partitions, in ascending order.
    pub(super) fn own(&self) -> &[usize] {
        &self.own
    }

    /// Returns the own partitions in the order of this pop. The next pop begins with the second
    /// one, even if this pop fails.
    pub(super) fn take(&self) -> impl Iterator<Item = usize> {
        let first = self.next.fetch_add(1, Relaxed) % self.own.len();
        self.own[first..].iter().chain(&self.own[..first]).copied()
    }

    /// Records that a pop got a request from a partition, so that the next pop begins with the
    /// partition after it.
    pub(super) fn popped(&self, partition: usize) {
        let place = self.own.binary_search(&partition).unwrap_or(0);
        self.next.store(place + 1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_own_partition_is_first_in_its_turn() {
        let turn = Turn::new(&[7, 2, 4, 2], 8).unwrap();
        assert_eq!(turn.own(), [2, 4, 7]);
        turn.next.store(0, Relaxed);
        let firsts: Vec<_> = (0..4).map(|_| turn.take().next().unwrap()).collect();
        assert_eq!(firsts, [2, 4, 7, 2]);
        turn.popped(7);
        assert_eq!(turn.take().collect::<Vec<_>>(), [2, 4, 7]);
        assert_eq!(turn.take().collect::<Vec<_>>(), [4, 7, 2]);
        assert_eq!(Turn::new(&[], 3).unwrap().own(), [0, 1, 2]);
    }

    #[test]
    fn a_partition_that_the_crawl_does_not_have_is_refused() {
        let error = Turn::new(&[0, 4], 4).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Spec);
        assert!(error.to_string().contains("has 4; the crawl has 4, with the numbers 0 to 3"));
    }
}
