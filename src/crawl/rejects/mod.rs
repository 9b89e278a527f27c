//! The rejects list: the items that could not be read, kept in Redis for people.
//!
//! The daemon adds to its right end, and with `rejects.when_full = "drop-oldest"` takes from its
//! left one. [`RejectsList::sort`] first sets it aside under a key of urlseen's
//! own, so that exactly what was there is sorted, however much is rejected meanwhile, and gives
//! back what is to stay. What is set aside comes before what is on the list. One who is killed
//! leaves it aside, and the next one gives it back.
//!
//! An item that is too large for a reject stands in a list of urlseen's own, after its reject. The
//! two are moved and dropped together, without the item leaving Redis. These rejects come last.

mod list;
mod sort;

pub use list::RejectsList;
pub use sort::Fate;
pub(crate) use sort::Sorted;
