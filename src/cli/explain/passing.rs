//! Time at which a seen URL passes again, if fingerprints expire.

use std::time::{Duration, SystemTime};

use urlseen_filter::LetThrough;
use urlseen_filter::expire_after::ExpireAfter;
use urlseen_filter::{Generation, LIVE};
/// Length of a generation from which times are shown without seconds.
const LONG: Duration = Duration::from_hours(1);

/// Times at which a URL was let through and passes again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Passing {
    /// Both times in words, or the numbers of the generations if the times are unknown.
    pub(super) words: String,
    /// Time at which the URL passes again, if it is known.
    pub(super) again: Option<SystemTime>,
}

impl Passing {
    /// Returns the times for a URL. `begin` returns the time of day at which a generation begins,
    /// or `None` if no clock tells it.
    pub(super) fn of(
        let_through: LetThrough,
        expire_after: ExpireAfter,
        begin: impl Fn(Generation) -> Option<SystemTime>,
        is_running: bool,
    ) -> Self {
        let shown = |time| shown(time, expire_after.step());
        let (own, again) = (let_through.generation, let_through.passes_again());
        let Some((first, last)) = begin(own).zip(begin(own.later(1))) else {
            let again = again.map_or("never passes again".to_owned(), |again| {
                let (again, window) = (again.get(), expire_after.window());
                format!(
                    "passes again when the generation {again} begins. No clock tells when this is; \
                     a URL without a time of its own passes again {window}"
                )
            });
            let words = format!("it was let through in the generation {}, and {again}", own.get());
            return Self { words, again: None };
        };
        // Time that did not count since then is missing in the first two times.
        let let_through = format!(
            "it was let through between {} and {} (earlier, if the clocks were wrong since)",
            shown(first),
            shown(last)
        );
        let Some(again) = again.and_then(begin) else {
            return Self { words: format!("{let_through}, and never passes again"), again: None };
        };
        // The next run decides how much of the time until then counts.
        let condition = if is_running { "" } else { ", if the clocks agree at the next start" };
        let words = format!("{let_through}, and passes again from {}{condition}", shown(again));
        Self { words, again: Some(again) }
    }

    /// Returns the time for a URL that the log no longer has. The filter has the generation of its
    /// fingerprint, but not the time of a URL with a lifetime of its own.
    pub(super) fn stored(
        generation: Generation,
        expire_after: ExpireAfter,
        begin: impl Fn(Generation) -> Option<SystemTime>,
    ) -> Self {
        if generation == Generation::FOREVER {
            return Self { words: "it never passes again".to_owned(), again: None };
        }
        let next = generation.later(LIVE);
        let again = begin(next);
        let words = match again {
            Some(again) => format!("it passes again from {}", shown(again, expire_after.step())),
            None => format!("it passes again when the generation {} begins", next.get()),
        };
        Self { words, again }
    }
}

/// Shows a time in UTC, to the minute or, if generations are short, to the second.
fn shown(time: SystemTime, step: Duration) -> String {
    let text = humantime::format_rfc3339_seconds(time).to_string();
    // 2026-12-03T14:05:07Z
    let length = if step < LONG { 19 } else { 16 };
    format!("{} UTC", text[..length].replace('T', " "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_filter::Lifetime;

    fn passing(expire_after: &str, number: u32, next_seconds: Option<f64>) -> Passing {
        passing_after(Lifetime::WHOLE, expire_after, number, next_seconds)
    }

    fn passing_after(
        lifetime: Lifetime,
        expire_after: &str,
        number: u32,
        next_seconds: Option<f64>,
    ) -> Passing {
        let let_through = LetThrough { generation: Generation::new(100), lifetime };
        let expire_after = expire_after.parse().unwrap();
        let begin = |generation| begin_of(generation, expire_after, number, next_seconds);
        Passing::of(let_through, expire_after, begin, true)
    }

    /// Returns the time at which a generation begins, if the one after `number` begins in
    /// `next_seconds`.
    fn begin_of(
        generation: Generation,
        expire_after: ExpireAfter,
        number: u32,
        next_seconds: Option<f64>,
    ) -> Option<SystemTime> {
        let now = humantime::parse_rfc3339("2026-12-03T14:05:07Z").unwrap();
        let next = now + Duration::from_secs_f64(next_seconds?);
        let begin = |number| expire_after.begin_of(Generation::new(number));
        Some(next + begin(generation.get()) - begin(number + 1))
    }

    #[test]
    fn a_url_that_the_log_no_longer_has_passes_again_after_its_generation() {
        let expire_after: ExpireAfter = "30d".parse().unwrap();
        let of = |generation, next| {
            Passing::stored(generation, expire_after, |it| begin_of(it, expire_after, 102, next))
        };
        let next = Some(43_200.0);
        let known = of(Generation::new(100), next);
        assert_eq!(known.words, "it passes again from 2026-12-22 02:05 UTC");
        assert_eq!(known.again, humantime::parse_rfc3339("2026-12-22T02:05:07Z").ok());
        let unknown = of(Generation::new(100), None);
        assert_eq!(unknown.words, "it passes again when the generation 106 begins");
        assert_eq!(of(Generation::FOREVER, next).words, "it never passes again");
    }

    #[test]
    fn times_of_long_generations_are_shown_in_minutes_and_of_short_ones_in_seconds() {
        // The generation 102 ends in half a day.
        let month = passing("30d", 102, Some(43_200.0));
        let words = "it was let through between 2026-11-16 02:05 UTC and 2026-11-22 02:05 UTC \
                     (earlier, if the clocks were wrong since), and passes again from \
                     2026-12-22 02:05 UTC";
        assert_eq!(month.words, words);
        let again = humantime::parse_rfc3339("2026-12-22T02:05:07Z").unwrap();
        assert_eq!(month.again, Some(again));
        let minutes = passing("5m", 100, Some(1.0));
        let words = "it was let through between 2026-12-03 14:04:08 UTC and \
                     2026-12-03 14:05:08 UTC (earlier, if the clocks were wrong since), and \
                     passes again from 2026-12-03 14:10:08 UTC";
        assert_eq!(minutes.words, words);
    }

    #[test]
    fn without_a_clock_generations_are_shown() {
        let unknown = passing("30d", 102, None);
        let words = "it was let through in the generation 100, and passes again when the \
                     generation 106 begins. No clock tells when this is; a URL without a time of \
                     its own passes again 30d to 36d after it was last let through";
        assert_eq!(unknown, Passing { words: words.to_owned(), again: None });
    }

    #[test]
    fn a_url_may_pass_earlier_or_never() {
        let month = "30d".parse().unwrap();
        let day = Lifetime::at_least(Duration::from_hours(24), month);
        let soon = passing_after(day, "30d", 101, Some(43_200.0));
        let again = humantime::parse_rfc3339("2026-12-04T02:05:07Z").unwrap();
        assert_eq!(soon.again, Some(again));
        for clock in [Some(43_200.0), None] {
            let never = passing_after(Lifetime::FOREVER, "30d", 102, clock);
            assert!(never.words.ends_with(", and never passes again"), "{never:?}");
            assert_eq!(never.again, None);
        }
    }
}
