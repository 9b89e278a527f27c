//! What a filter takes: bits, hashes and memory, and how its error rate grows.

use std::io::{self, Write};

use serde::Serialize;

use urlseen::filter::{Capacity, ErrorRate, Layout, Lines, Sizing};

use super::costs::REDIS_SET_BYTES;
use super::others::Others;
use super::text::{grouped, size};

/// Where the error rate is shown, in percent of capacity.
const GROWTH_PERCENT: [u64; 7] = [50, 80, 100, 125, 150, 200, 300];

/// All that is printed, computed.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    capacity: u64,
    error_rate: f64,
    optimum: Optimum,
    layouts: Vec<LayoutRow>,
    growth: Vec<GrowthRow>,
    redis_set: RedisSet,
    others: Others,
}

/// A plain Bloom filter without lines: the best that is possible.
#[derive(Debug, Serialize)]
struct Optimum {
    k: f64,
    bits_per_key: f64,
    bytes: f64,
}

/// One way to lay the filter out.
#[derive(Debug, Serialize)]
struct LayoutRow {
    layout: &'static str,
    chosen: bool,
    lines: u32,
    k: u32,
    m: u64,
    bits_per_key: f64,
    bytes: u64,
}

/// The error rate of the chosen layout at some number of keys.
#[derive(Debug, Serialize)]
struct GrowthRow {
    percent: u64,
    keys: u64,
    error_rate: f64,
}

/// The exact alternative.
#[derive(Debug, Serialize)]
struct RedisSet {
    bytes_per_key: [u64; 2],
    bytes: [u64; 2],
}

impl Figures {
    /// Computes them.
    pub(super) fn of(capacity: Capacity, error_rate: ErrorRate) -> Self {
        let keys = capacity.get();
        let chosen = Sizing::new(capacity, error_rate);
        let bits_per_key = error_rate.optimal_bits_per_key();
        let layouts = Lines::ALL
            .map(|lines| Sizing::with_lines(capacity, error_rate, lines).geometry())
            .map(|geometry| LayoutRow {
                layout: Layout::Native.name(),
                chosen: geometry == chosen.geometry(),
                lines: geometry.lines().get(),
                k: geometry.k(),
                m: geometry.bits(),
                bits_per_key: geometry.bits() as f64 / keys as f64,
                bytes: geometry.bytes(),
            });
        let growth = GROWTH_PERCENT.map(|percent| {
            let keys = (keys * percent).div_ceil(100);
            GrowthRow { percent, keys, error_rate: chosen.geometry().error_rate_at(keys) }
        });
        Self {
            capacity: keys,
            error_rate: error_rate.get(),
            optimum: Optimum {
                k: -error_rate.get().log2(),
                bits_per_key,
                bytes: bits_per_key * keys as f64 / 8.0,
            },
            layouts: layouts.into(),
            growth: growth.into(),
            redis_set: RedisSet {
                bytes_per_key: REDIS_SET_BYTES,
                bytes: REDIS_SET_BYTES.map(|bytes| bytes * keys),
            },
            others: Others::of(capacity, error_rate),
        }
    }

    /// Prints the tables.
    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { optimum, layouts, growth, redis_set, others, .. } = self;
        writeln!(
            out,
            "{:<18} {:>5} {:>4} {:>22} {:>9} {:>8} {:>11}",
            "layout", "lines", "k", "m (bits)", "bits/key", "optimum", "memory"
        )?;
        for row in layouts {
            let over = row.bits_per_key / optimum.bits_per_key;
            let chosen = if row.chosen { "  <- chosen" } else { "" };
            writeln!(
                out,
                "{:<18} {:>5} {:>4} {:>22} {:>9.1} {:>7.2}x {:>11}{chosen}",
                row.layout,
                row.lines,
                row.k,
                grouped(row.m),
                row.bits_per_key,
                over,
                size(row.bytes as f64),
            )?;
        }
        writeln!(
            out,
            "{:<18} {:>5} {:>4.0} {:>22} {:>9.1} {:>7.2}x {:>11}",
            "textbook optimum",
            "any",
            optimum.k,
            "",
            optimum.bits_per_key,
            1.0,
            size(optimum.bytes),
        )?;
        let [least, most] = redis_set.bytes;
        let [least_each, most_each] = redis_set.bytes_per_key;
        writeln!(
            out,
            "{:<18} {:>5} {:>4} {:>22} {:>9} {:>8} {:>11}",
            "Redis set, exact",
            "",
            "",
            "",
            format!("{}-{}", least_each * 8, most_each * 8),
            "",
            format!("{} - {}", size(least as f64), size(most as f64)),
        )?;
        writeln!(out, "\n{:>11} {:>22} {:>11}", "of capacity", "keys", "error rate")?;
        for GrowthRow { percent, keys, error_rate } in growth {
            let rate = format!("{error_rate:.2e}");
            writeln!(out, "{:>11} {:>22} {rate:>11}", format!("{percent} %"), grouped(*keys))?;
        }
        others.print(out)
    }
}
