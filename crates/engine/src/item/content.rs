//! Content of an item, for commands that explain an item, and the text that shows an item.

use std::borrow::Cow;

use super::pickle::Pickles;
use super::request::{ItemRequest, Parsed};
use super::tab::TabParts;
use super::{Reader, Unreadable, json};
use urlseen_filter::choice::ItemForm;
use urlseen_fingerprint::same::SameStep;
use urlseen_fingerprint::{Fingerprint, Request};

/// Content of an item as its producer wrote it, before any check by the filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemContent {
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
    pub fn outline(&mut self, bytes: &[u8]) -> Result<ItemContent, Unreadable> {
        if bytes.is_empty() {
            return Err(Unreadable::Empty);
        }
        let form = self.options.form.of(bytes).unwrap_or(ItemForm::Fingerprint);
        let said = match self.parse(form, bytes) {
            // Without rules, the payload after flags may have any form.
            Err(_) if form == ItemForm::Tab && self.read(bytes).is_ok() => {
                Parsed::Fingerprint(Fingerprint::from_text(TabParts::of(bytes)?.fingerprint))
            }
            said => said?,
        };
        let said = match said {
            Parsed::Request(said) => said,
            Parsed::Fingerprint(fingerprint) => {
                let given = Some(fingerprint);
                return Ok(ItemContent { form, request: None, given, dont_filter: false });
            }
        };
        let ItemRequest { url, method, body, verbatim_url, fingerprint, dont_filter, .. } = said;
        let request = url.map(|url| OwnedRequest {
            method: method.into_owned(),
            url: url.into_owned(),
            body: body.into_owned(),
            verbatim_url,
        });
        Ok(ItemContent { form, request, given: fingerprint, dont_filter })
    }

    /// Returns the changes that the rules `[[same]]` make to the canonical URL of an item, in
    /// order: none for an item that has its own fingerprint, or that cannot be read.
    pub fn same_steps(&mut self, bytes: &[u8]) -> Vec<SameStep> {
        let Ok(ItemContent { request: Some(request), given: None, .. }) = self.outline(bytes)
        else {
            return Vec::new();
        };
        self.fingerprinter.same_steps(&request.as_request()).unwrap_or_default()
    }
}

/// Short text about an item.
#[derive(Debug, PartialEq, Eq)]
pub struct ItemSummary<'a> {
    /// Method, URL, priority and callback of a request. An item that is no request, or a bare URL,
    /// is its own text.
    pub text: Cow<'a, [u8]>,
    /// URL of a request, if the item is more than this URL.
    pub url: Option<String>,
}

impl<'a> ItemSummary<'a> {
    /// Describes an item of any form. Reads as much of a request as it can: a wrong field, or the
    /// missing end of a pickle, does not matter.
    pub fn of(item: &'a [u8]) -> Self {
        let found = match item.first().map(|_| ItemForm::detect(item)) {
            Some(ItemForm::Json) => json::words(item),
            Some(ItemForm::Pickle) => Pickles::default().words(item),
            Some(ItemForm::Tab) => match TabParts::of(item) {
                Ok(parts) => return Self::with_payload(&parts),
                Err(_) => Default::default(),
            },
            _ => Default::default(),
        };
        let [method, url, fingerprint, priority, callback] = found;
        let mut text = match (&url, fingerprint) {
            (Some(url), _) => method.map_or(String::new(), |it| it + " ") + url,
            (None, Some(fingerprint)) => format!("fingerprint {fingerprint}"),
            (None, None) => return Self { text: item.into(), url },
        };
        for (name, value) in [("priority", priority), ("callback", callback)] {
            text.extend(value.map(|value| format!("  {name} {value}")));
        }
        Self { text: text.into_bytes().into(), url }
    }

    /// Describes a fingerprint with its payload, which may be a request.
    fn with_payload(parts: &TabParts<'_>) -> Self {
        let ItemSummary { text, url } = ItemSummary::of(parts.payload);
        let text = [parts.fingerprint, b"  ", &text];
        let mut text = text.concat();
        text.extend(parts.flags.iter().flat_map(|flags| [b"  ", *flags]).flatten());
        Self { text: text.into(), url }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pickle.dumps` of a request of Scrapy 2.19.
    const PICKLE: &[u8] = b"\x80\x05\x95\xda\0\0\0\0\0\0\0}\x94(\x8c\x03url\x94\x8c\x1d\
        https://example.com/p?b=2&a=1\x94\x8c\x08callback\x94\x8c\nparse_item\x94\x8c\x07errback\
        \x94N\x8c\x07headers\x94}\x94\x8c\x04body\x94C\0\x94\x8c\x07cookies\x94}\x94\x8c\x04meta\
        \x94}\x94\x8c\x05depth\x94K\x03s\x8c\x08encoding\x94\x8c\x05utf-8\x94\x8c\x05flags\x94]\
        \x94\x8c\tcb_kwargs\x94}\x94\x8c\x0bdont_filter\x94\x89\x8c\x06method\x94\x8c\x03PUT\x94\
        \x8c\x08priority\x94K\nu.";

    const URL: &str = "https://example.com/p?b=2&a=1";

    fn brief(item: &[u8]) -> (String, Option<String>) {
        let ItemSummary { text, url } = ItemSummary::of(item);
        (String::from_utf8(text.into_owned()).unwrap(), url)
    }

    #[test]
    fn an_item_of_any_form_is_described() {
        let sha1 = "0123456789abcdef0123456789abcdef01234567";
        let tab = [sha1.as_bytes(), b"\t", PICKLE].concat();
        let flagged = [sha1.as_bytes(), b"\t&ttl=1h\t", PICKLE].concat();
        for (item, text, url) in [
            (PICKLE, &*format!("PUT {URL}  priority 10  callback parse_item"), Some(URL)),
            (&tab, &format!("{sha1}  PUT {URL}  priority 10  callback parse_item"), Some(URL)),
            (
                &flagged,
                &format!("{sha1}  PUT {URL}  priority 10  callback parse_item  &ttl=1h"),
                Some(URL),
            ),
            (
                br#"{"url": "\u0068:", "method": "POST", "priority": 1e400, "callback": "f"}"#,
                "POST h:  priority 1e400  callback f",
                Some("h:"),
            ),
            (br#" {"url": "h:", "ttl": [], "callback": null}"#, "GET h:", Some("h:")),
            (br#"{"fingerprint": "0F"}"#, "fingerprint 0F", None),
            (br#"{"url": {}}"#, r#"{"url": {}}"#, None),
            (b"{\"url\": \"h:\"", "{\"url\": \"h:\"", None),
            (br#"{"url": "h:", "method": "put", "method": null}"#, "GET h:", Some("h:")),
            (b"\x80\x02}X\x03\0\0\0urlX\x02\0\0\0h:s.", "GET h:", Some("h:")),
            (b"\x80\x02}X\x03\0\0\0urlX\x02\0\0\0h:s", "h:", Some("h:")),
            (
                b"\x80\x03}(X\x0b\0\0\0fingerprintC\x10\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0u.",
                "fingerprint ff000000000000000000000000000000",
                None,
            ),
            (URL.as_bytes(), URL, None),
            (sha1.as_bytes(), sha1, None),
            (b"", "", None),
        ] {
            assert_eq!(brief(item), (text.to_owned(), url.map(str::to_owned)));
        }
        assert_eq!(
            ItemSummary::of(b"\x80\x04]."),
            ItemSummary { text: b"\x80\x04]."[..].into(), url: None }
        );
    }

    /// Samples and shortened rejects have only the first bytes of an item.
    #[test]
    fn a_pickle_that_is_cut_off_shows_what_it_still_has() {
        let end_of_url = 22 + URL.len();
        for end in 0..PICKLE.len() {
            let ItemSummary { text, url } = ItemSummary::of(&PICKLE[..end]);
            assert_eq!(url.as_deref(), (end >= end_of_url).then_some(URL), "{end}");
            let has_callback = text.ends_with(b"  callback parse_item");
            assert_eq!(has_callback, end >= end_of_url + 24, "{end}");
        }
    }
}
