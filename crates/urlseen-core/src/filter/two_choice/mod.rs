//! Structure of the kind `two-choice`: each key has two blocks, and is stored in one of them.
//!
//! A key of a shard is a number of h bits, which comes from the seeded hash of a fingerprint. It
//! has two *words*: x is the key itself, and y is x · c mod 2^h, for an odd number c. So each word
//! determines the key. In a layout with L blocks, the word w belongs to the block ⌊w L / 2^h⌋. The
//! block stores the next bits of w L / 2^h, the *tag*, together with two bits for the word, x or y.
//! Block and tag determine the word if a tag has at least h − log2 L bits. So a shard has exactly
//! the keys that were inserted. An unseen key counts as seen only if all of its h bits are those of
//! a stored key. The chance is n / 2^h, for n keys in the shard.
//!
//! A new key goes to the block that has more free slots. This is the power of two choices
//! (Azar, Broder, Karlin and Upfal, "Balanced Allocations", 1994). Blocks of ten and more slots are
//! then nearly equally full.
//!
//! A full shard grows to 1.25 times its slots, in place. The words stay, and a larger L moves each
//! word to a higher block. So a pass from the last block to the first one moves the keys of one
//! block after the other, and keys are found in the meantime: words up to a border have the old
//! layout, and words after the border have the new one.
//!
//! If the keys expire, a slot also has three bits for the generation of its key (`expiry`).

mod arena;
mod contents;
mod expiry;
mod format;
mod growth;
mod kernel;
mod layout;
mod shard;
mod size;

pub(super) use arena::Arena;
use format::Format;
pub(super) use kernel::{Kernel, Kernels, Work};
pub(super) use layout::{Key, KeyBits};
pub(super) use shard::{Probe, Shard};
pub(super) use size::TwoChoiceSize;
