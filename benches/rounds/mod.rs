//! Cases that are measured in turn, round after round. So other work of the machine affects all
//! cases equally, and ratios within a round are valid on a busy machine, too.
//!
//! Prints a line of JSON for each case: `{"group", "case", "unit", "values"}`, with a value for
//! each round. `scripts/bench` makes tables from the lines.

use serde::Serialize;

/// Cases that are measured together.
pub struct Rounds<'a> {
    group: String,
    unit: &'static str,
    cases: Vec<(String, Box<dyn FnMut() -> f64 + 'a>)>,
}

/// Printed values of a case.
#[derive(Serialize)]
struct Line<'a> {
    group: &'a str,
    case: &'a str,
    unit: &'a str,
    values: Vec<f64>,
}

impl<'a> Rounds<'a> {
    /// Returns a group without cases. All its cases return figures in `unit`, such as `ns/key`.
    pub fn new(group: impl Into<String>, unit: &'static str) -> Self {
        Self { group: group.into(), unit, cases: Vec::new() }
    }

    /// Adds a case. `measure` does the work of the case once, and returns the figure.
    pub fn case(&mut self, name: impl Into<String>, measure: impl FnMut() -> f64 + 'a) {
        self.cases.push((name.into(), Box::new(measure)));
    }

    /// Measures all cases in turn, first to warm up and then `rounds` times, and prints the values.
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
