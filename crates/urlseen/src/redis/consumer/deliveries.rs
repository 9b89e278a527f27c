//! Requests that a consumer has popped and holds, and the comparison of these deliveries with those
//! in Redis.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Deliveries of one consumer, which its threads share.
#[derive(Debug)]
pub(super) struct Deliveries {
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    /// Id of the next delivery. If the reply to a pop is lost, the consumer repeats the pop with
    /// the same id.
    next: u64,
    open: HashMap<u64, DeliveryState>,
    /// Last delivery of a suspect.
    suspect: Option<u64>,
}

/// State of a delivery that was popped and has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryState {
    /// The program works on the delivery.
    Held,
    /// The program works on the delivery, but another consumer has the request now.
    Lost,
    /// The program dropped the delivery before finishing it.
    Dropped,
}

/// Differences between the deliveries in this process and in Redis.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Deliveries that only Redis has. Either Redis executed a pop late, or a failover undid an
    /// acknowledgement.
    pub(super) unknown: Vec<u64>,
    /// Deliveries that the program dropped before finishing them.
    pub(super) dropped: Vec<u64>,
}

impl Deliveries {
    pub(super) fn new() -> Self {
        Self { known: Mutex::new(Known { next: 1, open: HashMap::new(), suspect: None }) }
    }

    /// Returns the id of the next delivery.
    pub(super) fn next(&self) -> u64 {
        self.known().next
    }

    /// Records that the next delivery was popped.
    pub(super) fn popped(&self, is_suspect: bool) {
        let mut known = self.known();
        let id = known.next;
        known.suspect = is_suspect.then_some(id);
        known.open.insert(id, DeliveryState::Held);
        known.next += 1;
    }

    /// Records the end of a delivery that the program finished, rejected or requeued.
    pub(super) fn ended(&self, id: u64) {
        self.known().open.remove(&id);
    }

    /// Records the end of all deliveries, because the consumer stops.
    pub(super) fn all_ended(&self) {
        self.known().open.clear();
    }

    /// Records that the program dropped a delivery, unless the delivery has ended.
    pub(super) fn dropped(&self, id: u64) {
        if let Some(state) = self.known().open.get_mut(&id) {
            *state = DeliveryState::Dropped;
        }
    }

    /// Returns true if the delivery has not ended, and no other consumer has the request.
    pub(super) fn is_held(&self, id: u64) -> bool {
        self.known().open.get(&id) == Some(&DeliveryState::Held)
    }

    /// Returns the number of deliveries that Redis holds for this consumer, as far as is known.
    pub(super) fn held(&self) -> usize {
        self.known().open.values().filter(|&&state| state != DeliveryState::Lost).count()
    }

    /// Returns true while Redis holds a suspect for this consumer, as far as is known.
    pub(super) fn holds_suspect(&self) -> bool {
        let known = self.known();
        known
            .suspect
            .and_then(|id| known.open.get(&id))
            .is_some_and(|&it| it != DeliveryState::Lost)
    }

    /// Returns all deliveries that were popped and have not ended.
    pub(super) fn open(&self) -> Vec<u64> {
        self.known().open.keys().copied().collect()
    }

    /// Compares the deliveries of this process with `held`, the deliveries that Redis returned.
    /// `before` is the result of [`Deliveries::open`] before the call to Redis. So a delivery that
    /// was popped during the call does not count as lost.
    pub(super) fn compare(&self, before: &[u64], held: &[u64]) -> Differences {
        let mut known = self.known();
        for id in before.iter().filter(|id| !held.contains(id)) {
            match known.open.get_mut(id) {
                Some(DeliveryState::Dropped) => drop(known.open.remove(id)),
                Some(state) => *state = DeliveryState::Lost,
                None => {}
            }
        }
        let mut differences = Differences::default();
        for &id in held {
            match known.open.get(&id) {
                Some(DeliveryState::Dropped) => differences.dropped.push(id),
                Some(_) => {}
                // Redis has executed a pop whose reply is still missing. The consumer repeats it.
                None if id == known.next => {}
                None => differences.unknown.push(id),
            }
        }
        differences
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // No method panics while it changes the deliveries.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule H1 of the protocol: the consumer requeues deliveries that only Redis knows. While a pop
    /// is still under way, its delivery does not count as unknown.
    #[test]
    fn a_delivery_of_a_late_pop_is_unknown() {
        let deliveries = Deliveries::new();
        deliveries.popped(false);
        deliveries.popped(false);
        deliveries.ended(1);
        let before = deliveries.open();
        let differences = deliveries.compare(&before, &[1, 2, 3]);
        assert_eq!(differences, Differences { unknown: vec![1], dropped: vec![] });
        assert!(deliveries.is_held(2));
    }

    #[test]
    fn a_delivery_that_redis_does_not_hold_is_lost() {
        let deliveries = Deliveries::new();
        deliveries.popped(false);
        let before = deliveries.open();
        // A thread pops this delivery while the call to Redis is under way.
        deliveries.popped(false);
        assert_eq!(deliveries.compare(&before, &[]), Differences::default());
        assert!(!deliveries.is_held(1));
        assert!(deliveries.is_held(2));
    }

    #[test]
    fn a_dropped_delivery_is_requeued_until_redis_no_longer_holds_it() {
        let deliveries = Deliveries::new();
        deliveries.popped(false);
        deliveries.dropped(1);
        for _ in 0..2 {
            let differences = deliveries.compare(&deliveries.open(), &[1]);
            assert_eq!(differences, Differences { unknown: vec![], dropped: vec![1] });
        }
        deliveries.compare(&[1], &[]);
        assert_eq!(deliveries.open(), [0; 0]);
        // A drop of a delivery that has already ended changes nothing.
        deliveries.popped(false);
        deliveries.ended(2);
        deliveries.dropped(2);
        assert_eq!(deliveries.open(), [0; 0]);
    }
}
