//! What a filter takes: bits, hashes and memory, and how its error rate grows, by kind.

use std::io::{self, Write};

use serde::Serialize;

use urlseen_core::filter::kinds::NATIVE;
use urlseen_core::filter::{Blocks, Capacity, ErrorRate, Sizing};

use super::costs::REDIS_SET_BYTES;
use super::others::{Filled, Found, Other, Others};
use super::rates::{PERCENT, RateRow, rate_at, rates, shown};
use super::text::{grouped, size};

/// Where the error rate of the chosen kind is shown, in percent of capacity.
const GROWTH_PERCENT: [u64; 7] = [50, 80, 100, 125, 150, 200, 300];

/// All that is printed, computed.
#[derive(Debug, Serialize)]
pub struct Figures {
    capacity: u64,
    error_rate: f64,
    optimum: Optimum,
    kinds: Vec<LayoutRow>,
    growth: Vec<RateRow>,
    redis_set: RedisSet,
    others: Others,
}

/// A plain Bloom filter without blocks: the best that is possible.
#[derive(Debug, Serialize)]
struct Optimum {
    k: f64,
    bits_per_key: f64,
    bytes: f64,
}

/// One way to lay the filter out.
#[derive(Debug, Serialize)]
struct LayoutRow {
    kind: &'static str,
    chosen: bool,
    blocks: u32,
    k: u32,
    m: u64,
    bits_per_key: f64,
    bytes: u64,
    error_rates: Vec<RateRow>,
}

/// The exact alternative.
#[derive(Debug, Serialize)]
struct RedisSet {
    bytes_per_key: [u64; 2],
    bytes: [u64; 2],
}

impl Figures {
    /// Computes them.
    pub fn of(capacity: Capacity, error_rate: ErrorRate) -> Self {
        let keys = capacity.get();
        let chosen = Sizing::new(capacity, error_rate);
        let bits_per_key = error_rate.optimal_bits_per_key();
        let kinds = Blocks::ALL
            .map(|blocks| Sizing::with_blocks(capacity, error_rate, blocks).geometry())
            .map(|geometry| LayoutRow {
                kind: NATIVE.name(),
                chosen: geometry == chosen.geometry(),
                blocks: geometry.blocks().get(),
                k: geometry.k(),
                m: geometry.bits(),
                bits_per_key: geometry.bits() as f64 / keys as f64,
                bytes: geometry.bytes(),
                error_rates: rates(keys, |keys| geometry.error_rate_at(keys)),
            });
        let rate = |keys| chosen.geometry().error_rate_at(keys);
        Self {
            capacity: keys,
            error_rate: error_rate.get(),
            optimum: Optimum {
                k: -error_rate.get().log2(),
                bits_per_key,
                bytes: bits_per_key * keys as f64 / 8.0,
            },
            kinds: kinds.into(),
            growth: GROWTH_PERCENT.map(|percent| rate_at(keys, percent, rate)).into(),
            redis_set: RedisSet {
                bytes_per_key: REDIS_SET_BYTES,
                bytes: REDIS_SET_BYTES.map(|bytes| bytes * keys),
            },
            others: Others::of(capacity, error_rate),
        }
    }

    /// Prints the tables.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { optimum, kinds, growth, others, .. } = self;
        write!(
            out,
            "{:<24} {:>6} {:>4} {:>9} {:>11}",
            "kind", "blocks", "k", "bits/key", "memory"
        )?;
        for percent in PERCENT {
            write!(out, " {:>9}", format!("{percent} %"))?;
        }
        writeln!(out)?;
        for LayoutRow { kind, chosen, blocks, k, bits_per_key, bytes, error_rates, .. } in kinds {
            let cells = format!("{blocks:>6} {k:>4} {bits_per_key:>9.1}");
            row(kind, &cells, *bytes as f64, error_rates, out)?;
            writeln!(out, "{}", if *chosen { "  <- chosen" } else { "" })?;
        }
        let Optimum { k, bits_per_key, bytes } = optimum;
        let cells = format!("{:>6} {k:>4.0} {bits_per_key:>9.1}", "any");
        row("textbook optimum", &cells, *bytes, &[], out)?;
        writeln!(out)?;
        for Other { filter, found } in &others.0 {
            match found {
                Found::Filled(Filled {
                    strings, redis_bytes, bits_per_key, error_rates, ..
                }) => {
                    let k = strings.as_ref().map_or_else(String::new, |shape| shape.k.to_string());
                    let cells = format!("{:>6} {k:>4} {bits_per_key:>9.1}", "");
                    row(filter, &cells, redis_bytes[0] as f64, error_rates, out)?;
                    writeln!(out)?;
                }
                Found::Refused { refused } => writeln!(out, "{filter:<24} {refused}")?,
            }
        }
        writeln!(
            out,
            "error rates are those that a filter really has, with so many percent of {} keys",
            grouped(self.capacity)
        )?;
        writeln!(out, "\n{:>11} {:>22} {:>11}", "of capacity", "keys", "error rate")?;
        for RateRow { percent, keys, error_rate } in growth {
            let rate = format!("{error_rate:.2e}");
            writeln!(out, "{:>11} {:>22} {rate:>11}", format!("{percent} %"), grouped(*keys))?;
        }
        others.print(out)
    }
}

/// A line of the first table, without its end.
fn row(
    kind: &str,
    cells: &str,
    bytes: f64,
    rates: &[RateRow],
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, "{kind:<24} {cells} {:>11}", size(bytes))?;
    for RateRow { error_rate, .. } in rates {
        write!(out, " {:>9}", shown(*error_rate))?;
    }
    Ok(())
}
