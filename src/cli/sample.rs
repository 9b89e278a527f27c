//! Sample of a crawl's URLs: finds the algorithm and the canonical form by which a set of
//! scrapy-redis has their fingerprints.

use std::cmp::Reverse;

use redis::pipe;
use urlseen_engine::flow::input;
use urlseen_engine::item::bare_url;
use urlseen_fingerprint::canonical::CanonicalForm;
use urlseen_fingerprint::choice::Choice as _;
use urlseen_fingerprint::{Algorithm, Fingerprinter, Request};

use crate::cli::prelude::*;

/// Maximum number of URLs of a sample.
const MOST: usize = 1000;

/// Number of sampled URLs that a set has by one spec of fingerprints.
pub(super) struct Fit {
    pub(super) spec: FingerprintSpec,
    pub(super) found: usize,
}

impl Fit {
    /// Returns true if `spec` has the same algorithm and canonical form.
    fn is_of(&self, spec: &FingerprintSpec) -> bool {
        let key = |it: &FingerprintSpec| (it.algorithm, it.canonical);
        key(&self.spec) == key(spec)
    }
}

/// Reads the first URLs of a file. Skips lines that are no URL.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<String>> {
    let mut urls = Vec::new();
    for page in input::lines(vec![file.to_owned()]).pages {
        let page = page?;
        urls.extend(page.items.iter().filter_map(|line| Some(bare_url(line).ok()?.to_owned())));
        if urls.len() >= MOST {
            break;
        }
    }
    urls.truncate(MOST);
    Ok(urls)
}

/// Counts the URLs that the set at `key` has, for each algorithm and canonical form. The best fit
/// is the first one. If several are equally good, `ours` is before the others.
pub(super) async fn fits(
    link: &mut Link,
    key: &str,
    urls: &[String],
    ours: &FingerprintSpec,
) -> anyhow::Result<Vec<Fit>> {
    let mut fits = Vec::new();
    for (&(_, algorithm), &(_, canonical)) in
        Algorithm::ALL.iter().flat_map(|one| CanonicalForm::ALL.iter().map(move |it| (one, it)))
    {
        let keep_fragments = ours.keep_fragments;
        let spec = FingerprintSpec { canonical, keep_fragments, ..algorithm.into() };
        let mut fingerprinter = Fingerprinter::new(spec.clone());
        let mut asked = pipe();
        for url in urls {
            if let Ok(fingerprint) = fingerprinter.fingerprint(&Request::get(url)) {
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
    Ok(fits)
}

/// Checks that the set at `key` has the sampled URLs by the configured algorithm and form.
///
/// # Errors
/// Fails if Redis fails, if the set has none of the URLs, or if another pair fits better.
pub(super) async fn check(config: &Config, key: &str, file: &Path) -> anyhow::Result<()> {
    let urls = read(file)?;
    let ours = config.fingerprint_spec();
    let mut link = migrate::open(&config.redis.url, key, &["set"], "a set").await?;
    let fits = fits(&mut link, key, &urls, &ours).await?;
    let (best, all) = (&fits[0], urls.len());
    let FingerprintSpec { algorithm, canonical, .. } = best.spec;
    refuse_if!(
        best.found == 0,
        "the set {key} has none of {all} sampled URLs by any algorithm and canonical form: the \
         URLs are of another crawl, or its dupefilter computes fingerprints of its own"
    );
    let found = best.found;
    let words = format!("{found} of {all} sampled URLs are in the set {key} with {algorithm}");
    let by_ours = fits.iter().find(|it| it.is_of(&ours)).map_or(0, |it| it.found);
    refuse_if!(
        !best.is_of(&ours),
        "{words} and {canonical}, and {by_ours} with the configuration: set \
         fingerprint.algorithm = \"{algorithm}\" and fingerprint.canonical = \"{canonical}\" first"
    );
    let is_rival = |it: &&Fit| it.found == found && it.spec.algorithm == algorithm;
    say(match fits.iter().filter(is_rival).count() {
        1 => format!("urlseen: {words} and {canonical}"),
        _ => format!("urlseen: {words} and either canonical form"),
    });
    Ok(())
}
