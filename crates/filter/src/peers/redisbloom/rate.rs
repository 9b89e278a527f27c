//! Error rate of a layer: the part from its bits, and the part from its hashes.
//!
//! An item's k positions are a progression, (a + i b mod 2^64) mod m. Random positions would all
//! be 1 with the chance f^k, where f is the share of bits that are 1. For some progressions the
//! chance is higher, for any k. With m = 2^v o, o odd, and c = 2^64 mod m:
//!
//! ```text
//! a wrap of a + i b at 2^64 moves all later positions by -c, which has the order o mod m
//!
//! short    s b = t c mod m has phi(s) s g solutions in lowest terms, g = min(2^j, 2^v) for
//!          s = 2^j u, times 3/2 if s is even. If b / 2^64 is near t / s, the progression has s
//!          positions, and N more after a drift over N / s. That has the density 2 / (s (k - s)),
//!          half of it for N = 0.                                Not for o = 1.
//! closed   with the order of b mod m = 2^j times an odd number, all positions lie among o 2^j.
//!          The chance is o / m for j = 0, and 2^(j - 1) o / m otherwise.
//! shared   for o = 1 an item has all but j positions of another, forward or backward, with the
//!          chance 2 n / m^2 for each j: in sum 2 (1 + f) / (1 - f) n / m^2, for n items.
//! ```
//!
//! The filter reports an unseen item with d different positions as seen with the chance f^d instead
//! of f^k. In a full layer, f is about 1/2. Then "short" adds about 4 / (k m) to the error rate,
//! and for o = 1 "closed" adds 0.9 / m. The computation leaves out one case: two items in one
//! closed set, for o > 1. So the true rate of a layer of less than 2,000 bits can be twice the
//! computed rate. For larger layers, the two rates differ by less than 25 %.

use crate::Outlook;
use crate::SpecError;
use crate::peers::bit_strings::fill;
use crate::peers::redisbloom::TIGHTENING;
use crate::peers::redisbloom::parameters::{LayerParameters, Options, Reservation};

/// Error rate: the share of unseen items that a filter or layer reports as seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    /// Error rate for all reasons together.
    pub(crate) total: f64,
    /// Error rate that random positions would have: it depends only on the share of set bits.
    pub(crate) by_bits: f64,
}

impl Rate {
    /// Computes the error rate of a filter from the error rates of its layers. A filter reports an
    /// item as seen if any layer does.
    pub(crate) fn of_layers(layers: impl Iterator<Item = Self>) -> Self {
        // Sums logarithms, because 1 minus a product of factors near 1 would lose its digits.
        let mut logarithms = [0.0; 2];
        for Self { total, by_bits } in layers {
            logarithms[0] += (-total).ln_1p();
            logarithms[1] += (-by_bits).ln_1p();
        }
        let [total, by_bits] = logarithms.map(|sum| -f64::exp_m1(sum));
        Self { total, by_bits }
    }

    /// Returns a warning text, if the hashes cause more errors than the bits.
    pub(crate) fn warning(self) -> Option<String> {
        let Self { total, by_bits } = self;
        (total > 2.0 * by_bits).then(|| {
            format!(
                "RedisBloom's hashes cause most errors of this filter, not a lack of bits. Once \
                 full, the filter reports a share of {total:.1e} of the unseen fingerprints as \
                 seen. Its bits alone would cause {by_bits:.1e}. A lower filter.error_rate hardly \
                 helps; the kind native keeps the requested rate"
            )
        })
    }
}

impl LayerParameters {
    /// Returns the error rate of a layer with these parameters and `items` items. `fill` is the
    /// share of its bits that are set.
    pub(crate) fn rate(&self, fill: f64, items: u64) -> Rate {
        if fill >= 1.0 {
            return Rate { total: 1.0, by_bits: 1.0 };
        }
        let progression = Progression::of(self, fill);
        let by_bits = progression.seen(self.hashes);
        let by_hashes = if progression.odd == 1 {
            progression.closed() + progression.shared(items)
        } else {
            progression.short() + progression.closed()
        };
        Rate { total: (by_bits + by_hashes).min(1.0), by_bits }
    }
}

/// Positions of an unseen item in a layer.
struct Progression {
    hashes: u32,
    fill: f64,
    modulus: f64,
    /// Largest odd factor of the modulus, and the exponent of 2 in the modulus.
    odd: u64,
    twos: u32,
}

impl Progression {
    fn of(parameters: &LayerParameters, fill: f64) -> Self {
        let modulus = parameters.modulus();
        let twos = modulus.trailing_zeros();
        Self {
            hashes: parameters.hashes,
            fill,
            modulus: modulus as f64,
            odd: modulus >> twos,
            twos,
        }
    }

    /// Returns the chance that this number of random positions are all 1.
    fn seen(&self, positions: u32) -> f64 {
        self.fill.powf(positions.into())
    }

    fn short(&self) -> f64 {
        let all = self.seen(self.hashes);
        let chance = |s: u32| {
            let twos = s.trailing_zeros();
            let even = if twos > 0 { 1.5 } else { 1.0 };
            let solutions = totient(s) * even * 2.0_f64.powf(twos.min(self.twos).into());
            let drifts = (self.hashes - s) / 2;
            // The sum 1/2 + f + f^2 + … + f^drifts. `beyond` omits the part that f^k already
            // counts.
            let sum = 0.5 + self.fill * (1.0 - self.seen(drifts)) / (1.0 - self.fill);
            let beyond = self.seen(s) * sum - all * (0.5 + f64::from(drifts));
            solutions * 2.0 * beyond / (f64::from(s) * f64::from(self.hashes - s))
        };
        (1..self.hashes).map(chance).sum::<f64>() / self.modulus
    }

    fn closed(&self) -> f64 {
        let all = self.seen(self.hashes);
        let orders = (0..=self.twos).map(|twos| (2.0_f64.powf(twos.into()), self.odd << twos));
        let short = orders.map_while(|(order, positions)| {
            let positions = u32::try_from(positions).ok().filter(|&it| it < self.hashes)?;
            Some((order / 2.0).max(1.0) * (self.seen(positions) - all))
        });
        short.sum::<f64>() * self.odd as f64 / self.modulus
    }

    fn shared(&self, items: u64) -> f64 {
        let shifts = (1.0 + self.fill) / (1.0 - self.fill);
        2.0 * shifts * items as f64 / (self.modulus * self.modulus)
    }
}

/// Returns Euler's totient: the number of integers from 1 to `number` that have no common divisor
/// with `number`.
fn totient(number: u32) -> f64 {
    let (mut left, mut totient) = (number, number);
    for divisor in 2..=number {
        if left % divisor == 0 {
            totient -= totient / divisor;
            while left % divisor == 0 {
                left /= divisor;
            }
        }
    }
    totient.into()
}

/// Computes memory and error rate of a filter with this reservation and `items` items, or with as
/// many items as it can hold.
///
/// # Errors
/// No filter can have this reservation.
pub(crate) fn forecast(reservation: Reservation, items: u64) -> Result<Outlook, SpecError> {
    let options = Options::of(reservation.expansion);
    let mut parameters = LayerParameters::first(reservation, u64::MAX)?;
    let (mut layers, mut bits) = (Vec::new(), parameters.bits);
    let mut left = items;
    loop {
        let held = left.min(parameters.capacity);
        left -= held;
        layers.push(rate_of(&parameters, held));
        let next = u64::from(reservation.expansion).checked_mul(parameters.capacity);
        let next = next.filter(|&next| next > 0 && left > 0);
        let tighter = parameters.error_rate * TIGHTENING;
        let next = next.and_then(|next| LayerParameters::for_capacity(next, tighter, options));
        let Some(next) = next else { break };
        parameters = next;
        bits = bits.saturating_add(parameters.bits);
    }
    let rate = Rate::of_layers(layers.iter().copied());
    Ok(Outlook {
        strings: layers.len(),
        bits,
        hashes: parameters.hashes,
        bytes: [bits / 8; 2],
        error_rate: rate.total,
        warning: rate.warning(),
    })
}

/// Returns the error rate of a layer with this number of items, if all bits are equally likely.
pub(crate) fn rate_of(parameters: &LayerParameters, items: u64) -> Rate {
    let draws = items as f64 * f64::from(parameters.hashes);
    parameters.rate(fill(draws, parameters.modulus() as f64), items)
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;

    use super::*;
    use crate::peers::redisbloom::Filter;
    use crate::peers::redisbloom::layer::Layer;
    use crate::{Capacity, ErrorRate, KeyHash, ShardId};

    /// Fills layers with random items, and tests other items. Returns the number of other items
    /// that are reported as seen, and the computed mean rate.
    fn counted(parameters: LayerParameters, items: u64, filters: u64, unseen: u64) -> (u64, Rate) {
        let mut random = fastrand::Rng::with_seed(7);
        let mut item = || KeyHash::named(ShardId::WHOLE, random.u128(..));
        let (mut seen, mut mean) = (0, Rate { total: 0.0, by_bits: 0.0 });
        for _ in 0..filters {
            let mut layer = Layer::new(parameters).unwrap();
            (0..items).for_each(|_| layer.set(item()));
            seen += (0..unseen / filters).filter(|_| layer.contains(item())).count() as u64;
            let Rate { total, by_bits } = layer.rate_now();
            mean.total += total / filters as f64;
            mean.by_bits += by_bits / filters as f64;
        }
        (seen, mean)
    }

    fn layer(bits: u64, hashes: u32, capacity: u64) -> LayerParameters {
        let (bytes, error_rate, bits_per_item) = (bits / 8, 1e-10, 1.0);
        LayerParameters {
            bytes,
            bits,
            error_rate,
            bits_per_item,
            hashes,
            capacity,
            ..LayerParameters::zeroed()
        }
    }

    /// Prints all counts, of which docs/guides/redisbloom.md has one:
    /// `cargo test --lib redisbloom::rate -- --nocapture`.
    #[test]
    fn measured_error_rates_of_layers_are_the_computed_ones() {
        println!("| bits | hashes | items | unseen asked for | by its bits | computed | counted |");
        println!("|---|---|---|---|---|---|---|");
        // The odd factors of the bits are 1, 3, 5, 29, 33, 225, 329 and 1157.
        for (bits, hashes, items, unseen) in [
            (1024, 7, 100, 100_000),
            (2048, 35, 30, 2_000_000),
            (1536, 35, 30, 1_000_000),
            (5120, 35, 100, 4_000_000),
            (14_848, 35, 300, 16_000_000),
            (2112, 15, 100, 2_000_000),
            (14_400, 34, 300, 16_000_000),
            (21_056, 15, 1000, 8_000_000),
            (148_096, 35, 6000, 4_000_000),
        ] {
            let (seen, rate) = counted(layer(bits, hashes, items), items, 20, unseen);
            let expected = rate.total * unseen as f64;
            let share = seen as f64 / unseen as f64;
            let Rate { total, by_bits } = rate;
            println!(
                "| {bits} | {hashes} | {items} | {unseen} | {by_bits:.2e} | {total:.2e} | \
                 {share:.2e} ({seen}) |"
            );
            assert!(expected > 90.0, "{bits} {expected} tells nothing");
            let allowed = 0.2 * expected + 4.0 * expected.sqrt();
            assert!((seen as f64 - expected).abs() < allowed, "{bits}: {seen}, {expected} is due");
        }
    }

    /// Tests the hashes of real items, in a filter with the parameters of `BF.RESERVE`.
    #[test]
    fn a_small_filter_with_a_low_rate_warns_about_its_hashes() {
        let reserved = |rate, capacity| {
            let error_rate = ErrorRate::new(rate).unwrap();
            let capacity = Capacity::new(capacity).unwrap();
            Filter::reserve(Reservation { capacity, error_rate, expansion: 2 }, 1 << 24).unwrap()
        };
        let mut filter = reserved(1e-10, 30);
        for n in 0..30 {
            filter.add(format!("item {n}").as_bytes()).unwrap();
        }
        let unseen = 1_000_000_u32;
        let seen = (0..unseen).filter(|n| filter.contains(format!("other {n}").as_bytes())).count();
        let expected = filter.error_rate_now() * f64::from(unseen);
        assert!((30.0..1000.0).contains(&expected), "{expected}");
        assert!((seen as f64 / expected - 1.0).abs() < 0.5, "{seen} of {unseen}, not {expected}");
        let warning = filter.warning().unwrap();
        assert!(warning.contains("the kind native keeps the requested rate"), "{warning}");
        assert_eq!(reserved(1e-4, 100_000).warning(), None);
    }

    #[test]
    fn rates_are_shares_that_grow_with_the_fill() {
        for (bits, hashes) in
            [(64, 1), (64, 2), (64, 1075), (192, 7), (1 << 30, 30), (1 << 59, 1075)]
        {
            let parameters = layer(bits, hashes, 1);
            let mut last = 0.0;
            for fill in [0.0, 1e-300, 1e-9, 0.1, 0.5, 0.9, 1.0 - 1e-12, 1.0] {
                let Rate { total, by_bits } = parameters.rate(fill, 1);
                assert!((0.0..=1.0).contains(&total) && by_bits <= total, "{bits} {hashes} {fill}");
                assert!(total >= last, "{bits} {hashes} {fill}: {total} after {last}");
                last = total;
            }
            assert!((last - 1.0).abs() < f64::EPSILON);
        }
        let totients: Vec<f64> = (1..=12).map(totient).collect();
        assert_eq!(totients, [1.0, 1.0, 2.0, 2.0, 4.0, 2.0, 6.0, 4.0, 6.0, 4.0, 10.0, 4.0]);
    }
}
