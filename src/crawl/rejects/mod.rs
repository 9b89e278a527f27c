//! The rejects list: unreadable items, kept in Redis for people.
//!
//! The daemon appends at its right end. With `rejects.when_full = "drop-oldest"` it drops from the
//! left end. [`RejectsList::sort`] first sets the list aside under a key of urlseen's own. So it
//! sorts exactly the rejects of that moment, even if the daemon adds more meanwhile. Then it gives
//! back those that stay. The rejects set aside come before those on the list. A process that is
//! killed leaves them aside, and the next one gives them back.
//!
//! An item that is too large for a reject is kept in a list of urlseen's own, after its reject. The
//! scripts move and drop the two together, and the item does not leave Redis. These rejects come
//! last.

mod list;
mod sort;

pub use list::RejectsList;
pub use sort::Fate;
pub(crate) use sort::Sorted;
