//! A bounded memory of fingerprints that are known to be seen.

use super::Verdict;
use super::layout::native::Probe;

/// Remembers some of the fingerprints that were set last: what it calls seen was set, but for a
/// chance of 2^-64 a test. What it has forgotten it calls unseen, and somebody else has to be
/// asked.
///
/// A table in which each fingerprint has one place, by one half of its hash; whichever was set last
/// has it, under the other half.
#[derive(Debug)]
pub struct Recent {
    /// 0 where nothing is.
    places: Box<[u64]>,
}

impl Recent {
    /// A memory of at most so many fingerprints, and 8 bytes for each: the power of two that is
    /// not above `most`, and at least one.
    pub fn new(most: usize) -> Self {
        let places = 1 << most.max(1).ilog2();
        Self { places: vec![0; places].into() }
    }

    /// Whether the fingerprint is known to be seen.
    #[inline]
    pub fn test(&self, probe: Probe) -> Verdict {
        Verdict::of(self.places[self.place(probe)] == name(probe))
    }

    /// The fingerprint is seen.
    #[inline]
    pub fn set(&mut self, probe: Probe) {
        let place = self.place(probe);
        self.places[place] = name(probe);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.places.fill(0);
    }

    fn place(&self, probe: Probe) -> usize {
        // A power of two, so this is a part of the hash.
        #[allow(clippy::cast_possible_truncation)]
        let hash = probe.id() as usize;
        hash & (self.places.len() - 1)
    }
}

/// What stands for a fingerprint in its place; never 0.
fn name(probe: Probe) -> u64 {
    // The upper half: the place comes from the lower one.
    #[allow(clippy::cast_possible_truncation)]
    let name = (probe.id() >> u64::BITS) as u64;
    name.max(1)
}

#[cfg(test)]
mod tests {
    use super::super::{Geometry, Lines, Seed, native::Native};
    use super::*;
    use crate::fingerprint::Fingerprint;

    fn probes(count: u8) -> Vec<Probe> {
        let native = Native::new(Seed::new(5), Geometry::new(Lines::One, 9, 5).unwrap());
        (0..count).map(|byte| native.probe(&Fingerprint::Raw20([byte; 20]))).collect()
    }

    #[test]
    fn what_was_set_last_is_remembered_and_nothing_else() {
        let mut recent = Recent::new(1000);
        let probes = probes(200);
        let (set, others) = probes.split_at(10);
        for probe in set {
            assert_eq!(recent.test(*probe), Verdict::Unseen);
            recent.set(*probe);
            assert_eq!(recent.test(*probe), Verdict::Seen);
        }
        assert!(others.iter().all(|probe| recent.test(*probe) == Verdict::Unseen));
        recent.clear();
        assert!(set.iter().all(|probe| recent.test(*probe) == Verdict::Unseen));
    }

    #[test]
    fn it_forgets_rather_than_grow() {
        let mut recent = Recent::new(100);
        let probes = probes(200);
        for probe in &probes {
            recent.set(*probe);
        }
        assert_eq!(recent.places.len(), 64);
        let held = probes.iter().filter(|probe| recent.test(**probe) == Verdict::Seen).count();
        assert!((40..=64).contains(&held), "{held}");
        assert_eq!(recent.test(probes[199]), Verdict::Seen);
    }
}
