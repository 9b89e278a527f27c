//! Work of an [outbox](super::outbox), and one attempt to send it.

use std::collections::BTreeMap;
use std::sync::Arc;

use redis::{Cmd, cmd};

use super::links::Addressed;
use super::push::PUSH_ITEMS;
use super::{Consumer, Delivery, Item};
use crate::{Error, ErrorKind};

/// Items by the number of their partition.
pub(super) type Items = BTreeMap<usize, Vec<Vec<u8>>>;

/// Numbers of items that Redis has taken, and of pages that another consumer has now.
#[doc(hidden)]
#[derive(Debug, Default, Clone, Copy)]
pub struct SentCounts {
    pub sent: u64,
    pub forgotten: u64,
    pub given_to_others: u64,
}

/// Work of the thread. The loose items go first, then the steps in their order.
#[derive(Default)]
pub(super) struct Work {
    /// Items that belong to no page: start requests, and requests of extensions.
    pub(super) loose: Items,
    pub(super) forgets: Items,
    pub(super) steps: Vec<Step>,
}

/// Links that are pushed, and then the end of their delivery, if this is the end of the page.
pub(super) struct Step {
    pub(super) links: Items,
    pub(super) end: Option<(Arc<Delivery>, End)>,
}

pub(super) enum End {
    /// Acknowledgement, which pushes the other links of the page in the same script.
    Finish(Vec<Vec<u8>>),
    /// Rejection, with its reason.
    Reject(String),
}

/// List to which a partition's items are pushed.
#[derive(Clone, Copy)]
enum List {
    Source,
    Forget,
}

/// One attempt to send all work.
pub(super) struct Attempt<'a> {
    consumer: &'a Consumer,
    /// Partitions that are away, with their errors.
    pub(super) failed: BTreeMap<usize, Error>,
    pub(super) counts: SentCounts,
    pub(super) taken_bytes: usize,
}

impl Work {
    pub(super) fn is_empty(&self) -> bool {
        self.loose.is_empty() && self.forgets.is_empty() && self.steps.is_empty()
    }

    /// Appends work that was added later.
    pub(super) fn append(&mut self, later: Self) {
        for (items, more) in [(&mut self.loose, later.loose), (&mut self.forgets, later.forgets)] {
            for (partition, mut added) in more {
                items.entry(partition).or_default().append(&mut added);
            }
        }
        self.steps.extend(later.steps);
    }
}

impl<'a> Attempt<'a> {
    /// Prepares an attempt, which adds what is sent to `counts`.
    pub(super) fn new(consumer: &'a Consumer, counts: SentCounts) -> Self {
        Self { consumer, failed: BTreeMap::new(), counts, taken_bytes: 0 }
    }

    /// Sends everything that may be sent, and removes it from the work.
    ///
    /// # Errors
    /// A command was refused.
    pub(super) fn send(&mut self, work: &mut Work) -> Result<(), Error> {
        self.push(&mut work.loose, List::Source)?;
        self.push(&mut work.forgets, List::Forget)?;
        let is_free = work.loose.is_empty();
        let mut sent = Ok(());
        work.steps.retain_mut(|step| {
            let done = if sent.is_ok() { self.is_done(step, is_free) } else { Ok(false) };
            let is_left = !matches!(done, Ok(true));
            if let Err(error) = done {
                sent = Err(error);
            }
            is_left
        });
        sent
    }

    /// Sends a step. Returns false if a part of it still waits.
    fn is_done(&mut self, step: &mut Step, is_free: bool) -> Result<bool, Error> {
        self.push(&mut step.links, List::Source)?;
        if !step.links.is_empty() {
            return Ok(false);
        }
        let Some((page, end)) = &step.end else { return Ok(true) };
        if !is_free || self.fails(page.partition) {
            return Ok(false);
        }
        let (ended, links) = match end {
            End::Finish(links) => {
                let items = links.iter().map(|link| Item::unfiltered(&link[..]));
                (self.consumer.finish(page, items), &links[..])
            }
            End::Reject(reason) => (self.consumer.reject(page, reason), &[][..]),
        };
        match ended {
            Ok(true) => self.counts.sent += links.len() as u64,
            Ok(false) => self.counts.given_to_others += 1,
            Err(error) if is_absence(&error) => {
                self.failed.insert(page.partition, error);
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        self.taken_bytes += bytes(links);
        Ok(true)
    }

    /// Pushes items to the lists of all their partitions at the same time, and removes those that
    /// Redis has taken.
    fn push(&mut self, items: &mut Items, list: List) -> Result<(), Error> {
        loop {
            let mut questions: Vec<Addressed> = Vec::new();
            for (&partition, items) in &*items {
                if !self.fails(partition)
                    && let Some(command) = self.command(partition, list, items)?
                {
                    questions.push((Some(partition), command.into()));
                }
            }
            if questions.is_empty() {
                return Ok(());
            }
            let answers = self.consumer.ask_all(&questions, 0);
            let mut refused = None;
            for (partition, answer) in questions.iter().filter_map(|it| it.0).zip(answers) {
                match answer {
                    Ok(_) => self.take(items, partition, list),
                    Err(error) if is_absence(&error) => drop(self.failed.insert(partition, error)),
                    Err(error) => refused = Some(error),
                }
            }
            if let Some(refused) = refused {
                return Err(refused);
            }
        }
    }

    /// Returns the command that pushes the first items, or `None` if the partition has no record
    /// with the key of the list.
    fn command(
        &self,
        partition: usize,
        list: List,
        items: &[Vec<u8>],
    ) -> Result<Option<Cmd>, Error> {
        let crawl = &self.consumer.crawl;
        let calls = match crawl.calls(partition) {
            Err(error) if error.kind() == ErrorKind::NoCrawl => None,
            calls => Some(calls?),
        };
        let (name, key) = match (list, calls.as_ref().map(|it| &it.record)) {
            (List::Source, Some(record)) => (&record.push[..], &record.source),
            (List::Source, None) => ("RPUSH", &crawl.partitions[partition].source),
            (List::Forget, Some(record)) => ("RPUSH", &record.forget),
            (List::Forget, None) => return Ok(None),
        };
        let mut command = cmd(name);
        command.arg(key).arg(&items[..items.len().min(PUSH_ITEMS)]);
        Ok(Some(command))
    }

    /// Removes the first items of a partition, which Redis has taken.
    fn take(&mut self, items: &mut Items, partition: usize, list: List) {
        let Some(waiting) = items.get_mut(&partition) else { return };
        let taken: Vec<_> = waiting.drain(..waiting.len().min(PUSH_ITEMS)).collect();
        match list {
            List::Forget => self.counts.forgotten += taken.len() as u64,
            List::Source => {
                self.counts.sent += taken.len() as u64;
                self.taken_bytes += bytes(&taken);
            }
        }
        if waiting.is_empty() {
            items.remove(&partition);
        }
    }

    /// Returns true if a command for the partition would fail now.
    fn fails(&mut self, partition: usize) -> bool {
        if self.failed.contains_key(&partition) {
            return true;
        }
        if let Some(reason) = self.consumer.rests(partition) {
            self.failed.insert(partition, Error::new(ErrorKind::Redis, reason));
            return true;
        }
        !self.failed.is_empty() && self.consumer.is_away()
    }
}

/// Returns true if the server gave no answer, or cannot work now.
fn is_absence(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Redis | ErrorKind::Memory)
}

/// Returns the size in bytes of items of all partitions.
pub(super) fn size(items: &Items) -> usize {
    items.values().map(|items| bytes(items)).sum()
}

fn bytes(items: &[Vec<u8>]) -> usize {
    items.iter().map(Vec::len).sum()
}
