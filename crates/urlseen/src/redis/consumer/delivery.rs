//! Request that a consumer has popped and holds.

use std::fmt;
use std::sync::Arc;

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
    pub(super) id: u64,
    pub(super) item: Vec<u8>,
    pub(super) count: u64,
}

impl Delivery {
    /// Returns the item, in the form that `sink.emit` in urlseen's configuration sets.
    pub fn item(&self) -> &[u8] {
        &self.item
    }

    /// Returns the number of earlier deliveries of this request, none of which was finished.
    pub fn deliveries_before(&self) -> u64 {
        self.count
    }

    /// Returns true while the consumer holds the request. Returns false once the delivery has
    /// ended, or once a heartbeat found that another consumer has the request. Then the program can
    /// stop its work on the page, because the other consumer will push the links.
    pub fn is_held(&self) -> bool {
        self.crawl.deliveries.is_held(self.id)
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.crawl.deliveries.dropped(self.id);
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
