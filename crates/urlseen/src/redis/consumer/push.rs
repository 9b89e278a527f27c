//! Pushes of items to the sources of their partitions.

use std::collections::BTreeMap;
use std::mem;

use redis::cmd;

use super::crawl::Home;
use super::item::Item;
use super::{Consumer, Delivery};
use crate::{Error, ErrorKind};
use urlseen_core::redis::held::Calls;

/// Maximum number of items in one push. [`ConsumerOptions::max_push_bytes`] limits a push, too.
///
/// [`ConsumerOptions::max_push_bytes`]: super::ConsumerOptions::max_push_bytes
const PUSH_ITEMS: usize = 1000;

/// Items on their way to the sources of their partitions.
#[derive(Default)]
pub(super) struct Push {
    items: Vec<(usize, Vec<u8>)>,
    bytes: usize,
}

impl Push {
    fn add(&mut self, partition: usize, item: Vec<u8>) {
        self.bytes += item.len();
        self.items.push((partition, item));
    }

    /// Returns the items of each partition.
    fn by_partition(&self) -> BTreeMap<usize, Vec<&[u8]>> {
        let mut groups = BTreeMap::<_, Vec<&[u8]>>::new();
        for (partition, item) in &self.items {
            groups.entry(*partition).or_default().push(item);
        }
        groups
    }
}

/// Links of a page, divided by the way in which they are pushed.
pub(super) struct PageLinks {
    /// Links that the finishing script pushes to the page's own partition.
    pub(super) own: Vec<Vec<u8>>,
    /// Filtered links of other partitions.
    pub(super) others: Push,
}

impl Consumer {
    /// Divides the links of a page.
    ///
    /// # Errors
    /// The links are too large, or the partition of a link is not known.
    pub(super) fn divide(
        &self,
        delivery: &Delivery,
        links: impl Iterator<Item = Item>,
    ) -> Result<PageLinks, Error> {
        let mut fingerprinter = self.crawl.fingerprinter();
        let mut divided = PageLinks { own: Vec::new(), others: Push::default() };
        let mut bytes = 0;
        for link in links {
            bytes += link.bytes.len();
            match self.crawl.home(&link, &mut fingerprinter)? {
                Home::Partition(number) if number != delivery.partition => {
                    divided.others.add(number, link.bytes);
                }
                Home::Partition(_) | Home::Any(_) => divided.own.push(link.bytes),
            }
        }
        if bytes > self.options.max_push_bytes { Err(self.too_large(bytes)) } else { Ok(divided) }
    }

    /// Pushes items in parts that are within the limits.
    pub(super) fn push_items(&self, items: impl Iterator<Item = Item>) -> Result<(), Error> {
        let most = self.options.max_push_bytes;
        let mut fingerprinter = self.crawl.fingerprinter();
        let mut part = Push::default();
        for item in items {
            let length = item.bytes.len();
            if length > most {
                return Err(self.too_large(length));
            }
            let (Home::Partition(number) | Home::Any(number)) =
                self.crawl.home(&item, &mut fingerprinter)?;
            if part.items.len() == PUSH_ITEMS || part.bytes + length > most {
                self.push_all(&mem::take(&mut part))?;
            }
            part.add(number, item.bytes);
        }
        self.push_all(&part)
    }

    /// Pushes items to all their partitions at the same time, and waits for all answers.
    pub(super) fn push_all(&self, push: &Push) -> Result<(), Error> {
        let groups = push.by_partition();
        let push = |number, calls: &Calls| {
            let mut command = cmd(&calls.record().push);
            command.arg(&calls.record().source).arg(&groups[&number]);
            command
        };
        let partitions: Vec<usize> = groups.keys().copied().collect();
        let answers = self.ask_each(&partitions, self.options.retries, push)?;
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
