//! Work of an [outbox](super::outbox), and one attempt to send it.

use std::collections::BTreeMap;
use std::sync::Arc;

use redis::{Cmd, cmd};

use super::push::{Items, PUSH_ITEMS};
use super::{Consumer, Delivery, Item};
use crate::redis::links::Addressed;
use crate::{Error, ErrorKind};

/// Numbers of items that Redis has taken (`sent` and `forgotten`), and of pages that another
/// consumer has now (`given_to_others`).
pub(super) type Counts = BTreeMap<&'static str, usize>;

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

/// One attempt to send all work.
pub(super) struct Attempt<'a> {
    consumer: &'a Consumer,
    /// Numbers of the crawls whose servers are away, with their errors.
    pub(super) failed: BTreeMap<usize, Error>,
    pub(super) counts: Counts,
    pub(super) taken_bytes: usize,
}

impl Work {
    pub(super) fn is_empty(&self) -> bool {
        self.loose.is_empty() && self.forgets.is_empty() && self.steps.is_empty()
    }

    /// Appends work that was added later.
    pub(super) fn append(&mut self, later: Self) {
        for (items, more) in [(&mut self.loose, later.loose), (&mut self.forgets, later.forgets)] {
            for (number, mut added) in more {
                items.entry(number).or_default().append(&mut added);
            }
        }
        self.steps.extend(later.steps);
    }
}

impl<'a> Attempt<'a> {
    /// Prepares an attempt, which adds what is sent to `counts`.
    pub(super) fn new(consumer: &'a Consumer, counts: Counts) -> Self {
        Self { consumer, failed: BTreeMap::new(), counts, taken_bytes: 0 }
    }

    /// Sends everything that may be sent, and removes it from the work.
    ///
    /// # Errors
    /// A command was refused.
    pub(super) fn send(&mut self, work: &mut Work) -> Result<(), Error> {
        self.push(&mut work.loose, false)?;
        self.push(&mut work.forgets, true)?;
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
        self.push(&mut step.links, false)?;
        if !step.links.is_empty() {
            return Ok(false);
        }
        let Some((page, end)) = &step.end else { return Ok(true) };
        if !is_free || self.fails(page.crawl.number) {
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
            Ok(true) => self.count("sent", links.len()),
            Ok(false) => self.count("given_to_others", 1),
            Err(error) if is_absence(&error) => {
                self.failed.insert(page.crawl.number, error);
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        self.taken_bytes += bytes(links);
        Ok(true)
    }

    /// Pushes items to all their sources, or lists of items to forget, at the same time. Removes
    /// those that Redis has taken.
    fn push(&mut self, items: &mut Items, is_forget: bool) -> Result<(), Error> {
        loop {
            let (mut numbers, mut questions) = (Vec::new(), Vec::<Addressed>::new());
            for (&number, items) in &*items {
                if !self.fails(number)
                    && let Some(command) = self.command(number, is_forget, items)?
                {
                    numbers.push(number);
                    questions.push((self.consumer.crawls.all[number].place, command.into()));
                }
            }
            if questions.is_empty() {
                return Ok(());
            }
            let answers = self.consumer.ask_all(&questions, 0);
            let mut refused = None;
            for (number, answer) in numbers.into_iter().zip(answers) {
                match answer {
                    Ok(_) => self.take(items, number, is_forget),
                    Err(error) if is_absence(&error) => drop(self.failed.insert(number, error)),
                    Err(error) => refused = Some(error),
                }
            }
            if let Some(refused) = refused {
                return Err(refused);
            }
        }
    }

    /// Returns the command that pushes the first items, or `None` if the crawl has no record with
    /// the key of the list.
    fn command(
        &self,
        number: usize,
        is_forget: bool,
        items: &[Vec<u8>],
    ) -> Result<Option<Cmd>, Error> {
        let crawls = &self.consumer.crawls;
        let crawl = &crawls.all[number];
        let calls = match crawls.calls(crawl) {
            Err(error) if error.kind() == ErrorKind::NoCrawl => None,
            calls => Some(calls?),
        };
        let (name, key) = match calls.as_ref().map(|it| &it.record) {
            Some(record) if is_forget => ("RPUSH", &record.forget),
            Some(record) => (&record.push[..], &record.source),
            None if is_forget => return Ok(None),
            None => ("RPUSH", &crawl.source),
        };
        let mut command = cmd(name);
        command.arg(key).arg(&items[..items.len().min(PUSH_ITEMS)]);
        Ok(Some(command))
    }

    /// Removes the first items of a crawl, which Redis has taken.
    fn take(&mut self, items: &mut Items, number: usize, is_forget: bool) {
        let Some(waiting) = items.get_mut(&number) else { return };
        let taken: Vec<_> = waiting.drain(..waiting.len().min(PUSH_ITEMS)).collect();
        if waiting.is_empty() {
            items.remove(&number);
        }
        self.count(if is_forget { "forgotten" } else { "sent" }, taken.len());
        if !is_forget {
            self.taken_bytes += bytes(&taken);
        }
    }

    fn count(&mut self, name: &'static str, number: usize) {
        *self.counts.entry(name).or_default() += number;
    }

    /// Returns true if a command for the crawl would fail now.
    fn fails(&mut self, number: usize) -> bool {
        if self.failed.contains_key(&number) {
            return true;
        }
        if let Some(reason) = self.consumer.rests(number) {
            self.failed.insert(number, Error::new(ErrorKind::Redis, reason));
            return true;
        }
        !self.failed.is_empty() && self.consumer.is_away()
    }
}

/// Returns true if the server gave no answer, or cannot work now.
fn is_absence(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Redis | ErrorKind::Memory)
}

/// Returns the size in bytes of items of all crawls.
pub(super) fn size(items: &Items) -> usize {
    items.values().map(|items| bytes(items)).sum()
}

fn bytes(items: &[Vec<u8>]) -> usize {
    items.iter().map(Vec::len).sum()
}
