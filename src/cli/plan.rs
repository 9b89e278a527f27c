//! `urlseen plan`: what a filter of some capacity and error rate takes, before anything is started.

use std::io::{self, Write};

use serde::Serialize;

use urlseen::filter::{Capacity, ErrorRate, Layout, Lines, Sizing};

use super::Outcome;

/// What a URL takes in a Redis set of hex fingerprints, in bytes: the least and the most, by how
/// full the set's hash table is.
const REDIS_SET_BYTES: [u64; 2] = [60, 90];

/// Where the error rate is shown, in percent of capacity.
const GROWTH_PERCENT: [u64; 7] = [50, 80, 100, 125, 150, 200, 300];

/// Show what a filter takes: bits, hashes and memory, and how the error rate grows past capacity.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Plan {
    /// URLs that the crawl will see, as 1e9, `100_000_000` or 10M
    #[arg(long, value_name = "N", default_value = "10M")]
    capacity: Capacity,
    /// Share of unseen URLs that may be taken for seen at capacity: 1e-12 to 0.1
    #[arg(long, value_name = "P", default_value = "1e-6")]
    error_rate: ErrorRate,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// All that is printed, computed.
#[derive(Debug, Serialize)]
struct Figures {
    capacity: u64,
    error_rate: f64,
    optimum: Optimum,
    layouts: Vec<LayoutRow>,
    growth: Vec<GrowthRow>,
    redis_set: RedisSet,
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

pub(super) fn run(plan: &Plan) -> anyhow::Result<Outcome> {
    print(plan, &mut io::stdout().lock())?;
    Ok(Outcome::Done)
}

/// Prints the tables, or JSON.
fn print(plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    let figures = Figures::of(plan.capacity, plan.error_rate);
    if plan.json {
        serde_json::to_writer_pretty(&mut *out, &figures)?;
        writeln!(out)
    } else {
        figures.print(plan.error_rate, out)
    }
}

impl Figures {
    fn of(capacity: Capacity, error_rate: ErrorRate) -> Self {
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
        }
    }

    fn print(&self, error_rate: ErrorRate, out: &mut impl Write) -> io::Result<()> {
        let Self { capacity, error_rate: _, optimum, layouts, growth, redis_set } = self;
        writeln!(out, "{} keys at error rate {error_rate}\n", grouped(*capacity))?;
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
        Ok(())
    }
}

/// A number with its thousands set apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// Bytes in the largest binary unit that leaves a number of 1 or more.
fn size(bytes: f64) -> String {
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].into_iter();
    let (mut number, mut unit) = (bytes, units.next().unwrap_or_default());
    for larger in units {
        if number < 1024.0 {
            break;
        }
        (number, unit) = (number / 1024.0, larger);
    }
    format!("{number:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        plan: Plan,
    }

    fn printed(arguments: &[&str]) -> String {
        let command = Command::try_parse_from([&["plan"], arguments].concat()).unwrap();
        let mut out = Vec::new();
        print(&command.plan, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_tables_line_up_and_mark_what_is_chosen() {
        let printed = printed(&["--capacity", "1e9", "--error-rate", "1e-8"]);
        assert_eq!(printed, include_str!("../../tests/vectors/plan-1e9-1e-8.txt"));
    }

    #[test]
    fn json_says_the_same_and_holds_the_error_rate_at_capacity() {
        let printed = printed(&["--capacity", "100M", "--error-rate", "1e-6", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(json["capacity"], 100_000_000);
        let chosen: Vec<_> = json["layouts"].as_array().unwrap().iter().collect();
        let chosen: Vec<_> = chosen.into_iter().filter(|row| row["chosen"] == true).collect();
        assert_eq!(chosen.len(), 1);
        assert_eq!((&chosen[0]["lines"], &chosen[0]["k"]), (&2.into(), &18.into()));
        let full = json["growth"].as_array().unwrap().iter().find(|row| row["percent"] == 100);
        let rate = full.unwrap()["error_rate"].as_f64().unwrap();
        assert!((0.99e-6..=1e-6).contains(&rate), "{rate}");
    }

    #[test]
    fn what_no_filter_can_hold_is_refused() {
        for (name, value) in [
            ("--capacity", "0"),
            ("--capacity", "1e13"),
            ("--capacity", "many"),
            ("--error-rate", "0.5"),
            ("--error-rate", "1e-13"),
        ] {
            let refused = Command::try_parse_from(["plan", name, value]).unwrap_err();
            assert_eq!(refused.kind(), clap::error::ErrorKind::ValueValidation, "{value}");
        }
    }

    #[test]
    fn the_smallest_and_the_largest_are_planned() {
        assert!(printed(&["--capacity", "1"]).contains("32.0 KiB  <- chosen"));
        assert!(printed(&["--capacity", "1e12", "--error-rate", "1e-12"]).contains("TiB"));
    }
}
