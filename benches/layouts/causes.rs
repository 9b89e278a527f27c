//! Causes of the errors of other projects' filters, each shown with a million keys.

use std::collections::HashSet;

use serde::Serialize;
use urlseen_core::filter::kinds::{Imooc, PyreBloom, ScrapyRedisBloomFilter};
use urlseen_core::filter::layout::BitStrings;

use super::count::bits::{Bits, place};
use super::count::filter::{Filter, Size};
use super::count::keys::fingerprint;
use super::count::{Fill, UNSEEN};

/// Number of keys in a sample.
const SAMPLE: u64 = 1_000_000;

/// Distribution of a sample of keys over the blocks of an imooc filter. A block is one of its Redis
/// strings.
#[derive(Serialize)]
pub struct Blocks {
    filter: &'static str,
    made_for: u64,
    error_rate: f64,
    /// Number of bits according to the formula of imooc.
    m: u64,
    sample: u64,
    /// Number of keys of the sample in each block.
    keys_of_blocks: Vec<u64>,
    /// Length in bits of the longest string, after all keys are set.
    longest: u64,
}

/// Counts, for each block of an imooc filter, the keys of a sample that set their bits in it.
pub fn blocks(made_for: u64, error_rate: f64) -> Blocks {
    let layout = Imooc::new(made_for, error_rate).expect("it can be made");
    let mut keys_of_blocks = vec![0; layout.strings() as usize];
    let (mut longest, mut positions) = (0, Vec::new());
    for key in 0..SAMPLE {
        place(&layout, &fingerprint(key), &mut positions);
        keys_of_blocks[positions[0].string as usize] += 1;
        longest = positions.iter().fold(longest, |longest, at| longest.max(at.bit));
    }
    let longest = u64::from(longest) + 1;
    let filter = "imooc";
    Blocks { filter, made_for, error_rate, m: layout.m(), sample: SAMPLE, keys_of_blocks, longest }
}

/// Number of different bits that each hash of scrapy-redis-bloomfilter sets for a sample of keys.
#[derive(Serialize)]
pub struct Hashes {
    filter: &'static str,
    sample: u64,
    bits_of_hashes: Vec<usize>,
}

/// Counts the different bits that each hash of scrapy-redis-bloomfilter sets for a sample of keys.
pub fn hashes() -> Hashes {
    // The package's defaults.
    let (bit, hashes) = (30, 6);
    let layout = ScrapyRedisBloomFilter::new(bit, hashes).expect("it can be made");
    let mut bits_of_hashes = vec![HashSet::new(); hashes as usize];
    let mut positions = Vec::new();
    for key in 0..SAMPLE {
        place(&layout, &fingerprint(key), &mut positions);
        for (bits, position) in bits_of_hashes.iter_mut().zip(&positions) {
            bits.insert(position.bit);
        }
    }
    let bits_of_hashes = bits_of_hashes.iter().map(HashSet::len).collect();
    Hashes { filter: "scrapy-redis-bloomfilter", sample: SAMPLE, bits_of_hashes }
}

/// Test of keys that pyreBloom has set: its port (luw2007's `bloomfilter`) finds `found` of them.
#[derive(Serialize)]
pub struct Port {
    filter: &'static str,
    made_for: u32,
    error_rate: f64,
    /// Number of bits of pyreBloom, and number of bits of its port.
    m: [u64; 2],
    sample: u64,
    found: u64,
}

/// Sets a sample of keys with pyreBloom, and tests the same keys with its port.
pub fn port(made_for: u32, error_rate: f64) -> Port {
    let layout = PyreBloom::new(made_for, error_rate).expect("it can be made");
    let port = PyreBloom::unrounded(made_for, error_rate).expect("it can be made");
    let mut bits = Bits::new(&layout);
    bits.fill(0..SAMPLE);
    let found = bits.seen_by(&port, 0..SAMPLE);
    let filter = "pyrebloom";
    Port { filter, made_for, error_rate, m: [layout.m(), port.m()], sample: SAMPLE, found }
}

/// Errors of the fullest block of an imooc filter. This block gets the most keys.
#[derive(Serialize)]
pub struct Block {
    filter: &'static str,
    made_for: u64,
    error_rate: f64,
    block: u32,
    /// Number of keys in the block.
    keys: u64,
    /// Three counts. `asked`: unseen keys for the whole filter. `unseen`: the part of these keys
    /// that belongs to the block. `wrong`: the part of `unseen` that the block reported as seen.
    asked: u64,
    unseen: u64,
    wrong: u64,
    /// Computed error rate of the block, and computed error rate of the whole filter.
    computed: f64,
    computed_of_all: f64,
    /// Error rate of `native` with the same number of keys in the memory of all blocks.
    native: f64,
    size: Size,
}

/// Fills the fullest block of imooc with its share of the keys, and tests its share of `asked`
/// other keys. No key has bits in two blocks, so a block alone behaves as it does inside the whole
/// filter.
pub fn fullest_block(made_for: u64, error_rate: f64, asked: u64) -> Block {
    let whole = Imooc::new(made_for, error_rate).expect("it can be made");
    // This filter has only one block, and the same hashes as the whole filter.
    let alone = Imooc::new(1_000_000, error_rate).expect("it can be made");
    assert_eq!((alone.strings(), alone.hashes()), (1, whole.hashes()));

    let block_of = |digit: u8| {
        let mut positions = Vec::new();
        whole.push_positions(&[digit], &mut positions).expect("a character has a place");
        positions[0].string
    };
    let digits = b"0123456789abcdef".map(|digit| (digit, block_of(digit)));
    let share = |block: &u32| digits.iter().filter(|(_, of)| of == block).count();
    let block = (0..whole.strings()).max_by_key(share).expect("a block");

    let mut belongs = [false; 128];
    for (digit, of) in digits {
        belongs[usize::from(digit)] = of == block;
    }
    let filter = Filter::Imooc { capacity: made_for, error_rate };
    let mut bits = Bits::of_keys(&alone, |digits| belongs[usize::from(digits[0])]);
    bits.fill(0..made_for);
    let others = UNSEEN..UNSEEN + asked;
    Block {
        filter: "imooc",
        made_for,
        error_rate,
        block,
        keys: bits.keys(),
        asked,
        unseen: bits.own(others.clone()),
        wrong: bits.seen(others),
        computed: alone.error_rate(bits.keys()),
        computed_of_all: whole.error_rate(made_for),
        native: filter.native(made_for).error_rate_at(made_for),
        size: filter.size(made_for),
    }
}
