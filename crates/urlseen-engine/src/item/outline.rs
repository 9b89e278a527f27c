//! What an item says, for people who ask what becomes of it.

use super::said::Said;
use super::{Form, Identity, Item, Reader, Unreadable, detect, fingerprint, json, tab, url};
use crate::config::ItemForm;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::fingerprint::request::Request;

/// What an item says of itself. Nothing of it has been judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// What it looks like: told apart by its first bytes, where any form will do.
    pub form: ItemForm,
    /// The request that it stands for, where it has a URL.
    pub request: Option<OwnedRequest>,
    /// The fingerprint that it brings along.
    pub given: Option<Fingerprint>,
    /// Whether it asks to pass unchecked and unrecorded.
    pub dont_filter: bool,
}

/// A [`Request`] by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRequest {
    /// As the producer wrote it.
    pub method: String,
    /// As discovered.
    pub url: String,
    /// The body's bytes.
    pub body: Vec<u8>,
    /// Scrapy's `meta.verbatim_url`.
    pub verbatim_url: bool,
}

impl OwnedRequest {
    /// What a fingerprint is computed from.
    pub fn as_request(&self) -> Request<'_> {
        let Self { method, url, body, verbatim_url } = self;
        Request { method, url, body, verbatim_url: *verbatim_url }
    }
}

impl Reader {
    /// What an item says.
    ///
    /// # Errors
    /// It has another form, or none. A URL that no fingerprint can be computed from is no error.
    pub fn outline(&mut self, bytes: &[u8]) -> Result<Outline, Unreadable> {
        if bytes.is_empty() {
            return Err(Unreadable::Empty);
        }
        let form = match self.options.form {
            Form::Item(ItemForm::Auto) => detect(bytes),
            Form::Item(form) => form,
            Form::Digest => ItemForm::Fingerprint,
        };
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
}

/// An item that is a fingerprint.
fn ready(form: ItemForm, item: Item<'_>) -> Outline {
    let given = match item.identity {
        Identity::Fingerprint(fingerprint) => Some(fingerprint),
        Identity::Unfiltered => None,
    };
    Outline { form, request: None, given, dont_filter: false }
}
