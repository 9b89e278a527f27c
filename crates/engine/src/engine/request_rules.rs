//! Rules for the requests of a crawl in one process, which has neither items nor batches.

use super::limiter::Limiter;
use crate::item::{Decision, Options, Reader, Ttl, Unreadable};
use urlseen_filter::limit::{Counted, Counts};

/// Rules `[[drop]]`, `[[pass]]`, `[[expire]]` and `[[limit]]`, with the counts of the limits.
#[derive(Debug)]
pub struct RequestRules {
    reader: Reader,
    limiter: Option<Limiter>,
    counts: Counts,
    /// True if there is a rule of any kind.
    has_rules: bool,
}

impl RequestRules {
    /// Takes the rules out of the options.
    pub fn new(options: Options) -> Self {
        let limiter = Limiter::new(&options);
        let Options { pass, drop, expire, .. } = &options;
        let is_empty = pass.is_empty() && drop.is_empty() && expire.is_empty();
        let has_rules = limiter.is_some() || !is_empty;
        Self { reader: Reader::new(options), limiter, counts: Counts::default(), has_rules }
    }

    /// Decides about a request by its URL and its `ttl`. If there are limits, nothing expires,
    /// because pages that pass again would use them up.
    ///
    /// # Errors
    /// The `ttl` is not a time.
    pub fn decide(
        &mut self,
        url: &str,
        verbatim_url: bool,
        ttl: Option<&str>,
    ) -> Result<Decision, Unreadable> {
        let mut decision = Decision::default();
        if self.has_rules {
            decision = self.reader.decide(url, verbatim_url);
        }
        if self.limiter.is_some() || decision.is_dropped {
            return Ok(Decision { after: None, ..decision });
        }
        let ttl = ttl.map_or(Ok(None), |text| Ttl::of(text).span())?;
        let after = decision.after.into_iter().chain(ttl).min();
        Ok(Decision { after, url: None, ..decision })
    }

    /// Counts an unseen request by its canonical URL. Returns the changes of the counts, each
    /// encoded; `None` if the request is over a limit.
    pub fn admit(&mut self, url: &str) -> Option<Vec<Vec<u8>>> {
        let Some(limiter) = &mut self.limiter else { return Some(Vec::new()) };
        let encode = |it: Counted| {
            let mut bytes = Vec::with_capacity(Counted::BYTES);
            it.encode(&mut bytes);
            bytes
        };
        Some(limiter.admit_one(url, &mut self.counts)?.into_iter().map(encode).collect())
    }

    /// Changes the counts by an encoded change that earlier processes had so many times.
    pub fn count(&mut self, change: &[u8], number: u64) {
        let changes = Counted::decode_all(change).unwrap_or_default().into_iter();
        let all = changes.map(|it| Counted { items: it.items * number, ..it });
        self.counts.change(&all.collect::<Vec<_>>(), 0);
    }
}
