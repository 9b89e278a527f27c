//! Rejects list: unreadable items, kept in Redis for people.
//!
//! The daemon appends at the right end of the list. With `rejects.when_full = "drop-oldest"` the
//! daemon also drops from the left end. [`RejectsList::sort`] first sets the rejects aside: it
//! renames the list to a key of urlseen's own. So it sorts exactly the rejects of that moment, even
//! if the daemon adds more meanwhile. Then it puts the kept rejects on the list again, before newer
//! ones. If the process is killed, rejects stay under that key, and the next sort puts them on the
//! list again.

mod list;
mod sort;

pub use list::RejectsList;
pub use sort::Fate;
pub(crate) use sort::Sorted;
