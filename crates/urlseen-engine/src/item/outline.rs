//! Outline of an item, for commands that explain an item.

use super::said::Said;
use super::{Identity, Item, Reader, Unreadable, fingerprint, json, tab, url};
use crate::config::ItemForm;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::fingerprint::Request;
use urlseen_core::fingerprint::same::SameStep;

/// Content of an item as its producer wrote it, before any check by the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Form of the item. If all forms are allowed, the first bytes of the item decide.
    pub form: ItemForm,
    /// Request that the item describes, if the item has a URL.
    pub request: Option<OwnedRequest>,
    /// Fingerprint that the producer gave, if there is one.
    pub given: Option<Fingerprint>,
    /// True if the item asks to pass unchecked and unrecorded.
    pub dont_filter: bool,
}

/// Copy of a [`Request`] that borrows nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRequest {
    /// HTTP method as the producer wrote it.
    pub method: String,
    /// URL as it was discovered.
    pub url: String,
    /// Bytes of the request's body.
    pub body: Vec<u8>,
    /// True if the URL is sent unchanged (Scrapy's `meta.verbatim_url`).
    pub verbatim_url: bool,
}

impl OwnedRequest {
    /// Returns the request for the computation of a fingerprint.
    pub fn as_request(&self) -> Request<'_> {
        let Self { method, url, body, verbatim_url } = self;
        Request { method, url, body, verbatim_url: *verbatim_url }
    }
}

impl Reader {
    /// Reads the outline of an item.
    ///
    /// # Errors
    /// Returns an error if the item does not have the configured form. A URL for which no
    /// fingerprint can be computed is not an error.
    pub fn outline(&mut self, bytes: &[u8]) -> Result<Outline, Unreadable> {
        if bytes.is_empty() {
            return Err(Unreadable::Empty);
        }
        let form = self.options.form.of(bytes).unwrap_or(ItemForm::Fingerprint);
        let said = match form {
            ItemForm::Auto | ItemForm::Url => url::read(bytes)?,
            ItemForm::Json => json::read(bytes)?,
            ItemForm::Pickle => self.pickles.read(bytes)?,
            ItemForm::Fingerprint => return Ok(ready(form, fingerprint::read(bytes)?)),
            ItemForm::Tab => return Ok(ready(form, tab::read(bytes)?)),
        };
        let Said { url, method, body, verbatim_url, fingerprint, dont_filter, .. } = said;
        let request = url.map(|url| OwnedRequest {
            method: method.into_owned(),
            url: url.into_owned(),
            body: body.into_owned(),
            verbatim_url,
        });
        Ok(Outline { form, request, given: fingerprint, dont_filter })
    }

    /// Returns the changes that the rules `[[same]]` make to the canonical URL of an item, in
    /// order: none for an item that has its own fingerprint, or that cannot be read.
    pub fn same_steps(&mut self, bytes: &[u8]) -> Vec<SameStep> {
        let Ok(Outline { request: Some(request), given: None, .. }) = self.outline(bytes) else {
            return Vec::new();
        };
        self.fingerprinter.same_steps(&request.as_request()).unwrap_or_default()
    }
}

/// Makes the outline of an item that has only a fingerprint.
fn ready(form: ItemForm, item: Item<'_>) -> Outline {
    let given = match item.identity {
        Identity::Fingerprint(fingerprint) => Some(fingerprint),
        Identity::Unfiltered | Identity::Dropped(_) => None,
    };
    Outline { form, request: None, given, dont_filter: false }
}
