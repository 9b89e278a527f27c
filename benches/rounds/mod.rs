//! Cases that are measured in turn, round after round, so that whatever else the machine does falls
//! on all of them alike, and a ratio within a round means something on a noisy machine too.
//!
//! A line of JSON a case is printed: `{"group", "case", "unit", "values"}`, a value a round. What
//! the lines mean together is for `scripts/bench` to say.

use serde::Serialize;

/// What is measured together.
pub struct Rounds<'a> {
    group: String,
    unit: &'static str,
    cases: Vec<(String, Box<dyn FnMut() -> f64 + 'a>)>,
}

/// What a case came to.
#[derive(Serialize)]
struct Line<'a> {
    group: &'a str,
    case: &'a str,
    unit: &'a str,
    values: Vec<f64>,
}

impl<'a> Rounds<'a> {
    /// No cases yet. All of them give their figures in `unit`, as `ns/key`.
    pub fn new(group: impl Into<String>, unit: &'static str) -> Self {
        Self { group: group.into(), unit, cases: Vec::new() }
    }

    /// Adds a case: `measure` does its work once and answers with its figure.
    pub fn case(&mut self, name: impl Into<String>, measure: impl FnMut() -> f64 + 'a) {
        self.cases.push((name.into(), Box::new(measure)));
    }

    /// Measures all cases in turn, `rounds` times after one that only warms up, and prints them.
    pub fn run(mut self, rounds: usize) {
        let mut values = vec![Vec::with_capacity(rounds); self.cases.len()];
        for round in 0..=rounds {
            for ((_, measure), values) in self.cases.iter_mut().zip(&mut values) {
                let value = measure();
                if round > 0 {
                    values.push(value);
                }
            }
        }
        for ((case, _), values) in self.cases.iter().zip(values) {
            let line = Line { group: &self.group, case, unit: self.unit, values };
            println!("{}", serde_json::to_string(&line).expect("names and numbers"));
        }
    }
}
