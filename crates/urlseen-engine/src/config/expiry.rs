//! Rule of `filter.expire_after`.

use super::raw::{Raw, ValueError};
use super::value::Rule;
use serde_json::Value as Json;
use urlseen_core::filter::expire_after::ExpireAfter;

/// Time after which fingerprints pass again; empty text switches it off.
pub(super) struct Expiry;

impl Rule<Option<ExpireAfter>> for Expiry {
    fn read(&self, raw: &Raw) -> Result<Option<ExpireAfter>, ValueError> {
        match raw.text()? {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| ValueError::Value),
        }
    }

    fn allowed(&self) -> String {
        "\"\" (never), or a time from \"5s\" to \"20y\" such as \"30d\" or \"12h\"".to_owned()
    }

    fn write(&self, value: &Option<ExpireAfter>) -> Json {
        value.map_or_else(String::new, |time| time.to_string()).into()
    }
}
