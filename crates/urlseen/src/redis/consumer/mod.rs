//! Consumer of held requests, for threads.

mod crawl;
mod deliveries;
mod delivery;
mod heartbeat;
mod options;

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Value, cmd};

use super::RedisOptions;
use super::link::{Link, client};
use crate::{Error, ErrorKind};
use crawl::{Crawl, read_as, unexpected};
pub use delivery::Delivery;
use heartbeat::Heartbeat;
pub use options::ConsumerOptions;
use urlseen_core::redis::held::{Calls, Counted, HeldRequest, Popped};
use urlseen_core::redis::script::Call;

/// Maximum number of items in one push. [`ConsumerOptions::max_push_bytes`] limits a push, too.
const PUSH_ITEMS: usize = 1000;

/// Maximum number of tries to count the requests of a crawl. A try fails if consumers came or went
/// since the previous try.
const COUNTS: usize = 5;

/// First and maximum pause between two pops of a call that waits for a request.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(500)];

/// Consumer of the requests that the `urlseen` daemon found unseen.
///
/// A consumer pops requests from the sink of a crawl: the Redis key to which the daemon pushes
/// unseen requests. Redis holds each popped request until its page is processed. So a crawler that
/// is killed loses no request.
///
/// Threads may share one consumer. Each call waits for Redis, so an asynchronous program must call
/// the consumer in blocking tasks. A thread of the consumer sends heartbeats over a second
/// connection. The protocol is described in `docs/reference/held.md`; the Scrapy package follows
/// the same protocol.
///
/// A request is delivered *at least once*: if its consumer is killed, another consumer fetches the
/// page again. When a program drops a consumer, the consumer requeues the requests that it holds.
/// If the program panics, the requests are not requeued at once. Other consumers requeue them after
/// `held.timeout`, a setting of the daemon. Each of these requests then counts as delivered once
/// more without being finished.
///
/// ```no_run
/// use std::time::Duration;
/// use urlseen::Consumer;
///
/// # fn fetch(url: &str) -> Vec<String> { vec![] }
/// let consumer = Consumer::open("redis://127.0.0.1/", "demo:discovered")?;
/// consumer.push(["https://example.com/"])?;
/// while consumer.pending()? > 0 {
///     let Some(delivery) = consumer.pop_wait(Duration::from_secs(5))? else { continue };
///     match std::str::from_utf8(delivery.item()) {
///         Ok(url) => consumer.finish(&delivery, fetch(url))?,
///         Err(error) => consumer.reject(&delivery, &error.to_string())?,
///     };
/// }
/// # Ok::<(), urlseen::Error>(())
/// ```
pub struct Consumer {
    crawl: Arc<Crawl>,
    options: ConsumerOptions,
    asking: Mutex<Asking>,
    heartbeat: Heartbeat,
}

/// Connection, and the names of the consumers that existed at the last count of requests.
struct Asking {
    link: Link,
    consumers: Vec<String>,
}

impl Consumer {
    /// Opens a consumer of a crawl on the server at `url`.
    ///
    /// `url` begins with `redis://` or `unix://`, or with `rediss://` if the crate has the feature
    /// `tls`. `source` is the value of `source.key` in the configuration of the crawl's daemon.
    ///
    /// # Errors
    /// No daemon has run for the source yet ([`ErrorKind::NoCrawl`]). The record of the crawl has
    /// another version ([`ErrorKind::Mismatch`]). `url` is not valid ([`ErrorKind::Spec`]). The
    /// system cannot start a thread ([`ErrorKind::Memory`]). Redis is unreachable
    /// ([`ErrorKind::Redis`]).
    pub fn open(url: &str, source: &str) -> Result<Self, Error> {
        Self::open_with(url, source, ConsumerOptions::default())
    }

    /// Opens a consumer with the limits, timeouts and retries of `options`: see [`Consumer::open`].
    ///
    /// # Errors
    /// The same errors as [`Consumer::open`], or an option is out of bounds ([`ErrorKind::Spec`]).
    pub fn open_with(url: &str, source: &str, options: ConsumerOptions) -> Result<Self, Error> {
        options.check()?;
        let client = client(url)?;
        let mut link = Link::new(client.clone(), options.redis());
        let crawl = Crawl::open(&mut link, source, options.incarnation())?;
        crawl.beat(&mut link)?;
        let crawl = Arc::new(crawl);
        let beats = Link::new(client, RedisOptions { retries: 0, ..options.redis() });
        let heartbeat = Heartbeat::start(Arc::clone(&crawl), beats, options.stop_timeout)?;
        let asking = Mutex::new(Asking { link, consumers: Vec::new() });
        Ok(Self { crawl, options, asking, heartbeat })
    }

    /// Returns the name of the consumer with its random suffix, as `urlseen held list` shows it.
    pub fn name(&self) -> &str {
        &self.crawl.consumer
    }

    /// Pops a request, which the consumer then holds. Returns `None` if no request waits.
    ///
    /// # Errors
    /// The consumer already holds its maximum number of requests ([`ErrorKind::Limit`]), or Redis
    /// is unreachable. If this call popped a request and then failed, the next call returns that
    /// request.
    pub fn pop(&self) -> Result<Option<Delivery>, Error> {
        let mut asking = self.asking();
        let (calls, id) = (self.crawl.calls()?, self.crawl.deliveries.next());
        let pop = calls.pop(&self.crawl.consumer, id, self.options.max_held);
        let reply = self.call(&mut asking, &pop)?;
        let popped = Calls::popped(id, reply).map_err(|error| unexpected(&error))?;
        let HeldRequest { count, item, .. } = match popped {
            Some(Popped::Request(request)) => request,
            Some(Popped::Empty) => {
                self.crawl.is_idle.store(true, Relaxed);
                return Ok(None);
            }
            Some(Popped::Full) => return Err(self.full()),
            None => return Err(self.damaged(id)),
        };
        self.crawl.is_idle.store(false, Relaxed);
        self.crawl.deliveries.popped();
        Ok(Some(Delivery { crawl: Arc::clone(&self.crawl), id, item, count }))
    }

    /// Pops a request. If no request waits, waits up to `timeout` for one.
    ///
    /// # Errors
    /// The same errors as [`Consumer::pop`].
    pub fn pop_wait(&self, timeout: Duration) -> Result<Option<Delivery>, Error> {
        let end = Instant::now() + timeout;
        let [mut pause, longest] = PAUSES;
        loop {
            let popped = self.pop()?;
            let left = end.saturating_duration_since(Instant::now());
            if popped.is_some() || left.is_zero() {
                return Ok(popped);
            }
            thread::sleep(pause.min(left));
            pause = (2 * pause).min(longest);
        }
    }

    /// Acknowledges a delivery and pushes the links of its page to the source, in one step.
    ///
    /// Returns false, and pushes nothing, if the consumer no longer holds the request. Then another
    /// consumer has the request, and pushes the links. After a broken connection, false can also
    /// mean that Redis executed the first try of this call.
    ///
    /// If a page failed permanently, finish its delivery with an empty list of links, such as `["";
    /// 0]`. If the item itself cannot be read, use [`Consumer::reject`].
    ///
    /// # Errors
    /// The links are larger than [`ConsumerOptions::max_push_bytes`] ([`ErrorKind::Limit`]), the
    /// delivery belongs to another consumer, or Redis is unreachable. The consumer still holds the
    /// delivery, and the program may repeat the call.
    pub fn finish(
        &self,
        delivery: &Delivery,
        links: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<bool, Error> {
        let links: Vec<Vec<u8>> = links.into_iter().map(|link| link.as_ref().to_vec()).collect();
        let bytes = links.iter().map(Vec::len).sum();
        if bytes > self.options.max_push_bytes {
            return Err(self.too_large(bytes));
        }
        self.end(delivery, |calls, name| calls.finish(name, delivery.id, links))
    }

    /// Moves a request to the crawl's list of rejects, with a reason for people. To see the list,
    /// run `urlseen rejects list`. Returns false if the consumer no longer holds the request.
    ///
    /// # Errors
    /// The delivery belongs to another consumer, or Redis is unreachable.
    pub fn reject(&self, delivery: &Delivery, reason: &str) -> Result<bool, Error> {
        let id = delivery.id.to_string();
        self.end(delivery, |calls, name| calls.reject(name, &id, &delivery.item, &reason))
    }

    /// Requeues a request, so that a consumer can pop the request again. This delivery then does
    /// not count in [`Delivery::deliveries_before`]. Returns false if the consumer no longer holds
    /// the request.
    ///
    /// # Errors
    /// The delivery belongs to another consumer, or Redis is unreachable.
    pub fn requeue(&self, delivery: &Delivery) -> Result<bool, Error> {
        self.check_owner(delivery)?;
        let mut asking = self.asking();
        let put_back =
            self.watch(&mut asking, |link| self.crawl.give_back(link, &[delivery.id]))?;
        self.crawl.deliveries.ended(delivery.id);
        Ok(put_back > 0)
    }

    /// Pushes items to the source of the crawl, such as its first URLs. For the links of a held
    /// page, call [`Consumer::finish`] instead.
    ///
    /// A second call pushes the items again. A broken connection can have the same effect. The
    /// daemon drops the second copy of an item, unless the item passes unfiltered (`dont_filter`).
    ///
    /// # Errors
    /// An item is larger than [`ConsumerOptions::max_push_bytes`] ([`ErrorKind::Limit`]), or Redis
    /// is unreachable. Some of the items may have been pushed.
    pub fn push(&self, items: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Result<(), Error> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        for item in items {
            let item = item.as_ref();
            if item.len() > self.options.max_push_bytes {
                return Err(self.too_large(item.len()));
            }
            if part.len() == PUSH_ITEMS || bytes + item.len() > self.options.max_push_bytes {
                self.push_part(&part)?;
                part.clear();
                bytes = 0;
            }
            bytes += item.len();
            part.push(item.to_vec());
        }
        if part.is_empty() { Ok(()) } else { self.push_part(&part) }
    }

    /// Returns the number of unfinished requests of the crawl. An unfinished request waits in the
    /// source or the sink, is processed by the daemon, or is held by a consumer. If the number is
    /// 0, the crawl is complete.
    ///
    /// # Errors
    /// Redis is unreachable.
    pub fn pending(&self) -> Result<u64, Error> {
        let mut asking = self.asking();
        for _ in 0..COUNTS {
            let calls = self.crawl.calls()?;
            let count = calls.count(&asking.consumers);
            let reply = self.call(&mut asking, &count)?;
            match Calls::counted(reply).map_err(|error| unexpected(&error))? {
                Counted::Requests(count) => return Ok(count),
                Counted::Consumers(consumers) => asking.consumers = consumers,
            }
        }
        // If the consumers change all the time, the crawl is still active.
        Ok(1)
    }

    fn push_part(&self, items: &[Vec<u8>]) -> Result<(), Error> {
        let calls = self.crawl.calls()?;
        let mut push = cmd(&calls.record().push);
        push.arg(&calls.record().source).arg(items);
        let mut asking = self.asking();
        self.watch(&mut asking, |link| link.ask(|connection| push.query::<()>(connection)))
    }

    /// Ends a delivery by a script. The script returns 0 if the consumer does not hold the request.
    fn end(
        &self,
        delivery: &Delivery,
        call: impl for<'a> FnOnce(&'a Calls, &str) -> Call<'a>,
    ) -> Result<bool, Error> {
        self.check_owner(delivery)?;
        let calls = self.crawl.calls()?;
        let reply = self.call(&mut self.asking(), &call(&calls, &self.crawl.consumer))?;
        let done: u64 = read_as(reply)?;
        self.crawl.deliveries.ended(delivery.id);
        Ok(done > 0)
    }

    fn call(&self, asking: &mut Asking, call: &Call<'_>) -> Result<Value, Error> {
        self.watch(asking, |link| link.call(call))
    }

    /// Makes a call. If the call opens a new connection, wakes the heartbeat thread: Redis may now
    /// hold deliveries that this consumer does not know.
    fn watch<T>(
        &self,
        asking: &mut Asking,
        ask: impl FnOnce(&mut Link) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let before = asking.link.connects();
        let answer = ask(&mut asking.link);
        if asking.link.connects() != before {
            self.heartbeat.wake();
        }
        answer
    }

    fn asking(&self) -> MutexGuard<'_, Asking> {
        // A panic of another thread does no harm: a connection that was interrupted during a call
        // is never used again (`Link::ask`).
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_owner(&self, delivery: &Delivery) -> Result<(), Error> {
        if Arc::ptr_eq(&self.crawl, &delivery.crawl) {
            return Ok(());
        }
        let (owner, name) = (&delivery.crawl.consumer, self.name());
        let text = format!(
            "the consumer {owner} popped the delivery, not {name}; finish, reject or requeue it \
             with {owner}"
        );
        Err(Error::new(ErrorKind::Mismatch, text))
    }

    fn full(&self) -> Error {
        let text = format!(
            "the consumer {} holds {} requests, its maximum (ConsumerOptions::max_held); finish, \
             requeue or reject some of them first",
            self.name(),
            self.options.max_held
        );
        Error::new(ErrorKind::Limit, text)
    }

    fn too_large(&self, bytes: usize) -> Error {
        let text = format!(
            "a push of {bytes} bytes exceeds the maximum of {} bytes \
             (ConsumerOptions::max_push_bytes), so nothing was pushed. Raise the maximum, or first \
             push some of the links with Consumer::push (only links without dont_filter)",
            self.options.max_push_bytes
        );
        Error::new(ErrorKind::Limit, text)
    }

    fn damaged(&self, id: u64) -> Error {
        let text = format!(
            "Redis holds unexpected data for the delivery {id} of the consumer {}; find the \
             program that changed its held requests",
            self.name()
        );
        Error::new(ErrorKind::Redis, text)
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        if thread::panicking() {
            // A held request may be the cause of the panic. So the requests are left to other
            // consumers, which count these deliveries as not finished.
            self.crawl.is_abandoned.store(true, Relaxed);
        }
        self.heartbeat.stop(self.options.stop_timeout);
        self.crawl.deliveries.all_ended();
    }
}

/// Formats the consumer without its address, because the address may contain a password.
impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("name", &self.name()).finish_non_exhaustive()
    }
}
