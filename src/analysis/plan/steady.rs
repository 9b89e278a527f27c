//! Steady state of a filter whose fingerprints expire: its memory stays the same, because as many
//! fingerprints expire as are let through.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use urlseen_filter::LIVE;
use urlseen_filter::expire_after::ExpireAfter;
use urlseen_filter::number::whole;
use urlseen_filter::{ErrorRate, Kind, SpecError};

use super::{grouped, parameters, size};

const DAY: Duration = Duration::from_hours(24);

/// Fingerprints and memory of a filter of the kind `two-choice` whose fingerprints expire, after
/// its first generations.
#[derive(Debug, Serialize)]
pub(crate) struct Steady {
    /// Value for `filter.expire_after`.
    expire_after: String,
    #[serde(skip)]
    window: String,
    /// Number of unseen URLs a day, with those that pass again.
    unseen_per_day: f64,
    /// Error rate with all of these fingerprints.
    error_rate: f64,
    /// Largest number of fingerprints that are seen. They are of six generations.
    live_keys: u64,
    /// Largest number of expired fingerprints that still take memory. They are of one generation.
    expired_keys: u64,
    /// Value for `filter.grow_to`: the sum of both numbers.
    grow_to: u64,
    /// Minimum and maximum of the memory, in bytes.
    bytes: [u64; 2],
}

impl Steady {
    /// Computes the steady state at a number of unseen URLs a day, with those that pass again. The
    /// filter has at most this error rate.
    ///
    /// # Errors
    /// No filter has so many fingerprints at this error rate.
    pub(crate) fn of(
        expire_after: ExpireAfter,
        unseen_per_day: f64,
        error_rate: ErrorRate,
    ) -> Result<Self, SpecError> {
        let days = expire_after.step().as_secs_f64() / DAY.as_secs_f64();
        let of_generation = unseen_per_day * days;
        let live_keys = whole((of_generation * f64::from(LIVE)).ceil());
        // A sweep may last a whole generation. The next one frees the rest at its start.
        let expired_keys = whole(of_generation.ceil());
        let grow_to = live_keys + expired_keys;
        let rate = error_rate.get();
        let parameters =
            parameters(Kind::TWO_CHOICE, [live_keys, grow_to], rate, Some(expire_after))?;
        let (least, most) = (parameters.outlook(live_keys)?, parameters.outlook(grow_to)?);
        Ok(Self {
            expire_after: expire_after.to_string(),
            window: expire_after.window(),
            unseen_per_day,
            error_rate: most.error_rate,
            live_keys,
            expired_keys,
            grow_to,
            bytes: [least.bytes[0], most.bytes[1]],
        })
    }

    /// Prints the steady state as a table.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { window, live_keys, expired_keys, grow_to, bytes: [least, most], .. } = self;
        let unseen = grouped(whole(self.unseen_per_day.round()));
        writeln!(out, "{unseen} unseen URLs a day; a URL passes again {window}\n")?;
        for (name, value) in [
            ("fingerprints that are seen", grouped(*live_keys)),
            ("expired ones, at most", grouped(*expired_keys)),
            ("filter.grow_to", grouped(*grow_to)),
            ("error rate, at most", format!("{:.2e}", self.error_rate)),
            ("memory, at least", size(*least as f64)),
            ("memory, at most", size(*most as f64)),
        ] {
            writeln!(out, "{name:<30} {value:>15}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use urlseen_filter::Generation;
    use urlseen_filter::{FilterKind, KeyHasher};
    use urlseen_fingerprint::Fingerprint;

    use super::*;

    /// Bytes of a large page.
    const PAGE: u64 = 2 << 20;

    /// Lets the URLs with these numbers through.
    fn let_through(
        filter: &mut dyn FilterKind,
        hasher: &KeyHasher,
        generation: Generation,
        numbers: std::ops::Range<u64>,
    ) {
        for from in numbers.clone().step_by(1000) {
            let portion = from..numbers.end.min(from + 1000);
            let keys: Vec<_> = portion
                .map(|number| {
                    let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                    let mut raw = [0; 20];
                    raw[..8].copy_from_slice(&hash);
                    hasher.key_hash(&Fingerprint::Raw20(raw))
                })
                .collect();
            filter.reserve_for(&keys).unwrap();
            filter.insert_in(generation, &keys).unwrap();
        }
    }

    /// Compares the plan with a filter, in which no sweep ends before the next generation.
    #[test]
    fn a_filter_takes_the_planned_memory_and_no_more_later() {
        let expire_after = "5d".parse().unwrap();
        let error_rate = ErrorRate::new(1e-6).unwrap();
        let plan = Steady::of(expire_after, 500_000.0, error_rate).unwrap();
        assert_eq!(
            (plan.live_keys, plan.expired_keys, plan.grow_to),
            (3_000_000, 500_000, 3_500_000)
        );
        assert!((0.25e-6..=1e-6).contains(&plan.error_rate), "{plan:?}");
        let sizes = [1, plan.grow_to];
        let parameters = parameters(Kind::TWO_CHOICE, sizes, 1e-6, Some(expire_after)).unwrap();
        let (mut filter, hasher) = (parameters.build().unwrap(), parameters.hasher());
        let gauge = filter.gauge();
        let mut bytes = Vec::new();
        for number in 0..12_u64 {
            let generation = Generation::new(1000 + u32::try_from(number).unwrap());
            filter.begin_generation(generation);
            let numbers = number * 500_000..(number + 1) * 500_000;
            let_through(&mut *filter, &hasher, generation, numbers);
            bytes.push(gauge.fill().bytes);
        }
        let keys = gauge.generations().unwrap().keys;
        assert!(keys.iter().sum::<u64>().abs_diff(plan.live_keys) < 10, "{keys:?}");
        let [least, most] = plan.bytes;
        // The filter takes memory in pages.
        assert!((least..=most + PAGE).contains(&bytes[11]), "{plan:?}: {bytes:?}");
        assert_eq!(bytes[11], bytes[7], "{bytes:?}");
    }
}
