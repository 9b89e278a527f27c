//! The deliveries that a consumer knows, compared with those that Redis holds for it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The deliveries of one consumer, shared by its threads.
#[derive(Debug)]
pub(super) struct Deliveries {
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// The id of the next delivery. A pop whose reply was lost is repeated under it.
    next: u64,
    open: HashMap<u64, State>,
}

/// The state of a delivery that was popped and has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The program works on it.
    Held,
    /// The program works on it, and others have it by now.
    Lost,
    /// The program dropped it unfinished.
    Dropped,
}

/// The differences between memory and Redis.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Deliveries that Redis holds and the consumer does not know: of a pop that Redis carried out
    /// late, or of an acknowledgement that a failover undid.
    pub(super) unknown: Vec<u64>,
    /// Deliveries that the program dropped unfinished.
    pub(super) dropped: Vec<u64>,
}

impl Deliveries {
    pub(super) fn new() -> Self {
        Self { known: Mutex::new(Known { next: 1, open: HashMap::new() }) }
    }

    /// The id of the next delivery.
    pub(super) fn next(&self) -> u64 {
        self.known().next
    }

    /// Notes that the next delivery was popped.
    pub(super) fn popped(&self) {
        let mut known = self.known();
        let id = known.next;
        known.open.insert(id, State::Held);
        known.next += 1;
    }

    /// Notes the end of a delivery: finished, rejected or requeued.
    pub(super) fn ended(&self, id: u64) {
        self.known().open.remove(&id);
    }

    /// Notes the end of all: the consumer stops.
    pub(super) fn all_ended(&self) {
        self.known().open.clear();
    }

    /// Notes that the program dropped a delivery, unless that has ended.
    pub(super) fn dropped(&self, id: u64) {
        if let Some(state) = self.known().open.get_mut(&id) {
            *state = State::Dropped;
        }
    }

    /// True unless the delivery has ended, or others have it.
    pub(super) fn is_held(&self, id: u64) -> bool {
        self.known().open.get(&id) == Some(&State::Held)
    }

    /// All that were popped and have not ended.
    pub(super) fn open(&self) -> Vec<u64> {
        self.known().open.keys().copied().collect()
    }

    /// Compares with what Redis holds by now. `before` is [`Deliveries::open`] of before Redis was
    /// asked: a delivery that was popped since is not lost.
    pub(super) fn compare(&self, before: &[u64], held: &[u64]) -> Differences {
        let mut known = self.known();
        for id in before.iter().filter(|id| !held.contains(id)) {
            match known.open.get_mut(id) {
                Some(State::Dropped) => drop(known.open.remove(id)),
                Some(state) => *state = State::Lost,
                None => {}
            }
        }
        let mut differences = Differences::default();
        for &id in held {
            match known.open.get(&id) {
                Some(State::Dropped) => differences.dropped.push(id),
                Some(_) => {}
                // The pop under the next id may have been carried out, and is repeated.
                None if id == known.next => {}
                None => differences.unknown.push(id),
            }
        }
        differences
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // No method panics in the middle of a change.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule H1: the consumer requeues what it does not know, but not a pop that is under way.
    #[test]
    fn a_delivery_of_a_late_pop_is_unknown() {
        let deliveries = Deliveries::new();
        deliveries.popped();
        deliveries.popped();
        deliveries.ended(1);
        let before = deliveries.open();
        let differences = deliveries.compare(&before, &[1, 2, 3]);
        assert_eq!(differences, Differences { unknown: vec![1], dropped: vec![] });
        assert!(deliveries.is_held(2));
    }

    #[test]
    fn a_delivery_that_redis_does_not_hold_is_lost() {
        let deliveries = Deliveries::new();
        deliveries.popped();
        let before = deliveries.open();
        // Popped while Redis was asked.
        deliveries.popped();
        assert_eq!(deliveries.compare(&before, &[]), Differences::default());
        assert!(!deliveries.is_held(1));
        assert!(deliveries.is_held(2));
    }

    #[test]
    fn a_dropped_delivery_is_requeued_until_redis_has_it_no_more() {
        let deliveries = Deliveries::new();
        deliveries.popped();
        deliveries.dropped(1);
        for _ in 0..2 {
            let differences = deliveries.compare(&deliveries.open(), &[1]);
            assert_eq!(differences, Differences { unknown: vec![], dropped: vec![1] });
        }
        deliveries.compare(&[1], &[]);
        assert_eq!(deliveries.open(), [0; 0]);
        // One that has ended is not dropped.
        deliveries.popped();
        deliveries.ended(2);
        deliveries.dropped(2);
        assert_eq!(deliveries.open(), [0; 0]);
    }
}
