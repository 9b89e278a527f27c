//! Pops from the crawls of a consumer, in turn.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};

use redis::Cmd;

use super::crawl::Crawl;
use super::{Consumer, Delivery};
use crate::redis::links::{read_as, unexpected};
use crate::{Error, ErrorKind};
use urlseen_filter::id;
use urlseen_redis::protocol::{HeldCalls, HeldRecord, HeldRequest, Popped};

/// Crawls from which a consumer pops in turn.
pub(super) struct Turn {
    /// Numbers of the crawls, in ascending order.
    pub(super) own: Vec<usize>,
    /// Place in `own` of the crawl from which the next call pops first.
    next: AtomicUsize,
}

impl Turn {
    /// Begins with a random crawl, because many consumers may start at the same time.
    pub(super) fn new(own: Vec<usize>) -> Self {
        let random = usize::try_from(id::random() >> 32).unwrap_or(0);
        let next = AtomicUsize::new(random % own.len());
        Self { own, next }
    }

    /// Returns the own crawls in the order of this pop. The next pop begins with the second one,
    /// even if this pop fails.
    fn take(&self) -> impl Iterator<Item = usize> {
        let first = self.next.fetch_add(1, Relaxed) % self.own.len();
        self.own[first..].iter().chain(&self.own[..first]).copied()
    }

    /// Records that a pop got a request from a crawl, so that the next pop begins with the crawl
    /// after it.
    fn popped(&self, number: usize) {
        let place = self.own.binary_search(&number).unwrap_or(0);
        self.next.store(place + 1, Relaxed);
    }
}

impl Consumer {
    /// Pops a request, which the consumer then holds. Returns `None` if no request waits.
    ///
    /// # Errors
    /// The consumer already holds its maximum number of requests ([`ErrorKind::Limit`]), or Redis
    /// is unreachable. If this call popped a request and then failed, a later call returns that
    /// request. The next call begins with another daemon's sink, if there are several.
    pub fn pop(&self) -> Result<Option<Delivery>, Error> {
        let mut own = self.turn.take().map(|number| &self.crawls.all[number]);
        let Some(first) = own.next() else { return Ok(None) };
        if let Some(delivery) = self.pop_or_pass(first)? {
            return Ok(Some(delivery));
        }
        for crawl in self.waiting(own)? {
            if let Some(delivery) = self.pop_or_pass(crawl)? {
                return Ok(Some(delivery));
            }
        }
        Ok(None)
    }

    /// Pops a request from a crawl. Passes over a crawl whose circuit breaker is open, unless all
    /// are open, and a crawl without a record.
    fn pop_or_pass(&self, crawl: &Arc<Crawl>) -> Result<Option<Delivery>, Error> {
        if crawl.is_missing() {
            return Ok(None);
        }
        match self.pop_from(crawl) {
            Err(error) if error.kind() == ErrorKind::Redis && !self.links.are_away() => Ok(None),
            popped => popped,
        }
    }

    /// Pops a request from a crawl.
    fn pop_from(&self, crawl: &Arc<Crawl>) -> Result<Option<Delivery>, Error> {
        // Until the request has its delivery, no other thread may pop with the same id.
        let _popping = crawl.popping.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(room) = self.crawls.reserve(crawl, self.options.max_held) else {
            return Ok(None);
        };
        let id = crawl.deliveries.next();
        let calls = self.crawls.calls(crawl)?;
        let pop = calls.pop(self.name(), id, room.most, room.holds_others);
        let reply = self.ask_one(crawl, pop)?;
        let popped = HeldCalls::popped(id, reply).map_err(unexpected)?;
        let HeldRequest { count, item, .. } = match popped {
            Some(Popped::Request(request)) => request,
            Some(Popped::Empty) => {
                crawl.is_idle.store(true, Relaxed);
                return Ok(None);
            }
            Some(Popped::Suspect) => return Ok(None),
            Some(Popped::Full) => return Err(self.full()),
            None => return Err(self.damaged(id)),
        };
        crawl.is_idle.store(false, Relaxed);
        room.popped(calls.record.is_suspect(count));
        self.turn.popped(crawl.number);
        Ok(Some(Delivery { crawl: Arc::clone(crawl), id, item, count }))
    }

    /// Returns the crawls whose sinks are not empty, and after them those that did not answer.
    fn waiting<'a>(
        &self,
        crawls: impl Iterator<Item = &'a Arc<Crawl>>,
    ) -> Result<Vec<&'a Arc<Crawl>>, Error> {
        let recorded: Vec<_> = crawls.filter(|it| !it.is_missing()).collect();
        let asked: Vec<&Crawl> = recorded.iter().map(|it| &***it).collect();
        let answers = self.ask_each(&asked, 0, |_, calls| sink_length(&calls.record))?;
        let (mut waiting, mut silent) = (Vec::new(), Vec::new());
        for (crawl, answer) in recorded.into_iter().zip(answers) {
            match answer.and_then(read_as) {
                Ok(0_u64) => crawl.is_idle.store(true, Relaxed),
                Ok(_) => waiting.push(crawl),
                Err(_) => silent.push(crawl),
            }
        }
        waiting.append(&mut silent);
        Ok(waiting)
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

    fn damaged(&self, id: u64) -> Error {
        let text = format!(
            "Redis holds unexpected data for the delivery {id} of the consumer {}; find the \
             program that changed its held requests",
            self.name()
        );
        Error::new(ErrorKind::Refused, text)
    }
}

/// Returns the command that counts the requests in a sink.
fn sink_length(record: &HeldRecord) -> Cmd {
    if record.sink_kind == "zset" { Cmd::zcard(&record.sink) } else { Cmd::llen(&record.sink) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_crawl_is_first_in_its_turn() {
        let turn = Turn::new(vec![2, 4, 7]);
        turn.next.store(0, Relaxed);
        let firsts: Vec<_> = (0..4).map(|_| turn.take().next().unwrap()).collect();
        assert_eq!(firsts, [2, 4, 7, 2]);
        turn.popped(7);
        assert_eq!(turn.take().collect::<Vec<_>>(), [2, 4, 7]);
        assert_eq!(turn.take().collect::<Vec<_>>(), [4, 7, 2]);
    }
}
