//! Requests that a consumer has popped and holds, and the comparison of these deliveries with those
//! in Redis.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::crawl::Crawl;

/// Request that a [`Consumer`](crate::Consumer) popped. The consumer holds the request until the
/// program finishes, rejects or requeues the delivery.
///
/// If the program drops a delivery before that, the next heartbeat requeues the request. The
/// delivery then counts as not finished. A request with too many such deliveries is moved to the
/// rejects, because its page may be the reason why the programs fail.
///
/// ```no_run
/// use urlseen::Consumer;
///
/// let consumer = Consumer::open("redis://127.0.0.1/", "demo:discovered")?;
/// if let Some(delivery) = consumer.pop()? {
///     if delivery.deliveries_before() > 0 {
///         println!("another try: {:?}", delivery.item());
///     }
///     consumer.finish(&delivery, ["https://example.com/next"])?;
/// }
/// # Ok::<(), urlseen::Error>(())
/// ```
#[must_use = "a delivery that is dropped is delivered again"]
pub struct Delivery {
    pub(super) crawl: Arc<Crawl>,
    /// Number of the request's partition.
    pub(super) partition: usize,
    pub(super) id: u64,
    pub(super) item: Vec<u8>,
    pub(super) count: u64,
}

impl Delivery {
    /// Returns the item, in the form that `sink.emit` in urlseen's configuration sets.
    pub fn item(&self) -> &[u8] {
        &self.item
    }

    /// Returns the number of the request's partition.
    #[doc(hidden)]
    pub fn partition(&self) -> usize {
        self.partition
    }

    /// Returns the number of earlier deliveries of this request, none of which was finished.
    pub fn deliveries_before(&self) -> u64 {
        self.count
    }

    /// Returns true while the consumer holds the request. Returns false once the delivery has
    /// ended, or once a heartbeat found that another consumer has the request. Then the program can
    /// stop its work on the page, because the other consumer will push the links.
    pub fn is_held(&self) -> bool {
        self.deliveries().is_held(self.id)
    }

    /// Returns all deliveries of the consumer from the same partition.
    pub(super) fn deliveries(&self) -> &Deliveries {
        &self.crawl.partitions[self.partition].deliveries
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.deliveries().dropped(self.id);
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let item = String::from_utf8_lossy(&self.item);
        let mut debug = f.debug_struct("Delivery");
        debug.field("id", &self.id).field("count", &self.count).field("item", &item);
        debug.finish_non_exhaustive()
    }
}

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
    open: HashMap<u64, State>,
    /// Last delivery of a suspect.
    suspect: Option<u64>,
}

/// State of a delivery that was popped and has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
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
        known.open.insert(id, State::Held);
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
            *state = State::Dropped;
        }
    }

    /// Returns true if the delivery has not ended, and no other consumer has the request.
    pub(super) fn is_held(&self, id: u64) -> bool {
        self.known().open.get(&id) == Some(&State::Held)
    }

    /// Returns the number of deliveries that Redis holds for this consumer, as far as is known.
    pub(super) fn held(&self) -> usize {
        self.known().open.values().filter(|&&state| state != State::Lost).count()
    }

    /// Returns true while Redis holds a suspect for this consumer, as far as is known.
    pub(super) fn holds_suspect(&self) -> bool {
        let known = self.known();
        known.suspect.and_then(|id| known.open.get(&id)).is_some_and(|&it| it != State::Lost)
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
