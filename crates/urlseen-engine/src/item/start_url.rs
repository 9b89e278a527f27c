//! Start URLs for the sink: JSON that scrapy-redis's `RedisMixin.make_request_from_data` reads.
//! That method knows `url`, `method` and `meta`. It would turn any other key into form data, which
//! replaces the query of a GET.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::json::{FieldName, JsonError};
use super::request::ItemRequest;
use urlseen_core::filter::item_form::unmarked;
use urlseen_core::redis::reject::bounded::{Bounded, TooLong};

/// Writes JSON of at most `most` bytes for the request to `url`. `meta` is JSON, or absent.
pub(super) fn write(
    url: &str,
    said: &ItemRequest<'_>,
    meta: Option<&[u8]>,
    most: usize,
) -> Result<Box<[u8]>, TooLong> {
    let mut json = Bounded::new(most).with_room(url.len() + meta.map_or(0, <[u8]>::len) + 48);
    json.push(b"{\"url\": ")?;
    json.push_json(url)?;
    let method = said.method.to_uppercase();
    if method != "GET" {
        json.push(b", \"method\": ")?;
        json.push_json(&method)?;
    }
    if let Some(meta) = meta {
        json.push(b", \"meta\": ")?;
        json.push(meta)?;
    }
    json.push(b"}")?;
    Ok(json.into_bytes().into())
}

/// Cuts the `meta` out of an item in JSON, unchanged. Returns `None` if the `meta` is empty.
pub(super) fn meta_of_json(item: &[u8]) -> Result<Option<&[u8]>, JsonError> {
    // If a key is repeated, its last value counts.
    let fields: BTreeMap<FieldName<'_>, &RawValue> = serde_json::from_slice(unmarked(item))?;
    let meta = fields.get(&FieldName(Cow::Borrowed("meta"))).map(|meta| meta.get().as_bytes());
    let is_empty =
        |meta: &[u8]| meta == b"null" || meta.iter().all(|byte| b"{} \t\r\n".contains(byte));
    Ok(meta.filter(|meta| !is_empty(meta)))
}
