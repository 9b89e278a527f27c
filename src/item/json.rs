//! stub
use super::{Identity, Item, Unreadable};
use crate::fingerprint::{Fingerprint, Fingerprinter};
use crate::request::Request;
use std::borrow::Cow;
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("json: {0}")]
/// stub
pub struct JsonError(String);
/// stub
pub struct JsonRequest;
pub(super) fn read<'a>(
    bytes: &'a [u8],
    fingerprinter: &mut Fingerprinter,
) -> Result<Item<'a>, Unreadable> {
    let v: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|e| JsonError(e.to_string()))?;
    let url = v.get("url").and_then(|v| v.as_str()).map(str::to_owned);
    let identity = if v.get("dont_filter") == Some(&true.into()) {
        Identity::Unfiltered
    } else if let Some(f) = v.get("fingerprint").and_then(|v| v.as_str()) {
        Identity::Fingerprint(Fingerprint::from_text(f.as_bytes()))
    } else {
        let u = url.as_deref().ok_or(JsonError("no url".into()))?;
        let body = v.get("body").and_then(|b| b.as_str()).unwrap_or("");
        Identity::Fingerprint(
            fingerprinter.fingerprint(&Request { body: body.as_bytes(), ..Request::get(u) })?,
        )
    };
    Ok(Item { identity, url: url.map(Cow::Owned) })
}
