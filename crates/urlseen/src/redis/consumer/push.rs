//! Pushes of items to their sources.

use std::collections::BTreeMap;
use std::mem;

use redis::cmd;

use super::crawl::Crawl;
use super::item::Item;
use super::{Consumer, Delivery};
use crate::{Error, ErrorKind};
use urlseen_redis::protocol::HeldCalls;

/// Maximum number of items in one push. [`ConsumerOptions::max_push_bytes`] limits a push, too.
///
/// [`ConsumerOptions::max_push_bytes`]: super::ConsumerOptions::max_push_bytes
pub(super) const PUSH_ITEMS: usize = 1000;

/// Items by the number of their crawl.
pub(super) type Items = BTreeMap<usize, Vec<Vec<u8>>>;

impl Consumer {
    /// Divides the links of a page into those that the finishing script pushes to the page's own
    /// crawl, and filtered links of other crawls.
    ///
    /// # Errors
    /// The links are too large, or the crawl of a link is not known.
    pub(super) fn divide(
        &self,
        delivery: &Delivery,
        links: impl Iterator<Item = Item>,
    ) -> Result<(Vec<Vec<u8>>, Items), Error> {
        let mut fingerprinter = self.crawls.fingerprinter();
        let (mut own, mut others, mut bytes) = (Vec::new(), Items::new(), 0);
        for link in links {
            bytes += link.bytes.len();
            match self.crawls.home(&link, &mut fingerprinter)? {
                (number, false) if number != delivery.crawl.number => {
                    others.entry(number).or_default().push(link.bytes);
                }
                _ => own.push(link.bytes),
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
    /// fingerprint of an item is missing ([`ErrorKind::NoFingerprint`]), or Redis is unreachable.
    /// Some of the items may have been pushed.
    ///
    /// [`ConsumerOptions::max_push_bytes`]: crate::ConsumerOptions::max_push_bytes
    pub fn push(&self, items: impl IntoIterator<Item = impl Into<Item>>) -> Result<(), Error> {
        let most = self.options.max_push_bytes;
        let mut fingerprinter = self.crawls.fingerprinter();
        let (mut part, mut count, mut bytes) = (Items::new(), 0, 0);
        for item in items.into_iter().map(Into::<Item>::into) {
            let length = item.bytes.len();
            if length > most {
                return Err(self.too_large(length));
            }
            let (number, _) = self.crawls.home(&item, &mut fingerprinter)?;
            if count == PUSH_ITEMS || bytes + length > most {
                self.push_all(&mem::take(&mut part))?;
                (count, bytes) = (0, 0);
            }
            part.entry(number).or_default().push(item.bytes);
            (count, bytes) = (count + 1, bytes + length);
        }
        self.push_all(&part)
    }

    /// Pushes items to all their sources at the same time, and waits for all answers.
    pub(super) fn push_all(&self, items: &Items) -> Result<(), Error> {
        let command = |crawl: &Crawl, calls: &HeldCalls| {
            let mut command = cmd(&calls.record.push);
            command.arg(&calls.record.source).arg(&items[&crawl.number]);
            command
        };
        let crawls: Vec<&Crawl> = items.keys().map(|&number| &*self.crawls.all[number]).collect();
        let answers = self.ask_each(&crawls, self.options.retries, command)?;
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
