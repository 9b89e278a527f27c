//! Consumer of held requests, for threads.
//!
//! Each call is safe to repeat: a repeated pop has the id of its delivery, and a repeated
//! finish does nothing. So after a lost reply, the consumer repeats the call on a new
//! connection. The thread of the heartbeat compares the deliveries on which the program works
//! with Redis, and requeues those that the consumer does not know. If the program drops a
//! delivery, this thread requeues it as if the consumer had stopped, so the delivery counts as
//! an attempt.

mod count;
mod crawl;
mod crawls;
mod deliveries;
mod delivery;
mod heartbeat;
mod item;
mod options;
mod outbox;
mod pop;
mod push;
mod scrapy;
mod sending;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use redis::Value;

use super::RedisOptions;
use super::address::Address;
use super::link::Link;
use super::links::{Addressed, Links, read_as};
use crate::{Error, ErrorKind};
use crawl::{Crawl, put_back};
use crawls::Crawls;
pub use delivery::Delivery;
use heartbeat::Heartbeat;
pub use item::Item;
pub use options::ConsumerOptions;
#[doc(hidden)]
pub use outbox::Outbox;
use pop::Turn;
use urlseen_redis::protocol::{Call, HeldCalls};

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
/// A crawl may have several partitions. Then the consumer pops from all of them in turn, or from
/// those in [`ConsumerOptions::partitions`], and pushes each [`Item`] to the partition of its
/// fingerprint.
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
    crawls: Arc<Crawls>,
    options: ConsumerOptions,
    turn: Turn,
    links: Links,
    /// Thread for each connection of `links` that this consumer uses to pop, or for the table.
    heartbeats: Vec<Option<Heartbeat>>,
}

impl Consumer {
    /// Opens a consumer of a crawl on the server at `url`.
    ///
    /// `url` begins with `redis://` or `unix://`, or with `rediss://` if the crate has the feature
    /// `tls`. `redis+cluster://HOST:PORT,…` has some nodes of a Redis Cluster, and
    /// `redis+sentinel://HOST:PORT,…/NAME` has Sentinels that know the primary by this name.
    /// `source` is the value of `source.key` in the configuration of the crawl's daemon.
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
        let consumer = Self::open_early(&Address::parse(url, None, None)?, source, options)?;
        consumer.crawls.check_records()?;
        Ok(consumer)
    }

    /// Opens a consumer, even if no daemon has run for a source yet. Then the consumer pops nothing
    /// from there: see [`Consumer::read_missing`].
    ///
    /// # Errors
    /// The same errors as [`Consumer::open_with`], except that of a missing record.
    fn open_early(
        address: &Address,
        source: &str,
        options: ConsumerOptions,
    ) -> Result<Self, Error> {
        options.check()?;
        let (crawls, links) = Crawls::open(address, source, &options)?;
        let turn = Turn::new(options.own(crawls.all.len())?);
        let heartbeats = Vec::new();
        let mut consumer = Self { crawls: Arc::new(crawls), options, turn, links, heartbeats };
        consumer.register()?;
        consumer.heartbeats = consumer.start_heartbeats(address)?;
        Ok(consumer)
    }

    /// Returns the name of the consumer with its random suffix, as `urlseen held list` shows it.
    pub fn name(&self) -> &str {
        &self.crawls.consumer
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
    /// In a crawl with several partitions, this step pushes the links of the page's own partition
    /// and unfiltered links. Before this step, the call pushes the other links to their partitions.
    ///
    /// Returns false if the consumer no longer holds the request. Then another consumer has the
    /// request, and pushes the links. The step pushes nothing, and the filter drops the second
    /// copies of links that were pushed before the step. After a broken connection, false can also
    /// mean that Redis executed the first try of this call.
    ///
    /// If a page failed permanently, finish its delivery with an empty list of links, such as `["";
    /// 0]`. If the item itself cannot be read, use [`Consumer::reject`].
    ///
    /// # Errors
    /// The links are larger than [`ConsumerOptions::max_push_bytes`] ([`ErrorKind::Limit`]), the
    /// partition of a link is not known ([`ErrorKind::NoFingerprint`]), the delivery belongs to
    /// another consumer, or Redis is unreachable. The consumer still holds the delivery, and the
    /// program may repeat the call.
    pub fn finish(
        &self,
        delivery: &Delivery,
        links: impl IntoIterator<Item = impl Into<Item>>,
    ) -> Result<bool, Error> {
        self.check_owner(delivery)?;
        let (own, others) = self.divide(delivery, links.into_iter().map(Into::into))?;
        self.push_all(&others)?;
        let calls = self.crawls.calls(&delivery.crawl)?;
        self.ended(delivery, calls.finish(self.name(), delivery.id, own))
    }

    /// Moves a request to the crawl's list of rejects, with a reason for people. To see the list,
    /// run `urlseen rejects list`. Returns false if the consumer no longer holds the request.
    ///
    /// # Errors
    /// The delivery belongs to another consumer, or Redis is unreachable.
    pub fn reject(&self, delivery: &Delivery, reason: &str) -> Result<bool, Error> {
        self.check_owner(delivery)?;
        let (id, item) = (delivery.id.to_string(), &delivery.item);
        let calls = self.crawls.calls(&delivery.crawl)?;
        let call = calls.reject(self.name(), id.as_bytes(), item, &reason);
        self.ended(delivery, call)
    }

    /// Requeues a request, so that a consumer can pop the request again. This delivery then does
    /// not count in [`Delivery::deliveries_before`]. Returns false if the consumer no longer holds
    /// the request.
    ///
    /// # Errors
    /// The delivery belongs to another consumer, or Redis is unreachable.
    pub fn requeue(&self, delivery: &Delivery) -> Result<bool, Error> {
        self.check_owner(delivery)?;
        let call = delivery.crawl.calls()?.requeue(self.name(), "", &[delivery.id]);
        Ok(put_back(self.end(delivery, call)?)? > 0)
    }

    /// Registers the consumer, by a heartbeat.
    fn register(&self) -> Result<(), Error> {
        let beat = |_: &Crawl, calls: &HeldCalls| calls.beat(self.name());
        let own: Vec<&Crawl> = self.own().map(|it| &**it).filter(|it| !it.is_missing()).collect();
        let answers = self.ask_each(&own, self.options.retries, beat)?;
        answers.into_iter().try_for_each(|answer| answer.map(drop))
    }

    /// Starts a thread for each connection over which the consumer pops, and for the connection to
    /// the table.
    fn start_heartbeats(&self, address: &Address) -> Result<Vec<Option<Heartbeat>>, Error> {
        let options = RedisOptions { retries: 0, ..self.options.redis() };
        let start = |place| {
            let (has_table, crawls) = (place == 0, Arc::clone(&self.crawls));
            let own: Vec<_> = self.own().filter(|it| it.place == place).cloned().collect();
            let key = match own.first() {
                Some(crawl) => &crawl.source,
                None if has_table => &crawls.source,
                None => return Ok(None),
            };
            let links = Links::new(vec![Link::new(address.for_key(key), options)], 0);
            Heartbeat::start(crawls, links, has_table, own, self.options.stop_timeout).map(Some)
        };
        (0..self.links.len()).map(start).collect()
    }

    /// Ends a delivery by a script that returns 0 if the consumer does not hold the request.
    fn ended(&self, delivery: &Delivery, call: Call) -> Result<bool, Error> {
        Ok(read_as::<u64>(self.end(delivery, call)?)? > 0)
    }

    /// Ends a delivery by a script. Returns its reply.
    fn end(&self, delivery: &Delivery, call: Call) -> Result<Value, Error> {
        let reply = self.ask_one(&delivery.crawl, call)?;
        delivery.crawl.deliveries.ended(delivery.id);
        Ok(reply)
    }

    /// Returns the crawls from which the consumer pops.
    fn own(&self) -> impl Iterator<Item = &Arc<Crawl>> {
        self.turn.own.iter().map(|&number| &self.crawls.all[number])
    }

    /// Calls a script of a crawl.
    fn ask_one(&self, crawl: &Crawl, call: Call) -> Result<Value, Error> {
        self.ask_all(&[(crawl.place, call)], self.options.retries).swap_remove(0)
    }

    /// Asks each of the crawls a question. Returns the answers in the order of the crawls.
    fn ask_each<Q: Into<Call>>(
        &self,
        crawls: &[&Crawl],
        retries: u32,
        question: impl Fn(&Crawl, &HeldCalls) -> Q,
    ) -> Result<Vec<Result<Value, Error>>, Error> {
        let address = |&it: &&Crawl| Ok((it.place, question(it, &*self.crawls.calls(it)?).into()));
        let questions = crawls.iter().map(address).collect::<Result<Vec<_>, Error>>()?;
        Ok(self.ask_all(&questions, retries))
    }

    /// Asks all questions at the same time: see [`Links::ask_all`]. After each new connection,
    /// wakes its heartbeat thread: Redis may now hold deliveries that this consumer does not know.
    fn ask_all(&self, questions: &[Addressed], retries: u32) -> Vec<Result<Value, Error>> {
        self.links.ask_all(questions, retries, |place| self.wake(place))
    }

    /// Ends the heartbeats, and waits for their end.
    fn stop(&self, timeout: Duration) {
        for heartbeat in self.heartbeats.iter().flatten() {
            heartbeat.stop();
        }
        let end = Instant::now() + timeout;
        for heartbeat in self.heartbeats.iter().flatten() {
            heartbeat.wait(end.saturating_duration_since(Instant::now()));
        }
    }

    fn wake(&self, place: usize) {
        if let Some(Some(heartbeat)) = self.heartbeats.get(place) {
            heartbeat.wake();
        }
    }

    fn check_owner(&self, delivery: &Delivery) -> Result<(), Error> {
        if self.crawls.all.iter().any(|it| Arc::ptr_eq(it, &delivery.crawl)) {
            return Ok(());
        }
        let (owner, name) = (&delivery.crawl.consumer, self.name());
        let text = format!(
            "the consumer {owner} popped the delivery, not {name}; finish, reject or requeue it \
             with {owner}"
        );
        Err(Error::new(ErrorKind::Mismatch, text))
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        if thread::panicking() {
            // A held request may be the cause of the panic. So the requests are left to other
            // consumers, which count these deliveries as not finished.
            self.crawls.is_abandoned.store(true, Relaxed);
        }
        self.stop(self.options.stop_timeout);
        for crawl in &self.crawls.all {
            crawl.deliveries.all_ended();
        }
    }
}

/// Formats the consumer without its address, because the address may contain a password.
impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("name", &self.name()).finish_non_exhaustive()
    }
}
