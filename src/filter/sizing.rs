//! From capacity and error rate to a geometry.

use super::geometry::LINE_BITS;
use super::rate::LineRate;
use super::{Capacity, ErrorRate, Geometry, Lines, SHARDS};

/// How far above the optimum a geometry may be to be worth its fewer lines.
const WORTH: f64 = 1.16;

/// Lines a part for comparing bits a key: so many that neither their number being whole nor shards
/// being uneven matters.
const LARGE_PART: u32 = 1 << 20;

/// The most keys a line that are looked at: at the largest error rate eight lines take 614.
const MOST_KEYS_PER_LINE: u64 = 1024;

/// A capacity and an error rate, and the smallest geometry that keeps the one up to the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizing {
    capacity: Capacity,
    error_rate: ErrorRate,
    geometry: Geometry,
}

impl Sizing {
    /// Chooses the fewest lines that keep within 1.16 of [`ErrorRate::optimal_bits_per_key`] where
    /// a filter is large, with their best k and no line more than the true error rate needs. Takes
    /// some milliseconds.
    ///
    /// Where a shard has few lines, below about a million keys, it takes more bits a key than
    /// that: lines are whole, and shards differ more.
    pub fn new(capacity: Capacity, error_rate: ErrorRate) -> Self {
        let allowed = WORTH * error_rate.optimal_bits_per_key();
        let mut rates = LineRates::default();
        let [fewer @ .., most] = Lines::ALL;
        let packing = fewer
            .into_iter()
            .map(|lines| Packing::best(&mut rates, lines, error_rate))
            .find(|packing| packing.bits_per_key() <= allowed)
            .unwrap_or_else(|| Packing::best(&mut rates, most, error_rate));
        Self::packed(capacity, error_rate, packing, &mut rates)
    }

    /// The same with a given number of lines, however many bits that takes.
    pub fn with_lines(capacity: Capacity, error_rate: ErrorRate, lines: Lines) -> Self {
        let mut rates = LineRates::default();
        let packing = Packing::best(&mut rates, lines, error_rate);
        Self::packed(capacity, error_rate, packing, &mut rates)
    }

    /// The fewest lines a part that keep the error rate: found near what the packing says, since
    /// the rate falls with every line.
    fn packed(
        capacity: Capacity,
        error_rate: ErrorRate,
        Packing { lines, bits_per_line, keys_per_line }: Packing,
        rates: &mut LineRates,
    ) -> Self {
        let geometry = |lines_per_part| Geometry::of(lines, bits_per_line, lines_per_part);
        let line = rates.of(bits_per_line);
        let keeps = |lines_per_part| {
            line.of_filter(&geometry(lines_per_part), capacity.get()) <= error_rate.get()
        };
        // At most 1.2e9, as `Capacity::MAX` says.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let near = (capacity.get() as f64 / SHARDS as f64 / keys_per_line) as u32;
        // Invariant: `too_few` does not keep it (or is 0), `enough` does.
        let (mut too_few, mut enough, mut step) = (near - near / 1024, near + 1, 1);
        while too_few > 0 && keeps(too_few) {
            enough = too_few;
            too_few = too_few.saturating_sub(step);
            step *= 2;
        }
        step = 1;
        while !keeps(enough) {
            too_few = enough;
            enough += step;
            step *= 2;
        }
        while enough - too_few > 1 {
            let middle = too_few.midpoint(enough);
            if keeps(middle) {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        Self { capacity, error_rate, geometry: geometry(enough) }
    }

    /// The number of keys up to which the error rate is kept.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// The error rate that is kept up to the capacity.
    pub fn error_rate(&self) -> ErrorRate {
        self.error_rate
    }

    /// The geometry chosen.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Bits of the filter for each key of its capacity.
    pub fn bits_per_key(&self) -> f64 {
        self.geometry.bits() as f64 / self.capacity.get() as f64
    }
}

/// How densely keys can be packed into lines at an error rate, where a filter is large.
#[derive(Debug, Clone, Copy)]
struct Packing {
    lines: Lines,
    bits_per_line: u8,
    keys_per_line: f64,
}

impl Packing {
    /// The densest for a number of lines: the best k.
    fn best(rates: &mut LineRates, lines: Lines, error_rate: ErrorRate) -> Self {
        let mut best = Self { lines, bits_per_line: 1, keys_per_line: 0.0 };
        for bits_per_line in 1..=Geometry::MAX_BITS_PER_LINE {
            let line = rates.of(bits_per_line);
            let keys_per_line = densest(line, lines, error_rate);
            if keys_per_line > best.keys_per_line {
                best = Self { lines, bits_per_line, keys_per_line };
            } else if keys_per_line < 0.9 * best.keys_per_line {
                break; // There is one maximum, and it is behind.
            }
        }
        best
    }

    /// Bits a key takes.
    fn bits_per_key(&self) -> f64 {
        f64::from(LINE_BITS * self.lines.get()) / self.keys_per_line
    }
}

/// The most keys a line, on average, at which all of a key's lines together keep the error rate.
fn densest(line: &LineRate, lines: Lines, error_rate: ErrorRate) -> f64 {
    let allowed = error_rate.get().powf(1.0 / f64::from(lines.get()));
    let (mut kept, mut exceeded) = (0, MOST_KEYS_PER_LINE * u64::from(LARGE_PART));
    while exceeded - kept > u64::from(LARGE_PART) >> 16 {
        let middle = u64::midpoint(kept, exceeded);
        if line.of_part(middle, LARGE_PART) <= allowed {
            kept = middle;
        } else {
            exceeded = middle;
        }
    }
    kept as f64 / f64::from(LARGE_PART)
}

/// The [`LineRate`]s computed so far, by bits per line.
#[derive(Default)]
struct LineRates(Vec<LineRate>);

impl LineRates {
    fn of(&mut self, bits_per_line: u8) -> &LineRate {
        for bits in self.0.len()..usize::from(bits_per_line) {
            #[allow(clippy::cast_possible_truncation)]
            self.0.push(LineRate::new(bits as u8 + 1));
        }
        &self.0[usize::from(bits_per_line) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zz_print() {
        for p in [1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12] {
            let e = ErrorRate::new(p).unwrap();
            let t = std::time::Instant::now();
            let s = Sizing::new(Capacity::new(100_000_000).unwrap(), e);
            let t = t.elapsed();
            println!("{p:e} {:?} {} {t:?}", s.geometry(), s.bits_per_key());
            for lines in Lines::ALL {
                let t = std::time::Instant::now();
                let b = Packing::best(&mut LineRates::default(), lines, e);
                let t = t.elapsed();
                println!(
                    "  {lines:?} {:.2} {} {:?}",
                    b.bits_per_key(),
                    b.bits_per_line as u32 * lines.get(),
                    t
                );
            }
            for n in [1, 10, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 1_000_000_000_000] {
                let s = Sizing::new(Capacity::new(n).unwrap(), e);
                print!(
                    "  {n}: {:?}/{} {:.2}",
                    s.geometry().lines(),
                    s.geometry().lines_per_part(),
                    s.bits_per_key()
                );
            }
            println!();
        }
    }
}
