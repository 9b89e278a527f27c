//! Layout of `BloomFilter_imooc`, a Python class that many projects have copied.
//!
//! ```text
//! m = ceil(n log2(e) log2(1/p))         bits, for n keys at error rate p
//! k = ceil(log1p(2) m / n)              hashes: ln 3, although ln 2 would be best
//! blocks = ceil(ceil(m / 8 / 2^20) / 512)
//! key    KEY_B, B = code of the text's first character mod blocks
//! bit    h if h >= 0, else 2^31 - 1 - h, where h = MurmurHash3 x86-32 (text, seed), signed
//! ```
//!
//! `m` only determines the number of blocks. The bits of a block are spread over all 2^32 bits of a
//! string, so each block grows to 512 MiB at any capacity. A fingerprint begins with one of sixteen
//! hex digits. So at most sixteen blocks get bits, and some of them get more than others. There are
//! 100 seeds, so at most 100 hashes are used.

use crate::SpecError;
use crate::key_hash::murmur3_x86_32;
use crate::kinds::kind::{IN_REDIS, Kind, Registered};
use crate::number::whole;
use crate::peers::bit_strings::{BitPosition, BitStrings, LARGEST_STRING, Place, PlacementError};

pub(crate) const KIND: Kind =
    Kind(&Registered { name: NAME, read: |values| values.by_size(layout), ..IN_REDIS });

const NAME: &str = "imooc";

/// Seeds of the hashes, in their order.
pub(crate) const SEEDS: [u32; 100] = [
    543, 460, 171, 876, 796, 607, 650, 81, 837, 545, 591, 946, 846, 521, 913, 636, 878, 735, 414,
    372, 344, 324, 223, 180, 327, 891, 798, 933, 493, 293, 836, 10, 6, 544, 924, 849, 438, 41, 862,
    648, 338, 465, 562, 693, 979, 52, 763, 103, 387, 374, 349, 94, 384, 680, 574, 480, 307, 580,
    71, 535, 300, 53, 481, 519, 644, 219, 686, 236, 424, 326, 244, 212, 909, 202, 951, 56, 812,
    901, 926, 250, 507, 739, 371, 63, 584, 154, 7, 284, 617, 332, 472, 140, 605, 262, 355, 526,
    647, 923, 199, 518,
];

/// Computes the numbers of bits, hashes and blocks by the class's formulas. Below an error rate of
/// about 1e-19, the formula asks for more hashes than the class has seeds.
pub(crate) fn sizes(capacity: u64, error_rate: f64) -> [f64; 3] {
    let keys = capacity as f64;
    let bits = (keys * std::f64::consts::LOG2_E * (1.0 / error_rate).log2()).ceil();
    let hashes = (2.0_f64.ln_1p() * bits / keys).ceil();
    [bits, hashes, ((bits / 8.0 / 1024.0 / 1024.0).ceil() / 512.0).ceil()]
}

/// Computes the layout for a capacity in keys and an error rate, as the Python class does.
///
/// # Errors
/// The capacity is 0, the error rate is not between 0 and 1, or the filter would have more than
/// 2^32 - 1 blocks.
pub(crate) fn layout(capacity: u64, error_rate: f64) -> Result<BitStrings, SpecError> {
    SpecError::check_size(NAME, capacity, error_rate)?;
    let [bits, hashes, blocks] = sizes(capacity, error_rate);
    // Refuses a rate so close to 0 that its inverse is infinite, or so close to 1 that the filter
    // would have no bit.
    if !(bits >= 1.0 && blocks <= f64::from(u32::MAX)) {
        let allowed = "a filter has at least 1 bit, and at most 2^32 - 1 strings of 512 MiB";
        return Err(SpecError::of_size(NAME, capacity, error_rate, allowed));
    }
    let blocks = u32::try_from(whole(blocks)).expect("checked above");
    let hashes = whole(hashes).min(SEEDS.len() as u64);
    let hashes = u32::try_from(hashes).expect("at most 100 seeds");
    Ok(BitStrings {
        strings: blocks,
        // One of the sixteen hex digits begins a fingerprint.
        codes: |_| b"0123456789abcdef".map(u32::from).into(),
        separator: Some("_"),
        longest: LARGEST_STRING,
        ..BitStrings::new(u64::from(blocks) * LARGEST_STRING, hashes, PLACE)
    })
}

const PLACE: Place = |layout, text, positions| {
    let string = first_character(text)? % layout.strings;
    positions.extend(SEEDS[..layout.hashes as usize].iter().map(|&seed| {
        let hash = murmur3_x86_32(text, seed);
        // For a negative hash, 2^31 - 1 - h is the hash with its lower 31 bits inverted.
        let bit = if hash >> 31 == 0 { hash } else { hash ^ (u32::MAX >> 1) };
        BitPosition { string, bit }
    }));
    Ok(())
};

/// Returns the first code point of a text.
fn first_character(text: &[u8]) -> Result<u32, PlacementError> {
    let first = *text.first().ok_or(PlacementError::Empty)?;
    if first.is_ascii() {
        return Ok(first.into());
    }
    let text = std::str::from_utf8(text).map_err(|_| PlacementError::NotText)?;
    text.chars().next().map(u32::from).ok_or(PlacementError::Empty)
}
