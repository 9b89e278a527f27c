//! Pops from the partitions of a consumer, in turn.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};

use redis::Cmd;

use super::partition::{read_as, unexpected};
use super::{Consumer, Delivery};
use crate::{Error, ErrorKind};
use urlseen_filter::id;
use urlseen_redis::protocol::{HeldCalls, HeldRecord, HeldRequest, Popped};

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

impl Consumer {
    /// Pops a request, which the consumer then holds. Returns `None` if no request waits.
    ///
    /// # Errors
    /// The consumer already holds its maximum number of requests ([`ErrorKind::Limit`]), or Redis
    /// is unreachable. If this call popped a request and then failed, a later call returns that
    /// request. The next call begins with another partition, if the consumer has several.
    pub fn pop(&self) -> Result<Option<Delivery>, Error> {
        let mut own = self.turn.take();
        let Some(first) = own.next() else { return Ok(None) };
        if let Some(delivery) = self.pop_or_pass(first)? {
            return Ok(Some(delivery));
        }
        for partition in self.waiting(&own.collect::<Vec<_>>())? {
            if let Some(delivery) = self.pop_or_pass(partition)? {
                return Ok(Some(delivery));
            }
        }
        Ok(None)
    }

    /// Pops a request from a partition. Passes over a partition whose circuit breaker is open,
    /// unless all are open, and a partition without a record.
    fn pop_or_pass(&self, number: usize) -> Result<Option<Delivery>, Error> {
        if self.crawl.partitions[number].is_missing() {
            return Ok(None);
        }
        match self.pop_from(number) {
            Err(error) if error.kind() == ErrorKind::Redis && !self.links.are_away() => Ok(None),
            popped => popped,
        }
    }

    /// Pops a request from a partition.
    fn pop_from(&self, number: usize) -> Result<Option<Delivery>, Error> {
        let partition = &self.crawl.partitions[number];
        // Until the request has its delivery, no other thread may pop with the same id.
        let _popping = partition.popping.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(room) = self.crawl.reserve(number, self.options.max_held) else {
            return Ok(None);
        };
        let id = partition.deliveries.next();
        let calls = self.crawl.calls(number)?;
        let pop = calls.pop(&self.crawl.consumer, id, room.most, room.holds_others);
        let reply = self.ask_one(number, pop)?;
        let popped = HeldCalls::popped(id, reply).map_err(|error| unexpected(&error))?;
        let HeldRequest { count, item, .. } = match popped {
            Some(Popped::Request(request)) => request,
            Some(Popped::Empty) => {
                partition.is_idle.store(true, Relaxed);
                return Ok(None);
            }
            Some(Popped::Suspect) => return Ok(None),
            Some(Popped::Full) => return Err(self.full()),
            None => return Err(self.damaged(id)),
        };
        partition.is_idle.store(false, Relaxed);
        room.popped(calls.record.is_suspect(count));
        self.turn.popped(number);
        Ok(Some(Delivery { crawl: Arc::clone(&self.crawl), partition: number, id, item, count }))
    }

    /// Returns the partitions whose sinks are not empty, and after them those that did not answer.
    fn waiting(&self, partitions: &[usize]) -> Result<Vec<usize>, Error> {
        let is_recorded = |number: &usize| !self.crawl.partitions[*number].is_missing();
        let partitions: Vec<usize> = partitions.iter().copied().filter(is_recorded).collect();
        let answers = self.ask_each(&partitions, 0, |_, calls| sink_length(&calls.record))?;
        let (mut waiting, mut silent) = (Vec::new(), Vec::new());
        for (&number, answer) in partitions.iter().zip(answers) {
            match answer.and_then(read_as) {
                Ok(0_u64) => self.crawl.partitions[number].is_idle.store(true, Relaxed),
                Ok(_) => waiting.push(number),
                Err(_) => silent.push(number),
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
