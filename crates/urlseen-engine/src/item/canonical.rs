//! Canonical URL of an item, from which limits find its groups.

use super::{Reader, json, url};
use urlseen_core::filter::choice::ItemForm;

impl Reader {
    /// Returns the canonical URL of an item; `None` if it has none.
    pub(crate) fn canonical_url(&mut self, bytes: &[u8]) -> Option<&str> {
        let said = match self.options.form.of(bytes)? {
            ItemForm::Auto | ItemForm::Url => url::read(bytes).ok()?,
            ItemForm::Json => json::read(bytes).ok()?,
            ItemForm::Pickle => self.pickles.read(bytes).ok()?,
            ItemForm::Fingerprint | ItemForm::Tab => return None,
        };
        let request = said.request()?;
        self.fingerprinter.canonical(&request).ok()
    }
}
