//! Filters of other projects, each described by its settings.

use serde::{Deserialize, Serialize};
use urlseen_core::filter::kinds::{BlockCluster, Imooc, PyreBloom, ScrapyRedisBloomFilter};
use urlseen_core::filter::layout::BitStrings;
use urlseen_core::filter::{Capacity, ErrorRate, Geometry, Sizing};

/// Filter of another project, described by its settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "filter", rename_all = "kebab-case")]
pub enum Filter {
    Imooc { capacity: u64, error_rate: f64 },
    Pyrebloom { capacity: u32, error_rate: f64 },
    ScrapyRedisBloomfilter { bit: u32, hash_number: u32 },
    BlockCluster { bit: u32, hash_number: u32, block_num: u32 },
}

/// Size of a filter, and the error rate that it promises.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Size {
    pub strings: u32,
    /// Number of strings in which a key can set a bit.
    pub used: usize,
    pub k: u32,
    /// Bytes of these strings when they have their full length.
    pub bytes: u64,
    /// Requested error rate, or the computed one if the settings have none.
    pub promised: f64,
    /// Number of bytes that `native` needs for this error rate.
    pub native_bytes: u64,
}

impl Filter {
    /// Returns the layout of the filter's bits.
    pub fn layout(self) -> Box<dyn BitStrings + Sync> {
        match self {
            Self::Imooc { capacity, error_rate } => made(Imooc::new(capacity, error_rate)),
            Self::Pyrebloom { capacity, error_rate } => made(PyreBloom::new(capacity, error_rate)),
            Self::ScrapyRedisBloomfilter { bit, hash_number } => {
                made(ScrapyRedisBloomFilter::new(bit, hash_number))
            }
            Self::BlockCluster { bit, hash_number, block_num } => {
                made(BlockCluster::new(bit, hash_number, block_num))
            }
        }
    }

    /// Returns the requested error rate, if the settings have one.
    pub fn asked(self) -> Option<f64> {
        match self {
            Self::Imooc { error_rate, .. } | Self::Pyrebloom { error_rate, .. } => Some(error_rate),
            Self::ScrapyRedisBloomfilter { .. } | Self::BlockCluster { .. } => None,
        }
    }

    /// Returns the size of the filter for this number of keys.
    pub fn size(self, made_for: u64) -> Size {
        let layout = self.layout();
        let used = layout.used_strings();
        let promised = self.asked().unwrap_or_else(|| layout.error_rate(made_for));
        let promised = ErrorRate::new(promised).expect("a rate that native can be made for");
        let keys = Capacity::new(made_for).expect("a number of keys");
        Size {
            strings: layout.strings(),
            used: used.len(),
            k: layout.hashes(),
            bytes: used.iter().map(|&string| layout.max_bytes(string)).sum(),
            promised: promised.get(),
            native_bytes: Sizing::new(keys, promised).geometry.bytes(),
        }
    }

    /// Returns the best geometry of `native` for this number of keys, with at most the memory of
    /// this filter.
    pub fn native(self, capacity: u64) -> Geometry {
        let fitting = Geometry::fitting(self.size(capacity).bytes, capacity);
        fitting.expect("these filters have room for a line in each shard").0
    }
}

fn made<L: BitStrings + Sync + 'static, E: std::fmt::Display>(
    layout: Result<L, E>,
) -> Box<dyn BitStrings + Sync> {
    match layout {
        Ok(layout) => Box::new(layout),
        Err(refused) => panic!("{refused}"),
    }
}
