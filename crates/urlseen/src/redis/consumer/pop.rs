//! Pops from the partitions of a consumer, in turn.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use redis::{Cmd, cmd};

use super::partition::{read_as, unexpected};
use super::{Consumer, Delivery};
use crate::{Error, ErrorKind};
use urlseen_core::redis::held::{Calls, HeldRecord, HeldRequest, Popped};

impl Consumer {
    /// Pops a request from the next partition. If its sink is empty, pops from the other own
    /// partitions.
    pub(super) fn pop_in_turn(&self) -> Result<Option<Delivery>, Error> {
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

    /// Pops a request from a partition. Passes over a partition whose connection rests, unless all
    /// connections rest, and a partition without a record.
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
        let popped = Calls::popped(id, reply).map_err(|error| unexpected(&error))?;
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
        room.popped(calls.record().is_suspect(count));
        self.turn.popped(number);
        Ok(Some(Delivery { crawl: Arc::clone(&self.crawl), partition: number, id, item, count }))
    }

    /// Returns the partitions whose sinks are not empty, and after them those that did not answer.
    fn waiting(&self, partitions: &[usize]) -> Result<Vec<usize>, Error> {
        let is_recorded = |number: &usize| !self.crawl.partitions[*number].is_missing();
        let partitions: Vec<usize> = partitions.iter().copied().filter(is_recorded).collect();
        let answers = self.ask_each(&partitions, 0, |_, calls| sink_length(calls.record()))?;
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
    let mut command = cmd(if record.sink_kind == "zset" { "ZCARD" } else { "LLEN" });
    command.arg(&record.sink);
    command
}
