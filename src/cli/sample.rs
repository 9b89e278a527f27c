//! Sample of a crawl's requests, and its check before an import.

use crate::analysis::requests as requests_of;
use urlseen_engine::item::OwnedRequest;

use crate::cli::prelude::*;

/// Maximum number of requests of a sample.
const MOST: usize = 1000;

/// Reads the first requests of an input.
pub(super) fn requests(input: Input, config: &Config) -> anyhow::Result<Vec<OwnedRequest>> {
    let items = Options::new(ItemForm::Auto.into(), Algorithm::Scrapy);
    let requests = requests_of(input, items, start::crawl(config), None)?;
    Ok(requests.take(MOST).collect::<Result<_, _>>()?)
}

/// Checks that the set at `key` has the sampled URLs by the configured algorithm and form.
///
/// # Errors
/// Fails if Redis fails, if the set has none of the URLs, or if another pair fits better.
pub(super) fn check(config: &Config, key: &str, input: Input) -> anyhow::Result<()> {
    let requests = requests(input, config)?;
    let set = migrate::ForeignKey { address: &config.redis.url, key };
    let sample = runtime()?.block_on(async {
        let mut link = set.open(&["set"], "a set").await?;
        SampleFit::of(&mut link, key, &requests, &config.fingerprint_spec()).await
    })?;
    refuse_if!(
        sample.best().is_none(),
        "the set {key} has none of {} sampled URLs by any algorithm and canonical form: the URLs \
         are of another crawl, or its dupefilter computes fingerprints of its own",
        requests.len()
    );
    let words = sample.words();
    if let Some(remedy) = sample.remedy() {
        return Err(usage(format!("{words}, {remedy}")));
    }
    say(format!("urlseen: {words}"));
    Ok(())
}
