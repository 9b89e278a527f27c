//! Items a second by fate, from the counts of the last seconds.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::HumanFloatCount;

use super::rows::Rows;
use super::status::span;
use crate::admin::{Counts, FATES};

/// Time over which a speed is the mean.
const WINDOW: Duration = Duration::from_secs(10);

/// Counts at the times of the last seconds, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Speeds(VecDeque<(Instant, Counts)>);

/// Mean number of items a second for each fate, in the order of [`FATES`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Speed([f64; FATES.len()]);

impl Speeds {
    /// Notes the present counts, and returns the speed. `None` if there are no earlier counts of
    /// this process.
    pub(super) fn note(&mut self, counts: Counts, now: Instant) -> Option<Speed> {
        if self.0.back().is_some_and(|(_, last)| last.items() > counts.items()) {
            // Another process has begun to count.
            self.0.clear();
        }
        self.0.push_back((now, counts));
        while self.0.front().is_some_and(|(time, _)| now.duration_since(*time) > WINDOW) {
            self.0.pop_front();
        }
        let &(time, first) = self.0.front().filter(|(time, _)| *time < now)?;
        let seconds = now.duration_since(time).as_secs_f64();
        let (before, after) = (first.by_fate(), counts.by_fate());
        let speed = |fate: usize| after[fate].saturating_sub(before[fate]) as f64 / seconds;
        Some(Speed(std::array::from_fn(speed)))
    }
}

impl Speed {
    /// Prints the speed, and the time in which `waiting` items are claimed.
    pub(super) fn print(&self, rows: &mut Rows<impl Write>, waiting: u64) -> io::Result<()> {
        let all: f64 = self.0.iter().sum();
        rows.number("speed", shown(all), "items a second in the last 10 s; of these")?;
        for (fate, &speed) in FATES.iter().zip(&self.0).filter(|&(_, &speed)| speed > 0.0) {
            let share = format!("{:.1} %", 100.0 * speed / all);
            rows.number(&format!("  {fate}"), shown(speed), share)?;
        }
        if all > 0.0 && waiting > 0 {
            let time = format!("about {}", span(waiting as f64 / all));
            rows.number("lag", time, "until the source is empty at this speed")?;
        }
        Ok(())
    }
}

/// Formats a number of items a second. A small one keeps a decimal.
fn shown(speed: f64) -> String {
    if speed == 0.0 || speed >= 100.0 {
        HumanFloatCount(speed.round()).to_string()
    } else {
        format!("{speed:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::rows::CRAWL;

    fn counts(unseen: u64, seen: u64) -> Counts {
        Counts { unseen, seen, ..Counts::default() }
    }

    #[test]
    fn a_speed_is_the_mean_of_ten_seconds_of_one_process() {
        let (begin, mut speeds) = (Instant::now(), Speeds::default());
        let mut note = |seconds, counts| speeds.note(counts, begin + Duration::from_secs(seconds));
        assert_eq!(note(0, counts(5, 5)), None);
        assert_eq!(note(1, counts(6, 8)), Some(Speed([1.0, 3.0, 0.0, 0.0, 0.0, 0.0])));
        // The first counts are too old now.
        assert_eq!(note(11, counts(26, 8)), Some(Speed([2.0, 0.0, 0.0, 0.0, 0.0, 0.0])));
        assert_eq!(note(12, counts(0, 1)), None, "another process");
        assert_eq!(note(13, counts(0, 2)), Some(Speed([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])));
    }

    #[test]
    fn a_speed_is_printed_with_shares_and_the_lag() {
        let mut out = Vec::new();
        let speed = Speed([1000.0, 3000.0, 0.0, 0.0, 0.0, 0.5]);
        speed.print(&mut Rows::new(&mut out, CRAWL), 8001).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "\
speed                  4,001   items a second in the last 10 s; of these
  unseen               1,000   25.0 %
  seen                 3,000   75.0 %
  rejected               0.5   0.0 %
lag                 about 2s   until the source is empty at this speed
";
        assert_eq!(text, expected);
    }
}
