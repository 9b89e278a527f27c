//! What a script needs to judge by a filter that is in Redis: its functions, and the question.
//!
//! Each kind of filter has its functions in Lua beside this file, all under the same names:
//! `filter_refusal(keys)`, and `judge(keys, places, first, last, first_extra)`, which answers what
//! goes on, how much of that is unseen, and a function that remembers it. They stand behind
//! [`COMMON`](crate::redis::script::COMMON) in a script.

#[cfg(feature = "redis")]
pub mod ask;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::filter::layout::BitPosition;
use crate::filter::native::Native;
use crate::filter::shared::text;
use crate::filter::{BLOCK_BITS, BLOCK_BYTES, Placing, RedisFilterKeys};
use crate::fingerprint::Fingerprint;
#[cfg(feature = "redis")]
pub use ask::ask;
pub use ask::verdict;

/// How long a script may hold Redis up, about, in nanoseconds: what is judged at once is bounded by
/// that.
const LONGEST: usize = 5_000_000;

/// What an unseen item costs Redis, in nanoseconds, on a slow machine (docs/benchmarks.md): a block
/// that is read and written, a bit, a member of a set, and what comes on top.
const BLOCK: usize = 12_000;
const BIT: usize = 2_300;
const MEMBER: usize = 2_500;
const ITEM: usize = 1_500;

/// How a script judges by a filter.
#[derive(Debug, Clone)]
pub struct Judge(Arc<RedisFilterKeys>);

/// What a script judges some items by.
#[derive(Debug, Default)]
pub struct Question {
    /// The filter's keys that are needed.
    pub keys: Vec<String>,
    /// Where in them to look.
    pub places: Vec<u8>,
    /// What to look for.
    pub extras: Vec<Vec<u8>>,
}

impl Judge {
    /// By this filter.
    pub fn new(filter: Arc<RedisFilterKeys>) -> Self {
        Self(filter)
    }

    /// The filter.
    pub fn filter(&self) -> &RedisFilterKeys {
        &self.0
    }

    /// The functions that a script calls.
    pub fn lua(&self) -> String {
        match self.0.placing() {
            Placing::Blocks(native) => {
                let geometry = native.geometry();
                let (blocks, width) = (geometry.blocks().get(), geometry.bits_per_block());
                let text = include_str!("blocks.lua");
                format!("local BLOCKS, WIDTH = {blocks}, {width}\n{text}")
            }
            Placing::Bits(strings) => {
                let text = include_str!("bits.lua");
                format!("local WIDTH = {}\n{text}", strings.hashes())
            }
            Placing::Set => include_str!("set.lua").to_owned(),
        }
    }

    /// How many items one script may judge at most, so as not to hold Redis up.
    pub fn most(&self) -> usize {
        let cost = match self.0.placing() {
            Placing::Blocks(native) => BLOCK * native.geometry().blocks().get() as usize,
            Placing::Bits(strings) => BIT * strings.hashes() as usize,
            Placing::Set => MEMBER,
        };
        (LONGEST / (cost + ITEM)).max(1)
    }

    /// The question whether these are seen; `None` stands for what goes on unchecked.
    pub fn question<'a>(
        &self,
        fingerprints: impl Iterator<Item = Option<&'a Fingerprint>>,
    ) -> Question {
        match self.0.placing() {
            Placing::Blocks(native) => self.blocks(*native, fingerprints),
            Placing::Bits(strings) => {
                let width = strings.hashes() as usize;
                let mut asked = Asked::new(&self.0);
                let mut positions = Vec::with_capacity(width);
                for fingerprint in fingerprints {
                    let Some(fingerprint) = fingerprint else {
                        asked.skip(2 * width, width);
                        continue;
                    };
                    positions.clear();
                    let text = text(fingerprint);
                    strings
                        .push_positions(&text, &mut positions)
                        .expect("checked when it was read");
                    for &BitPosition { string, bit } in &positions {
                        asked.string(string);
                        asked.number(bit);
                    }
                }
                asked.question()
            }
            Placing::Set => Question {
                keys: vec![self.0.key(0)],
                places: Vec::new(),
                extras: fingerprints
                    .map(|fingerprint| fingerprint.map_or_else(Vec::new, |it| text(it).into()))
                    .collect(),
            },
        }
    }

    fn blocks<'a>(
        &self,
        native: Native,
        fingerprints: impl Iterator<Item = Option<&'a Fingerprint>>,
    ) -> Question {
        let geometry = native.geometry();
        let (blocks, width) = (geometry.blocks().get() as usize, geometry.bits_per_block().into());
        let mut asked = Asked::new(&self.0);
        let mut positions: Vec<u64> = Vec::with_capacity(blocks * width);
        for fingerprint in fingerprints {
            let Some(fingerprint) = fingerprint else {
                asked.skip(blocks * (2 + 5 * width), 2 * blocks);
                continue;
            };
            let key_hash = native.key_hash(fingerprint);
            positions.clear();
            positions.extend(native.positions(key_hash));
            for block in positions.chunks(width) {
                // A shard's number; a string has at most 512 MiB.
                #[allow(clippy::cast_possible_truncation)]
                let (string, offset) = (
                    key_hash.shard().index() as u32,
                    (block[0] / u64::from(BLOCK_BITS)) as u32 * BLOCK_BYTES,
                );
                asked.string(string);
                asked.number(offset);
                asked.number(offset + BLOCK_BYTES - 1);
                for position in block {
                    // Below 512.
                    #[allow(clippy::cast_possible_truncation)]
                    let bit = (position % u64::from(BLOCK_BITS)) as u32;
                    // Below 16.
                    #[allow(clippy::cast_possible_truncation)]
                    asked.places.push((bit / u32::BITS) as u8 + 1);
                    asked.places.extend((1_u32 << (bit % u32::BITS)).to_be_bytes());
                }
            }
        }
        asked.question()
    }
}

/// A question being put together: the strings are numbered as they come.
struct Asked<'a> {
    shared: &'a RedisFilterKeys,
    numbers: BTreeMap<u32, u16>,
    keys: Vec<String>,
    places: Vec<u8>,
    extras: Vec<Vec<u8>>,
}

impl<'a> Asked<'a> {
    fn new(shared: &'a RedisFilterKeys) -> Self {
        let (keys, places, extras) = (Vec::new(), Vec::new(), Vec::new());
        Self { shared, numbers: BTreeMap::new(), keys, places, extras }
    }

    /// An item goes on unchecked: so many bytes of places and so many extras say nothing.
    fn skip(&mut self, places: usize, extras: usize) {
        self.places.resize(self.places.len() + places, 0);
        self.extras.resize(self.extras.len() + extras, Vec::new());
    }

    /// A number as Redis takes it.
    fn number(&mut self, number: u32) {
        self.extras.push(itoa::Buffer::new().format(number).as_bytes().to_vec());
    }

    fn string(&mut self, string: u32) {
        let number = *self.numbers.entry(string).or_insert_with(|| {
            self.keys.push(self.shared.key(string));
            u16::try_from(self.keys.len()).expect("no commit has so many bits")
        });
        self.places.extend(number.to_be_bytes());
    }

    fn question(self) -> Question {
        Question { keys: self.keys, places: self.places, extras: self.extras }
    }
}
