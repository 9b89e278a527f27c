//! Measures the time of each batch while a filter grows, beside a filter of the final size.

use std::time::Instant;

use urlseen_core::filter::{Kind, Sizing};

use super::crawl::{Crawl, fingerprint};
use super::filter::{BATCH, Filter};
use super::rounds::Rounds;

/// Times by which a filter grows.
const TIMES: u64 = 100;

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
    let mut times = [Vec::new(), Vec::new()];
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
        if crawl.set() > most / 10 {
            bits.push(filters[0].bits() as f64 / crawl.set() as f64);
        }
    }
    let mut rounds = Rounds::new(group, "bits/key");
    let mean = bits.iter().sum::<f64>() / bits.len() as f64;
    rounds.case("growing, mean", || mean);
    rounds.case("growing, most", || bits.iter().copied().fold(0.0, f64::max));
    rounds.run(1);
    let mut rounds = Rounds::new(group, "µs/batch");
    for (name, mut times) in names.into_iter().zip(times) {
        times.sort_by(f64::total_cmp);
        let at = |thousandth: usize| times[(times.len() - 1) * thousandth / 1000];
        for (what, thousandth) in [("median", 500), ("p99", 990), ("p99.9", 999), ("longest", 1000)]
        {
            let time = at(thousandth);
            rounds.case(format!("{name}, {what}"), move || time);
        }
    }
    rounds.run(1);
}
