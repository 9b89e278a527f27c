//! Pushes of items to the sources of their partitions.

use std::collections::BTreeMap;
use std::mem;

use redis::cmd;

use super::crawl::Home;
use super::item::Item;
use super::{Consumer, Delivery};
use crate::{Error, ErrorKind};
use urlseen_redis::protocol::HeldCalls;

/// Maximum number of items in one push. [`ConsumerOptions::max_push_bytes`] limits a push, too.
///
/// [`ConsumerOptions::max_push_bytes`]: super::ConsumerOptions::max_push_bytes
pub(super) const PUSH_ITEMS: usize = 1000;

/// Items on their way to the sources of their partitions.
#[derive(Default)]
pub(super) struct Push {
    by_partition: BTreeMap<usize, Vec<Vec<u8>>>,
    count: usize,
    bytes: usize,
}

impl Push {
    fn add(&mut self, partition: usize, item: Vec<u8>) {
        self.count += 1;
        self.bytes += item.len();
        self.by_partition.entry(partition).or_default().push(item);
    }
}

impl Consumer {
    /// Divides the links of a page into those that the finishing script pushes to the page's own
    /// partition, and filtered links of other partitions.
    ///
    /// # Errors
    /// The links are too large, or the partition of a link is not known.
    pub(super) fn divide(
        &self,
        delivery: &Delivery,
        links: impl Iterator<Item = Item>,
    ) -> Result<(Vec<Vec<u8>>, Push), Error> {
        let mut fingerprinter = self.crawl.fingerprinter();
        let (mut own, mut others, mut bytes) = (Vec::new(), Push::default(), 0);
        for link in links {
            bytes += link.bytes.len();
            match self.crawl.home(&link, &mut fingerprinter)? {
                Home::Partition(number) if number != delivery.partition => {
                    others.add(number, link.bytes);
                }
                Home::Partition(_) | Home::Any(_) => own.push(link.bytes),
            }
        }
        if bytes > self.options.max_push_bytes {
            return Err(self.too_large(bytes));
        }
        Ok((own, others))
    }

    /// Pushes items to the source of the crawl, such as its first URLs. For the links of a held
    /// page, call [`Consumer::finish`] instead.
    ///
    /// A second call pushes the items again. A broken connection can have the same effect. The
    /// daemon drops the second copy of an item, unless the item passes unfiltered (`dont_filter`).
    ///
    /// # Errors
    /// An item is larger than [`ConsumerOptions::max_push_bytes`] ([`ErrorKind::Limit`]), the
    /// partition of an item is not known ([`ErrorKind::NoFingerprint`]), or Redis is unreachable.
    /// Some of the items may have been pushed.
    ///
    /// [`ConsumerOptions::max_push_bytes`]: crate::ConsumerOptions::max_push_bytes
    pub fn push(&self, items: impl IntoIterator<Item = impl Into<Item>>) -> Result<(), Error> {
        let most = self.options.max_push_bytes;
        let mut fingerprinter = self.crawl.fingerprinter();
        let mut part = Push::default();
        for item in items.into_iter().map(Into::<Item>::into) {
            let length = item.bytes.len();
            if length > most {
                return Err(self.too_large(length));
            }
            let (Home::Partition(number) | Home::Any(number)) =
                self.crawl.home(&item, &mut fingerprinter)?;
            if part.count == PUSH_ITEMS || part.bytes + length > most {
                self.push_all(&mem::take(&mut part))?;
            }
            part.add(number, item.bytes);
        }
        self.push_all(&part)
    }

    /// Pushes items to all their partitions at the same time, and waits for all answers.
    pub(super) fn push_all(&self, push: &Push) -> Result<(), Error> {
        let command = |number, calls: &HeldCalls| {
            let mut command = cmd(&calls.record.push);
            command.arg(&calls.record.source).arg(&push.by_partition[&number]);
            command
        };
        let partitions: Vec<usize> = push.by_partition.keys().copied().collect();
        let answers = self.ask_each(&partitions, self.options.retries, command)?;
        answers.into_iter().try_for_each(|answer| answer.map(drop))
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
}
