//! Sampled requests of a crawl: finds the algorithm and the canonical form by which a set of
//! scrapy-redis has their fingerprints.

use std::cmp::Reverse;

use redis::pipe;
use urlseen_engine::item::OwnedRequest;
use urlseen_fingerprint::canonical::CanonicalForm;
use urlseen_fingerprint::choice::Choice as _;
use urlseen_fingerprint::{Algorithm, FingerprintSpec, Fingerprinter};
use urlseen_redis::link::Link;

/// Number of sampled requests that a set has by one spec of fingerprints.
struct Fit {
    spec: FingerprintSpec,
    found: usize,
}

impl Fit {
    /// Returns true if `spec` has the same algorithm and canonical form.
    fn is_of(&self, spec: &FingerprintSpec) -> bool {
        let key = |it: &FingerprintSpec| (it.algorithm, it.canonical);
        key(&self.spec) == key(spec)
    }
}

/// Sampled requests, looked up in a set for each algorithm and canonical form.
pub(crate) struct SampleFit {
    key: String,
    all: usize,
    /// The best one is the first. If several are equally good, that of `ours` is before the others.
    fits: Vec<Fit>,
    ours: FingerprintSpec,
}

impl SampleFit {
    /// Looks up requests in the set at `key`. `ours` is the configured spec.
    pub(crate) async fn of(
        link: &mut Link,
        key: &str,
        requests: &[OwnedRequest],
        ours: &FingerprintSpec,
    ) -> anyhow::Result<Self> {
        let mut fits = Vec::new();
        for (&(_, algorithm), &(_, canonical)) in
            Algorithm::ALL.iter().flat_map(|one| CanonicalForm::ALL.iter().map(move |it| (one, it)))
        {
            let keep_fragments = ours.keep_fragments;
            let spec = FingerprintSpec { canonical, keep_fragments, ..algorithm.into() };
            let mut fingerprinter = Fingerprinter::new(spec.clone());
            let mut asked = pipe();
            for request in requests {
                if let Ok(fingerprint) = fingerprinter.fingerprint(&request.as_request()) {
                    // A set has hex digits, or raw digests.
                    asked.cmd("SISMEMBER").arg(key).arg(fingerprint.to_string());
                    asked.cmd("SISMEMBER").arg(key).arg(fingerprint.as_bytes());
                }
            }
            let answers: Vec<bool> = asked.query_async(link).await?;
            let found = answers.chunks(2).filter(|answers| answers.contains(&true)).count();
            fits.push(Fit { spec, found });
        }
        fits.sort_by_key(|it: &Fit| (Reverse(it.found), !it.is_of(ours)));
        Ok(Self { key: key.to_owned(), all: requests.len(), fits, ours: ours.clone() })
    }

    /// Returns the spec that fits best; `None` if the set has none of the requests by any.
    pub(crate) fn best(&self) -> Option<&FingerprintSpec> {
        self.fits.first().filter(|it| it.found > 0).map(|it| &it.spec)
    }

    /// Describes the best fit.
    pub(crate) fn words(&self) -> String {
        let Self { key, all, fits, .. } = self;
        let Fit { spec: FingerprintSpec { algorithm, canonical, .. }, found } = &fits[0];
        let is_rival = |it: &&Fit| it.found == *found && it.spec.algorithm == *algorithm;
        let form = match fits.iter().filter(is_rival).count() {
            1 => canonical.to_string(),
            _ => "either canonical form".to_owned(),
        };
        format!("{found} of {all} sampled URLs are in the set {key} with {algorithm} and {form}")
    }

    /// Returns the settings to change if another spec than the configured one fits better.
    pub(crate) fn remedy(&self) -> Option<String> {
        let FingerprintSpec { algorithm, canonical, .. } = self.best()?;
        let by_ours = self.fits.iter().find(|it| it.is_of(&self.ours)).map_or(0, |it| it.found);
        (!self.fits[0].is_of(&self.ours)).then(|| {
            format!(
                "and {by_ours} with the configuration: set fingerprint.algorithm = \
                 \"{algorithm}\" and fingerprint.canonical = \"{canonical}\" first"
            )
        })
    }
}
