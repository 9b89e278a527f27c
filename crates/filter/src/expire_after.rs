//! Time after which a fingerprint passes again.
//!
//! A new filter begins with the number of fifths of this time since 1970 as its generation. A
//! key is known by its generation, and the last record about it counts, so a recovery may
//! repeat records. The start of a generation is a record of the log; only after it does the
//! judge begin the generation. A shorter time of an item or of a page is a
//! [lifetime](super::generation) of fewer generations.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::generation::{Generation, LIVE};

/// Time after which a fingerprint passes again: 5 s to 20 years, in whole seconds. It has five
/// generations.
///
/// As text, it is a number with a unit, as in `30d`, `12h` or `1day 6h`. It is shown with the
/// largest unit of which it is a multiple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpireAfter(Duration);

/// Reason why a time after which fingerprints pass again is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time from 5s to 20 years, such as 30d, 12h or 90m")]
pub struct ExpireAfterError(String);

impl ExpireAfter {
    /// Number of generations in this time.
    const STEPS: u32 = LIVE - 1;

    const SHORTEST: Duration = Duration::from_secs(5);
    const LONGEST: Duration = Duration::from_hours(20 * 366 * 24);

    /// Returns the time as a number of seconds.
    pub fn time(self) -> Duration {
        self.0
    }

    /// Returns the length of a generation.
    pub fn step(self) -> Duration {
        self.0 / Self::STEPS
    }

    /// Returns the generation at a time after 1970.
    pub fn generation_at(self, since_1970: Duration) -> Generation {
        let number = since_1970.as_nanos() / self.step().as_nanos();
        // Seconds since 1970 fit until 2106.
        Generation::new(u32::try_from(number).unwrap_or(u32::MAX - 1))
    }

    /// Returns the time after 1970 at which a generation begins.
    pub fn begin_of(self, generation: Generation) -> Duration {
        self.step().saturating_mul(generation.get())
    }

    /// Describes the time after which a fingerprint passes again.
    pub fn window(self) -> String {
        format!("{self} to {} after it was last let through", Self(self.0 + self.step()))
    }
}

impl FromStr for ExpireAfter {
    type Err = ExpireAfterError;

    fn from_str(text: &str) -> Result<Self, ExpireAfterError> {
        let time = humantime::parse_duration(text).ok();
        let time = time.filter(|time| (Self::SHORTEST..=Self::LONGEST).contains(time));
        let time = time.filter(|time| time.subsec_nanos() == 0);
        time.map(Self).ok_or_else(|| ExpireAfterError(text.to_owned()))
    }
}

impl fmt::Display for ExpireAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self.0))
    }
}

/// Shows a time in whole seconds, with the largest unit of which it is a multiple.
pub fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    let units = [(24 * 60 * 60, 'd'), (60 * 60, 'h'), (60, 'm'), (1, 's')];
    let whole = units.into_iter().find(|(unit, _)| seconds.is_multiple_of(*unit));
    let (unit, name) = whole.expect("whole seconds");
    format!("{}{name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_and_shown_with_its_units() {
        let month: ExpireAfter = "30d".parse().unwrap();
        assert_eq!(month.to_string().parse(), Ok(month));
        assert_eq!(month.step(), Duration::from_hours(6 * 24));
        assert_eq!(month.window(), "30d to 36d after it was last let through");
        assert_eq!("1h 30m".parse::<ExpireAfter>().unwrap().to_string(), "90m");
        for text in ["", "30", "4s", "1500ms", "21years", "-1d", "never"] {
            let refused = text.parse::<ExpireAfter>();
            assert_eq!(refused, Err(ExpireAfterError(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn generations_begin_at_multiples_of_their_length() {
        let minute: ExpireAfter = "5m".parse().unwrap();
        let at = |seconds| minute.generation_at(Duration::from_secs(seconds)).get();
        assert_eq!((at(0), at(59), at(60), at(6_000)), (0, 0, 1, 100));
        assert_eq!(minute.begin_of(Generation::new(100)), Duration::from_mins(100));
    }
}
