//! What a folder was made for, against what is wanted of it.

use std::fmt;

use super::header::{Header, Pins, Rules};
use crate::filter::Geometry;

impl Header {
    /// What `wanted`, done by this program, differs in from what the folder was made for.
    pub fn differences(&self, wanted: &Pins) -> Vec<Difference> {
        let (pins, own) = (self.pins(), Rules::own(wanted.algorithm));
        let mut all = Vec::new();
        let mut compare = |what, folder: &dyn fmt::Display, wanted: &dyn fmt::Display, way_on| {
            let (folder, wanted) = (folder.to_string(), wanted.to_string());
            if folder != wanted {
                all.push(Difference { what, folder, wanted, way_on });
            }
        };
        let seed = wanted.seed.unwrap_or(self.seed()).get();
        compare("crawl.name", &pins.crawl, &wanted.crawl, WayOn::OwnFolder);
        compare("filter.layout", &pins.layout.name(), &wanted.layout.name(), WayOn::SetBack);
        compare("filter.seed", &self.seed().get(), &seed, WayOn::SetBack);
        compare("filter.capacity", &pins.capacity.get(), &wanted.capacity.get(), WayOn::SetBack);
        compare("filter.error_rate", &pins.error_rate, &wanted.error_rate, WayOn::SetBack);
        if (pins.capacity, pins.error_rate) == (wanted.capacity, wanted.error_rate) {
            let geometry = |geometry: Geometry| {
                let (lines, bits) = (geometry.lines().get(), geometry.bits_per_line());
                format!("{lines} lines of {} with {bits} bits", geometry.lines_per_part())
            };
            let (folder, wanted) = (geometry(pins.geometry), geometry(wanted.geometry));
            compare("the division of the filter's bits", &folder, &wanted, WayOn::Version);
        }
        let (folder, wanted_name) = (pins.algorithm.name(), wanted.algorithm.name());
        compare("fingerprint.algorithm", &folder, &wanted_name, WayOn::SetBack);
        if pins.algorithm == wanted.algorithm {
            let (folder, own) = (&self.rules.algorithm, &own.algorithm);
            compare("the version of fingerprint.algorithm", folder, own, WayOn::Version);
        }
        let keep = |pins: &Pins| pins.keep_fragments;
        compare("fingerprint.keep_fragments", &keep(pins), &keep(wanted), WayOn::SetBack);
        compare("the rule of positions", &self.rules.positions, &own.positions, WayOn::Version);
        compare("the rule of shards", &self.rules.shards, &own.shards, WayOn::Version);
        all
    }
}

/// Something that a folder was made for and that is wanted otherwise now. Display says both, and
/// what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs: a key of the configuration where there is one.
    pub what: &'static str,
    /// What the folder was made for.
    pub folder: String,
    /// What is wanted.
    pub wanted: String,
    way_on: WayOn,
}

/// What can be done about a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WayOn {
    SetBack,
    OwnFolder,
    Version,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, folder, wanted, way_on } = self;
        write!(f, "{what} is {wanted}, and the state folder was made for {folder}: ")?;
        f.write_str(match way_on {
            WayOn::SetBack => "set it back, or forget what was seen with urlseen state reset",
            WayOn::OwnFolder => "give this crawl a state.dir of its own, or set the name back",
            WayOn::Version => {
                "run the version of urlseen that made it, or forget what was seen with urlseen \
                 state reset"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::header::tests::pins;
    use super::*;
    use crate::filter::{Capacity, Lines, Seed};
    use crate::fingerprint::Algorithm;

    #[test]
    fn each_difference_is_named_with_both_values() {
        let header = Header::new(1, Seed::new(7), &pins());
        assert_eq!(header.differences(&pins()), []);
        assert_eq!(header.differences(&Pins { seed: Some(Seed::new(7)), ..pins() }), []);
        let other = Geometry::new(Lines::Four, 10, 3).unwrap();
        for (wanted, what, values) in [
            (Pins { crawl: "b".to_owned(), ..pins() }, "crawl.name", None),
            (Pins { seed: Some(Seed::new(8)), ..pins() }, "filter.seed", Some(("7", "8"))),
            (
                Pins { capacity: Capacity::new(1001).unwrap(), geometry: other, ..pins() },
                "filter.capacity",
                Some(("1000", "1001")),
            ),
            (
                Pins { error_rate: "1e-7".parse().unwrap(), geometry: other, ..pins() },
                "filter.error_rate",
                Some(("1e-6", "1e-7")),
            ),
            (Pins { geometry: other, ..pins() }, "the division of the filter's bits", None),
            (
                Pins { algorithm: Algorithm::ScrapyRedis, ..pins() },
                "fingerprint.algorithm",
                Some(("scrapy", "scrapy-redis")),
            ),
            (
                Pins { keep_fragments: true, ..pins() },
                "fingerprint.keep_fragments",
                Some(("false", "true")),
            ),
        ] {
            let differences = header.differences(&wanted);
            let [difference] = &differences[..] else { panic!("{what}: {differences:?}") };
            assert_eq!(difference.what, what);
            if let Some((folder, wanted)) = values {
                assert_eq!((&*difference.folder, &*difference.wanted), (folder, wanted));
            }
            assert!(difference.to_string().contains(&difference.folder));
        }
    }

    #[test]
    fn another_program_differs_in_its_rules() {
        let mut header = Header::new(1, Seed::new(7), &pins());
        header.rules =
            Rules { positions: "a".to_owned(), shards: "b".to_owned(), algorithm: "c".to_owned() };
        let read = Header::decode(&header.encode()).unwrap();
        let whats: Vec<_> = read.differences(&pins()).iter().map(|each| each.what).collect();
        assert_eq!(
            whats,
            ["the version of fingerprint.algorithm", "the rule of positions", "the rule of shards"]
        );
    }
}
