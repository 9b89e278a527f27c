//! Compares estimates of the overlap of two filters with the true overlap. The program fills many
//! filters in memory with sets of known overlap. `scripts/overlap` writes the results to
//! docs/design/compare.jsonl, and makes the table and the plots of docs/design/compare.md from
//! them:
//!
//! ```text
//! cargo run --example overlap                a line of JSON for each case
//! cargo run --example overlap -- --plot      plots from docs/design/compare.jsonl
//! ```
//!
//! The seeds are fixed, so the lines are the same every time.

mod draw;
mod fill;

use std::path::Path;

use fill::{Filled, Sets};
use serde::{Deserialize, Serialize};
use urlseen_analysis::{Interval, Overlap};

/// Capacity of the filters, in keys.
const CAPACITY: u64 = 20_000;
/// Number of keys in A, and in B, in percent of the capacity.
const FILLS: [u64; 3] = [25, 100, 300];
/// Share of A that is in B, in percent.
const SHARES: [u64; 11] = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
const TRIALS: u64 = 30;

/// Results of all trials of a case.
#[derive(Debug, Serialize, Deserialize)]
struct Case {
    kind: String,
    capacity: u64,
    /// Number of keys in A, and in B.
    size: u64,
    /// Number of keys in A, and in B, in percent of the capacity.
    fill: u64,
    /// Percent of A that is in B.
    share: u64,
    trials: u64,
    /// Numbers of trials whose bounds contain the true size of A, of the union, and of the overlap.
    within: [u64; 3],
    /// Mean errors of the estimates of these three sizes, in percent of A.
    bias: [f64; 3],
    /// Mean error of the textbook estimate for the size of A, in percent of A. The estimate uses
    /// the formula of Swamidass and Baldi.
    textbook: f64,
    /// Overlap that the first trial estimates, in percent of A.
    sample: Sample,
}

/// Estimate and its bounds.
#[derive(Debug, Serialize, Deserialize)]
struct Sample {
    value: f64,
    low: f64,
    high: f64,
}

fn main() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/design");
    if std::env::args().any(|word| word == "--plot") {
        let lines = std::fs::read_to_string(docs.join("compare.jsonl")).expect("the data is there");
        let cases = lines.lines().map(|line| serde_json::from_str(line).expect("a case a line"));
        draw::draw(&cases.collect::<Vec<Case>>(), &docs);
        return;
    }
    for filled in [Filled::native(CAPACITY), Filled::pyrebloom(CAPACITY)] {
        for fill in FILLS {
            for share in SHARES {
                let case = count(&filled, fill, share);
                println!("{}", serde_json::to_string(&case).expect("numbers and words"));
            }
        }
    }
}

/// Runs all trials of a case. Each trial fills two filters and estimates their overlap.
fn count(filled: &Filled, fill: u64, share: u64) -> Case {
    let size = CAPACITY * fill / 100;
    let common = size * share / 100;
    let truths = [size, 2 * size - common, common];
    let (mut within, mut bias, mut textbook, mut sample) = ([0; 3], [0.0; 3], 0.0, None);
    let percent = 100.0 / size as f64;
    for trial in 0..TRIALS {
        let number = (fill * 1000 + share) * 1000 + trial;
        let (totals, by_book) = filled.totals(number, Sets { size, common });
        let Overlap { a, union, intersection, .. } = totals.overlap();
        let estimates = [a, union, intersection];
        for (place, (&truth, Interval { value, low, high })) in
            truths.iter().zip(estimates).enumerate()
        {
            within[place] += u64::from(low <= truth as f64 && truth as f64 <= high);
            bias[place] += (value - truth as f64) * percent / TRIALS as f64;
        }
        textbook += (by_book - size as f64) * percent / TRIALS as f64;
        let Interval { value, low, high } = intersection;
        let scaled = [value, low, high].map(|number| rounded(number * percent));
        let [value, low, high] = scaled;
        sample.get_or_insert(Sample { value, low, high });
    }
    Case {
        kind: filled.name().to_owned(),
        capacity: CAPACITY,
        size,
        fill,
        share,
        trials: TRIALS,
        within,
        bias: bias.map(rounded),
        textbook: rounded(textbook),
        sample: sample.expect("there are trials"),
    }
}

/// Rounds to four decimal places.
fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}
