//! Measures the time of each batch while a filter grows, beside a filter of the final size.

use std::time::Instant;

use serde_json::json;
use urlseen_core::filter::{Kind, Sizing};

use super::crawl::{Crawl, fingerprint};
use super::filter::{BATCH, Filter};
use super::rounds::Rounds;

/// Times by which a filter grows.
const TIMES: u64 = 100;

/// Number of intervals of the number of keys. The plot has the times of each interval.
const INTERVALS: usize = 50;

/// Names of the figures, and their thousandths of the sorted times.
const FIGURES: [(&str, usize); 4] =
    [("median", 500), ("p99", 990), ("p99.9", 999), ("longest", 1000)];

/// Runs the same crawl with both filters, batch by batch in turn, until they have as many keys as
/// they are made for. Prints the times of a batch.
pub fn growing(group: &str, sizing: Sizing) {
    let most = sizing.capacity.get();
    let start = most / TIMES;
    let names = ["growing", "of the final size"];
    let mut filters = [start, most].map(|begin| {
        let mut filter = Filter::beginning(Kind::TWO_CHOICE, sizing, begin, 0, 1);
        filter.fill(0..start);
        filter
    });
    let mut crawl = Crawl::new(start);
    let (mut keys, mut times) = (Vec::new(), [Vec::new(), Vec::new()]);
    // The first tenth does not count: chunks that are not full matter there.
    let mut bits = Vec::new();
    while crawl.set() < most {
        let batch: Vec<_> = crawl.keys(BATCH).into_iter().map(fingerprint).collect();
        for (filter, times) in filters.iter_mut().zip(&mut times) {
            let key_hashes = filter.key_hashes(&batch);
            let begin = Instant::now();
            std::hint::black_box(filter.judge_key_hashes(&key_hashes));
            times.push(begin.elapsed().as_secs_f64() * 1e6);
        }
        keys.push(crawl.set());
        if crawl.set() > most / 10 {
            bits.push(filters[0].bits() as f64 / crawl.set() as f64);
        }
    }
    let mut rounds = Rounds::new(group, "bits/key");
    // The values begin at a tenth of the keys, and each batch has as many new keys as any other.
    let half = &bits[bits.len() * 4 / 9..];
    for (part, bits) in [("", &bits[..]), (" in the second half", half)] {
        let mean = bits.iter().sum::<f64>() / bits.len() as f64;
        rounds.case(format!("growing, mean{part}"), move || mean);
        let most = bits.iter().copied().fold(0.0, f64::max);
        rounds.case(format!("growing, most{part}"), move || most);
    }
    rounds.run(1);
    let mut rounds = Rounds::new(group, "µs/batch");
    for (name, times) in names.into_iter().zip(&times) {
        for ((figure, _), time) in FIGURES.into_iter().zip(quantiles(times)) {
            rounds.case(format!("{name}, {figure}"), move || time);
        }
    }
    rounds.run(1);
    print_intervals(group, &keys, &names, &times);
}

/// Returns the figures of these times.
fn quantiles(times: &[f64]) -> [f64; 4] {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    FIGURES.map(|(_, thousandth)| sorted[(sorted.len() - 1) * thousandth / 1000])
}

/// Prints the figures of each interval for the plot. `keys` has the number of keys after each
/// batch.
fn print_intervals(group: &str, keys: &[u64], names: &[&str; 2], times: &[Vec<f64>; 2]) {
    let batches = keys.len().div_ceil(INTERVALS);
    let ends: Vec<u64> = keys.chunks(batches).filter_map(<[u64]>::last).copied().collect();
    print(group, "samples, keys", "keys", &json!(ends));
    for (name, times) in names.iter().zip(times) {
        let found: Vec<[f64; 4]> = times.chunks(batches).map(quantiles).collect();
        for (at, (figure, _)) in FIGURES.into_iter().enumerate() {
            // Further digits would be noise.
            let tenths = |figures: &[f64; 4]| (figures[at] * 10.0).round() / 10.0;
            let of_intervals: Vec<f64> = found.iter().map(tenths).collect();
            let case = format!("samples, {name}, {figure}");
            print(group, &case, "µs/batch", &json!(of_intervals));
        }
    }
}

/// Prints the values of all intervals.
fn print(group: &str, case: &str, unit: &str, values: &serde_json::Value) {
    println!("{}", json!({ "group": group, "case": case, "unit": unit, "values": values }));
}
