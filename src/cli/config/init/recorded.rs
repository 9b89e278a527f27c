//! Filters of Redisson, which records their parameters in a hash.

use std::str::FromStr;

use indicatif::HumanCount;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;

use super::draft::{Draft, text};
use super::found::{FoundKey, Use};

/// Returns the key of a filter of Redisson. `name` is the key of its hash without the end.
pub(super) fn key(name: &str) -> &str {
    name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name)
}

/// Reads the parameters of a filter of Redisson from its hash.
pub(super) async fn ask(link: &mut Link, hash: &str) -> Result<Option<FoundKey>, LinkError> {
    let fields = ["expectedInsertions", "falseProbability", "size", "hashIterations"];
    let values: [Option<Vec<u8>>; 4] =
        link.query(redis::cmd("HMGET").arg(hash).arg(&fields)).await?;
    let [Some(capacity), Some(error_rate), Some(_), Some(_)] = values else { return Ok(None) };
    let (Some(size), Some(error_rate)) = (number(&capacity), number(&error_rate)) else {
        return Ok(None);
    };
    let key = key(hash.strip_suffix(":config").unwrap_or(hash)).to_owned();
    let used_as = Use::Recorded;
    Ok(Some(FoundKey { key, used_as, size, error_rate: Some(error_rate), is_foreign: false }))
}

/// Reads a number in text.
fn number<T: FromStr>(text: &[u8]) -> Option<T> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// Describes a filter for this number of fingerprints.
pub(super) fn described(capacity: u64) -> String {
    format!("a filter of Redisson for {} fingerprints", HumanCount(capacity))
}

impl Draft {
    /// Adds the sections for a filter of Redisson.
    pub(super) fn recorded(&mut self, key: &str, capacity: u64, error_rate: f64) {
        self.line("algorithm = \"scrapy\"  # or \"scrapy-redis\"");
        self.line("\n[filter]");
        self.line("place = \"redis\"");
        self.line("kind = \"redisson\"");
        self.line(&format!("key = {}", text(key)));
        self.line(&format!("capacity = {capacity}  # expectedInsertions"));
        self.line(&format!("error_rate = {error_rate}  # falseProbability"));
        self.reasons.push(format!(
            "{key} is a filter of Redisson, with its parameters in a hash. urlseen sets the same \
             bits in Redis"
        ));
        self.reasons.push(
            "The items of the filter must be fingerprints in 40 hex digits. Redis does not show \
             their algorithm: set fingerprint.algorithm"
                .to_owned(),
        );
    }
}
