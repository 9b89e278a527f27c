//! Comparison of a folder's spec with the wanted spec.

use std::fmt;

use urlseen_filter::{CANONICAL, DIVISION, DROP_TRACKING, SAME, SpecDifference};

use super::header::{Header, Rules, StorageSpec};

/// Names that messages use for the crawl and for the rules of a program.
const CRAWL: &str = "crawl.name";
const KIND: &str = "filter.kind";
const ALGORITHM_VERSION: &str = "the version of fingerprint.algorithm";
const POSITIONS: &str = "the rule of positions";
const SHARDS: &str = "the rule of shards";

impl StorageSpec {
    /// Compares the spec of a folder with this one. A new folder has no header, and fits.
    ///
    /// # Errors
    /// Returns all differences.
    pub fn check(&self, header: Option<&Header>) -> Result<(), Vec<Difference>> {
        let differences = header.map(|header| header.differences(self));
        differences.filter(|all| !all.is_empty()).map_or(Ok(()), Err)
    }
}

impl Header {
    /// Compares the folder's spec and rules with `wanted` and the rules of this program.
    pub(crate) fn differences(&self, wanted: &StorageSpec) -> Vec<Difference> {
        let spec = &self.spec;
        let (rules, own) = (&self.rules, Rules::own(&spec.filter));
        let mut all = Vec::new();
        let mut compare = |what, found: &str, wanted: &str| {
            if found != wanted {
                let (found, wanted) = (found.to_owned(), wanted.to_owned());
                all.push(Difference(SpecDifference { what, found, wanted }));
            }
        };
        compare(CRAWL, &spec.crawl, &wanted.crawl);
        let computed = [&spec.filter, &wanted.filter].map(|it| &it.fingerprint);
        let [found, wanted_one] = computed.map(|it| (it.algorithm, it.canonical));
        if found == wanted_one {
            compare(ALGORITHM_VERSION, &rules.algorithm, &own.algorithm);
        }
        if spec.filter.kind() == wanted.filter.kind() {
            compare(POSITIONS, &rules.positions, &own.positions);
            compare(SHARDS, &rules.shards, &own.shards);
        }
        all.extend(spec.filter.differences(&wanted.filter).into_iter().map(Difference));
        all
    }
}

/// Difference between a folder's spec and the wanted spec. The text of the difference has both
/// values and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference(pub SpecDifference);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpecDifference { what, found, wanted } = &self.0;
        write!(f, "{what} is {wanted}, and the storage folder was made for {found}: ")?;
        if *what == CANONICAL {
            let remedy = "or empty the filter: urlseen storage reset";
            return write!(f, "set {what} = {found:?}, {remedy}");
        }
        f.write_str(match *what {
            CRAWL => "give this crawl a storage.dir of its own, or set the name back",
            ALGORITHM_VERSION | POSITIONS | SHARDS | DIVISION => {
                "run the version of urlseen that made the folder, or empty the filter: urlseen \
                 storage reset"
            }
            KIND if (&**found, &**wanted) == ("native", "two-choice") => {
                "set it back, or convert the filter: urlseen storage convert"
            }
            DROP_TRACKING | SAME => {
                "set it back, or let the filter go on with other rules: urlseen storage convert \
                 --rules"
            }
            _ => "set it back, or empty the filter: urlseen storage reset",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::header::encode;
    use super::super::header::tests::{decode, made_for, native, reserved, spec};
    use super::*;
    use urlseen_filter::id::RandomId;
    use urlseen_filter::{Blocks, FilterSpec, Parameters};
    use urlseen_fingerprint::Algorithm;
    use urlseen_fingerprint::canonical::CanonicalForm;
    use urlseen_fingerprint::same::TrackingList;

    fn with(change: impl FnOnce(&mut FilterSpec)) -> StorageSpec {
        let mut spec = spec();
        change(&mut spec.filter);
        spec
    }

    #[test]
    fn each_difference_is_named_with_both_values() {
        let header = Header::new(RandomId::new(1), &spec());
        assert_eq!(header.differences(&spec()), []);
        let open = with(|filter| {
            let record = filter.parameters.record();
            let read = |name: &str| {
                let part = record.iter().find(|&&(it, _)| it == name && it != "filter.seed");
                part.map(|(_, value)| value.clone())
            };
            filter.parameters = filter.kind().read(&read).unwrap();
            assert_eq!(filter.parameters.seed(), None);
        });
        assert_eq!(header.differences(&open), []);
        let rules = r#"[{"fold":["www"]}]"#;
        for (wanted, what, values) in [
            (StorageSpec { crawl: "b".to_owned(), ..spec() }, "crawl.name", None),
            (made_for(native(8, Blocks::Two, 1000, "1e-6")), "filter.seed", Some(("7", "8"))),
            (
                made_for(native(7, Blocks::Four, 1001, "1e-6")),
                "filter.capacity",
                Some(("1000", "1001")),
            ),
            (
                made_for(native(7, Blocks::Four, 1000, "1e-7")),
                "filter.error_rate",
                Some(("1e-6", "1e-7")),
            ),
            (
                made_for(native(7, Blocks::Four, 1000, "1e-6")),
                "the division of the filter's bits",
                None,
            ),
            (made_for(reserved(5, "1e-3", 2)), "filter.kind", Some(("native", "redisbloom"))),
            (
                with(|filter| filter.fingerprint.algorithm = Algorithm::ScrapyRedis),
                "fingerprint.algorithm",
                Some(("scrapy", "scrapy-redis")),
            ),
            (
                with(|filter| filter.fingerprint.keep_fragments = true),
                "fingerprint.keep_fragments",
                Some(("false", "true")),
            ),
            (
                with(|filter| filter.fingerprint.canonical = CanonicalForm::W3lib24),
                "fingerprint.canonical",
                Some(("w3lib-2.5", "w3lib-2.4")),
            ),
            (
                with(|filter| filter.fingerprint.drop_tracking = TrackingList::November2026),
                "fingerprint.drop_tracking",
                Some(("none", "2026-11")),
            ),
            (
                with(|filter| filter.fingerprint.same = rules.parse().unwrap()),
                "fingerprint.same",
                Some(("[]", rules)),
            ),
        ] {
            let differences = header.differences(&wanted);
            let [difference] = &differences[..] else { panic!("{what}: {differences:?}") };
            assert_eq!(difference.0.what, what);
            if let Some((folder, wanted)) = values {
                assert_eq!((&*difference.0.found, &*difference.0.wanted), (folder, wanted));
            }
            assert!(difference.to_string().contains(&difference.0.found));
        }
    }

    #[test]
    fn the_reservation_of_redisbloom_is_compared_unless_it_was_imported() {
        let header = Header::new(RandomId::new(1), &made_for(reserved(1000, "1e-6", 2)));
        assert_eq!(header.differences(&made_for(reserved(1000, "1e-6", 2))), []);
        let wanted = made_for(reserved(1001, "1e-7", 4));
        let whats: Vec<_> = header.differences(&wanted).iter().map(|each| each.0.what).collect();
        assert_eq!(whats, ["filter.capacity", "filter.error_rate", "filter.expansion"]);
        let header = Header::new(RandomId::new(1), &made_for(Parameters::imported()));
        assert_eq!(header.differences(&wanted), []);
        let whats: Vec<_> = header.differences(&spec()).iter().map(|each| each.0.what).collect();
        assert_eq!(whats, ["filter.kind"]);
    }

    #[test]
    fn rules_of_another_program_are_differences() {
        let mut header = Header::new(RandomId::new(1), &spec());
        header.rules =
            Rules { positions: "a".to_owned(), shards: "b".to_owned(), algorithm: "c".to_owned() };
        let read = decode(&encode(&header.encode())).unwrap();
        let whats: Vec<_> = read.differences(&spec()).iter().map(|each| each.0.what).collect();
        assert_eq!(
            whats,
            ["the version of fingerprint.algorithm", "the rule of positions", "the rule of shards"]
        );
    }
}
