//! What goes on as a start URL: the JSON that scrapy-redis's `RedisMixin.make_request_from_data`
//! reads, which knows `url`, `method` and `meta`. Any other key would become form data, and on a
//! GET replace the query.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{JsonError, unmarked};
use super::said::Said;

/// The JSON for a request with this `meta`, which is JSON, or nothing.
pub(super) fn write(said: &Said<'_>, meta: Option<&[u8]>) -> Option<Box<[u8]>> {
    let url = said.url.as_deref()?;
    let mut json = Vec::with_capacity(url.len() + meta.map_or(0, <[u8]>::len) + 48);
    json.extend_from_slice(b"{\"url\": ");
    push_text(url, &mut json);
    let method = said.method.to_uppercase();
    if method != "GET" {
        json.extend_from_slice(b", \"method\": ");
        push_text(&method, &mut json);
    }
    if let Some(meta) = meta {
        json.extend_from_slice(b", \"meta\": ");
        json.extend_from_slice(meta);
    }
    json.push(b'}');
    Some(json.into())
}

/// The `meta` of an item in JSON, as it stands there; nothing where nothing is in it.
pub(super) fn meta_of_json(item: &[u8]) -> Result<Option<&[u8]>, JsonError> {
    /// A key, borrowed where it has no escapes.
    #[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
    struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

    // The last of equal keys counts.
    let fields: BTreeMap<Key<'_>, &RawValue> = serde_json::from_slice(unmarked(item))?;
    let meta = fields.get(&Key(Cow::Borrowed("meta"))).map(|meta| meta.get().as_bytes());
    let is_empty =
        |meta: &[u8]| meta == b"null" || meta.iter().all(|byte| b"{} \t\r\n".contains(byte));
    Ok(meta.filter(|meta| !is_empty(meta)))
}

/// Writes text as JSON has it.
pub(super) fn push_text(text: &str, json: &mut Vec<u8>) {
    serde_json::to_writer(json, text).expect("text is JSON, and memory takes it");
}
