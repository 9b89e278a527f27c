//! What a folder was made for, against what is wanted of it.

use std::fmt;

use super::header::{Header, Rules};
use super::spec::{Made, Pins};
use crate::filter::Geometry;

impl Header {
    /// What `wanted`, done by this program, differs in from what the folder was made for.
    pub(crate) fn differences(&self, wanted: &Pins) -> Vec<Difference> {
        let pins = self.pins();
        let own = Rules::own(wanted.made.kind(), wanted.algorithm);
        let mut all = Vec::new();
        let mut compare = |what, folder: &dyn fmt::Display, wanted: &dyn fmt::Display, way_on| {
            let (folder, wanted) = (folder.to_string(), wanted.to_string());
            if folder != wanted {
                all.push(Difference { what, folder, wanted, way_on });
            }
        };
        compare("crawl.name", &pins.crawl, &wanted.crawl, WayOn::OwnFolder);
        let (folder, kind) = (pins.made.kind().name(), wanted.made.kind().name());
        compare("filter.kind", &folder, &kind, WayOn::SetBack);
        if let (Some(folder), Some(wanted)) = (pins.made.seed(), wanted.made.seed()) {
            compare("filter.seed", &folder.get(), &wanted.get(), WayOn::SetBack);
        }
        // Where the kinds differ, the rest is not worth a word. What was imported is as it is.
        if let (true, Some(folder), Some(wanted)) =
            (folder == kind, pins.made.size(), wanted.made.size())
        {
            let ((capacity, rate), (wanted_capacity, wanted_rate)) = (folder, wanted);
            let (capacity, wanted_capacity) = (capacity.get(), wanted_capacity.get());
            compare("filter.capacity", &capacity, &wanted_capacity, WayOn::SetBack);
            compare("filter.error_rate", &rate, &wanted_rate, WayOn::SetBack);
        }
        if let (Made::RedisBloom(folder), Made::RedisBloom(wanted)) = (pins.made, wanted.made) {
            let (folder, wanted) = (folder.expansion(), wanted.expansion());
            compare("filter.expansion", &folder, &wanted, WayOn::SetBack);
        }
        if let (Made::Native { geometry: folder, .. }, Made::Native { geometry, .. }) =
            (pins.made, wanted.made)
            && pins.made.size() == wanted.made.size()
        {
            let words = |geometry: Geometry| {
                let (blocks, bits) = (geometry.blocks().get(), geometry.bits_per_block());
                format!("{blocks} blocks of {} with {bits} bits", geometry.blocks_per_part())
            };
            let (folder, wanted) = (words(folder), words(geometry));
            compare("the division of the filter's bits", &folder, &wanted, WayOn::Version);
        }
        let (ours, theirs) = (pins.algorithm.name(), wanted.algorithm.name());
        compare("fingerprint.algorithm", &ours, &theirs, WayOn::SetBack);
        if pins.algorithm == wanted.algorithm {
            let (ours, own) = (&self.rules.algorithm, &own.algorithm);
            compare("the version of fingerprint.algorithm", ours, own, WayOn::Version);
        }
        let keep = |pins: &Pins| pins.keep_fragments;
        compare("fingerprint.keep_fragments", &keep(pins), &keep(wanted), WayOn::SetBack);
        if folder == kind {
            let rules = &self.rules;
            compare("the rule of positions", &rules.positions, &own.positions, WayOn::Version);
            compare("the rule of shards", &rules.shards, &own.shards, WayOn::Version);
        }
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
    pub(crate) folder: String,
    /// What is wanted.
    pub(crate) wanted: String,
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
        write!(f, "{what} is {wanted}, and the storage folder was made for {folder}: ")?;
        f.write_str(match way_on {
            WayOn::SetBack => "set it back, or forget what was seen with urlseen storage reset",
            WayOn::OwnFolder => "give this crawl a storage.dir of its own, or set the name back",
            WayOn::Version => {
                "run the version of urlseen that made it, or forget what was seen with urlseen \
                 storage reset"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::header::tests::{native, pins, reserved};
    use super::*;
    use crate::filter::Blocks;
    use crate::fingerprint::Algorithm;

    fn made(made: Made) -> Pins {
        Pins { made, ..pins() }
    }

    #[test]
    fn each_difference_is_named_with_both_values() {
        let header = Header::new(1, &pins());
        assert_eq!(header.differences(&pins()), []);
        let Made::Native { geometry, capacity, error_rate, .. } = pins().made else { panic!() };
        let open = Made::Native { seed: None, geometry, capacity, error_rate };
        assert_eq!(header.differences(&made(open)), []);
        for (wanted, what, values) in [
            (Pins { crawl: "b".to_owned(), ..pins() }, "crawl.name", None),
            (made(native(8, Blocks::Two, 1000, "1e-6")), "filter.seed", Some(("7", "8"))),
            (
                made(native(7, Blocks::Four, 1001, "1e-6")),
                "filter.capacity",
                Some(("1000", "1001")),
            ),
            (
                made(native(7, Blocks::Four, 1000, "1e-7")),
                "filter.error_rate",
                Some(("1e-6", "1e-7")),
            ),
            (
                made(native(7, Blocks::Four, 1000, "1e-6")),
                "the division of the filter's bits",
                None,
            ),
            (made(reserved(5, "1e-3", 2)), "filter.kind", Some(("native", "redisbloom"))),
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
    fn what_a_filter_of_redisbloom_was_reserved_for_is_held_to_unless_it_was_imported() {
        let header = Header::new(1, &made(reserved(1000, "1e-6", 2)));
        assert_eq!(header.differences(&made(reserved(1000, "1e-6", 2))), []);
        let wanted = made(reserved(1001, "1e-7", 4));
        let whats: Vec<_> = header.differences(&wanted).iter().map(|each| each.what).collect();
        assert_eq!(whats, ["filter.capacity", "filter.error_rate", "filter.expansion"]);
        let header = Header::new(1, &made(Made::Imported));
        assert_eq!(header.differences(&wanted), []);
        let whats: Vec<_> = header.differences(&pins()).iter().map(|each| each.what).collect();
        assert_eq!(whats, ["filter.kind"]);
    }

    #[test]
    fn another_program_differs_in_its_rules() {
        let mut header = Header::new(1, &pins());
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
