//! An item: one element of the source, and the forms it can have.
//!
//! A new form is one new file with a `read` function, a variant of [`ItemForm`], and one line in
//! [`Reader::read`].

mod digest;
mod fingerprint;
mod items;
pub mod json;
mod pickle;
mod said;
mod start_url;
mod tab;
mod url;

use std::borrow::Cow;

pub use items::Items;
use json::JsonError;
pub use pickle::PickleError;
use pickle::Pickles;
use said::Said;

use crate::canonical::Refusal;
use crate::config::{Emit, ItemForm};
use crate::filter::Unplaced;
use crate::fingerprint::{Algorithm, Fingerprint, Fingerprinter};
use crate::lanes;

/// What an item says.
#[derive(Debug, PartialEq)]
pub struct Item<'a> {
    /// What it is judged by.
    pub identity: Identity,
    /// Its URL as received, for the forms that have one.
    pub url: Option<Cow<'a, str>>,
    /// What goes on in its place; nothing where it goes on as received.
    pub emitted: Option<Box<[u8]>>,
    /// Where it belongs in a sink that sorts: the less, the sooner.
    pub score: f64,
}

impl From<Fingerprint> for Item<'_> {
    /// One that says nothing else.
    fn from(fingerprint: Fingerprint) -> Self {
        let identity = Identity::Fingerprint(fingerprint);
        Item { identity, url: None, emitted: None, score: 0.0 }
    }
}

/// What an item is judged by.
#[derive(Debug, PartialEq, Eq)]
pub enum Identity {
    /// Unseen unless this was seen before.
    Fingerprint(Fingerprint),
    /// `dont_filter`: passed on unchecked and unrecorded.
    Unfiltered,
}

/// Why an item could not be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // each variant is its message
pub enum Unreadable {
    #[error("the item is empty")]
    Empty,
    #[error("the URL is not UTF-8: byte {offset} begins no character")]
    NotUtf8 { offset: usize },
    #[error("{0}")]
    Url(#[from] Refusal),
    #[error("{0}")]
    Json(#[from] JsonError),
    #[error("there is no tab between a fingerprint and a payload")]
    NoTab,
    #[error("a fingerprint has no tab in it; with a payload behind it the item form is `tab`")]
    TabInFingerprint,
    #[error("{0}")]
    Pickle(#[from] PickleError),
    #[error("the item has no URL to emit (sink.emit is not `item`)")]
    NothingToEmit,
    #[error(
        "the priority is {found}; a sink that sorts by it (sink.kind is `zset`) needs a finite \
         number"
    )]
    Priority { found: &'static str },
    #[error("{length} bytes are no digest, which has 16, 20 or 32")]
    NoDigest { length: usize },
    #[error("the filter's layout has no place for it: {0}")]
    NoPlace(Unplaced),
}

/// Reads items: their form, and from it what they are judged by. One a thread; it keeps the
/// buffers that fingerprints are computed in.
#[derive(Debug)]
pub struct Reader {
    options: Options,
    fingerprinter: Fingerprinter,
    pickles: Pickles,
}

/// How items are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What they look like.
    pub form: Form,
    /// What of them goes on.
    pub emit: Emit,
    /// How the fingerprints are computed that they do not bring along.
    pub algorithm: Algorithm,
    /// Whether URLs that differ in their fragments differ.
    pub keep_fragments: bool,
    /// Whether each needs a score ([`Item::score`]).
    pub scored: bool,
}

impl Options {
    /// Items go on as received and without a score.
    pub const fn new(form: Form, algorithm: Algorithm, keep_fragments: bool) -> Self {
        Self { form, emit: Emit::Item, algorithm, keep_fragments, scored: false }
    }
}

/// What items look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a source holds them.
    Item(ItemForm),
    /// The raw bytes of digests, which others have made sure of: no source holds such.
    Digest,
}

impl From<ItemForm> for Form {
    fn from(form: ItemForm) -> Self {
        Self::Item(form)
    }
}

impl Reader {
    /// A reader.
    pub fn new(options: Options) -> Self {
        let fingerprinter = Fingerprinter::new(options.algorithm, options.keep_fragments);
        Self { options, fingerprinter, pickles: Pickles::default() }
    }

    /// Reads one item.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Item<'a>, Unreadable> {
        if bytes.is_empty() {
            return Err(Unreadable::Empty);
        }
        let form = match self.options.form {
            Form::Digest => return digest::read(bytes),
            Form::Item(ItemForm::Auto) => detect(bytes),
            Form::Item(form) => form,
        };
        let said = match form {
            ItemForm::Auto | ItemForm::Url => url::read(bytes)?,
            ItemForm::Json => json::read(bytes)?,
            ItemForm::Pickle => self.pickles.read(bytes)?,
            ItemForm::Fingerprint | ItemForm::Tab if self.options.emit != Emit::Item => {
                return Err(Unreadable::NothingToEmit);
            }
            ItemForm::Fingerprint => return fingerprint::read(bytes),
            ItemForm::Tab => return tab::read(bytes),
        };
        let identity = self.identity(&said)?;
        let score = if self.options.scored { said.priority.score()? } else { 0.0 };
        let emitted = match self.options.emit {
            Emit::Item => None,
            Emit::Url => {
                let url = said.url.as_deref().ok_or(Unreadable::NothingToEmit)?.as_bytes();
                (url != bytes).then(|| url.into())
            }
            Emit::StartUrl => Some(self.start_url(&said, form, bytes)?),
        };
        Ok(Item { identity, url: said.url, emitted, score })
    }

    /// What a request is judged by.
    #[inline]
    fn identity(&mut self, said: &Said<'_>) -> Result<Identity, Unreadable> {
        match (said.dont_filter, &said.fingerprint, said.request()) {
            (true, ..) => Ok(Identity::Unfiltered),
            (false, Some(given), _) => Ok(Identity::Fingerprint(given.clone())),
            (false, None, Some(request)) => {
                Ok(Identity::Fingerprint(self.fingerprinter.fingerprint(&request)?))
            }
            (false, None, None) => Err(JsonError::NoIdentity.into()),
        }
    }

    /// What goes on of a request as a start URL.
    fn start_url(
        &self,
        said: &Said<'_>,
        form: ItemForm,
        bytes: &[u8],
    ) -> Result<Box<[u8]>, Unreadable> {
        let written = match form {
            ItemForm::Json => start_url::write(said, start_url::meta_of_json(bytes)?),
            ItemForm::Pickle => start_url::write(said, self.pickles.meta(bytes)?.as_deref()),
            _ => start_url::write(said, None),
        };
        written.ok_or(Unreadable::NothingToEmit)
    }
}

/// Tells the forms apart by an item's first bytes.
fn detect(bytes: &[u8]) -> ItemForm {
    /// What pickle protocols 2 and up begin with; no character of UTF-8 does.
    const PICKLE: u8 = 0x80;
    match bytes[0] {
        b'{' => return ItemForm::Json,
        PICKLE => return ItemForm::Pickle,
        _ => {}
    }
    // One more than there can be.
    let begin = &bytes[..bytes.len().min(65)];
    let digits = lanes::position(begin, |lanes| !lanes::hex_digits(lanes)).unwrap_or(begin.len());
    match (digits, bytes.get(digits)) {
        (32 | 40 | 64, None) => ItemForm::Fingerprint,
        (32 | 40 | 64, Some(b'\t')) => ItemForm::Tab,
        _ => ItemForm::Url,
    }
}

/// The item as text, as a URL must be.
fn utf8(bytes: &[u8]) -> Result<&str, Unreadable> {
    std::str::from_utf8(bytes).map_err(|error| Unreadable::NotUtf8 { offset: error.valid_up_to() })
}

#[cfg(test)]
mod tests {
    use super::*;
    const SHA1: &str = "0123456789abcdef0123456789abcdef01234567";

    fn read(form: ItemForm, emit: Emit, item: &[u8]) -> Result<Item<'_>, Unreadable> {
        Reader::new(Options { emit, ..Options::new(form.into(), Algorithm::Scrapy, false) })
            .read(item)
    }

    fn computed(url: &str) -> Identity {
        let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy, false);
        Identity::Fingerprint(
            fingerprinter.fingerprint(&crate::request::Request::get(url)).unwrap(),
        )
    }

    fn given(text: &str) -> Identity {
        Identity::Fingerprint(Fingerprint::from_text(text.as_bytes()))
    }

    #[test]
    fn auto_tells_the_forms_apart_by_their_first_bytes() {
        let url = "http://example.com/?b&a";
        for (item, identity) in [
            (url.to_owned(), computed(url)),
            (format!(r#"{{"url": "{url}"}}"#), computed(url)),
            (SHA1.to_owned(), given(SHA1)),
            (SHA1[..32].to_uppercase(), given(&SHA1[..32])),
            (format!("{SHA1}\tany payload\t"), given(SHA1)),
            (format!("{SHA1}{}\t", &SHA1[..24]), given(&format!("{SHA1}{}", &SHA1[..24]))),
        ] {
            let read = read(ItemForm::Auto, Emit::Item, item.as_bytes()).unwrap();
            assert_eq!(read.identity, identity, "{item}");
        }
    }

    #[test]
    fn auto_rejects_what_no_form_reads() {
        let read = |item| read(ItemForm::Auto, Emit::Item, item).unwrap_err().to_string();
        assert_eq!(read(b""), "the item is empty");
        assert_eq!(read(b"http://a/\xff"), "the URL is not UTF-8: byte 9 begins no character");
        assert_eq!(read(b"\x80\x04\x95"), "the pickle is cut short");
        // One digit short of a SHA-1: not a fingerprint, so it is read as a URL.
        assert!(read(&SHA1.as_bytes()[1..]).contains("scheme"));
        assert!(read(b"{\"url\": 1}").contains("url"));
    }

    #[test]
    fn a_tab_item_is_judged_by_what_stands_before_its_first_tab() {
        for (item, key) in [("a key\tpayload\tmore", "a key"), ("\tpayload", "")] {
            let read = read(ItemForm::Tab, Emit::Item, item.as_bytes()).unwrap();
            assert_eq!(read.identity, given(key));
        }
        let no_tab = read(ItemForm::Tab, Emit::Item, SHA1.as_bytes());
        assert!(matches!(no_tab, Err(Unreadable::NoTab)));
    }

    #[test]
    fn a_fingerprint_item_is_any_bytes_without_a_tab() {
        let key = b"caf\xc3\xa9 \xff";
        let item = read(ItemForm::Fingerprint, Emit::Item, key).unwrap();
        assert_eq!(item.identity, Identity::Fingerprint(Fingerprint::Text(key[..].into())));
        let tab = read(ItemForm::Fingerprint, Emit::Item, b"a\tb");
        assert!(matches!(tab, Err(Unreadable::TabInFingerprint)));
    }

    #[test]
    fn a_json_item_brings_its_own_fingerprint_or_asks_not_to_be_filtered() {
        let read = |item: &'static str| read(ItemForm::Auto, Emit::Item, item.as_bytes()).unwrap();
        assert_eq!(read(r#"{"fingerprint": "k", "url": "nothing"}"#).identity, given("k"));
        let unfiltered = read(r#"{"url": "http://a/", "dont_filter": true}"#);
        assert_eq!(unfiltered.identity, Identity::Unfiltered);
        let posted = read(r#"{"url": "http://a/", "method": "POST", "body": "b"}"#);
        assert_ne!(posted.identity, computed("http://a/"));
    }

    #[test]
    fn a_digest_is_read_as_what_its_hex_digits_stand_for() {
        let mut reader = Reader::new(Options::new(Form::Digest, Algorithm::Scrapy, false));
        // Begins like JSON, and has a tab in it.
        let raw = *b"{\t\n1234567890123456\xff";
        let hex = "7b090a31323334353637383930313233343536ff";
        assert_eq!(reader.read(&raw).unwrap().identity, given(hex));
        let short = reader.read(&raw[1..]);
        assert!(matches!(short, Err(Unreadable::NoDigest { length: 19 })));
    }

    #[test]
    fn a_score_is_the_negative_of_a_priority_that_is_a_number() {
        let form = ItemForm::Auto.into();
        let options = Options { scored: true, ..Options::new(form, Algorithm::Scrapy, false) };
        let mut reader = Reader::new(options);
        for (priority, score) in [
            ("null", 0.0),
            ("-0", 0.0),
            ("7", -7.0),
            ("-1.5", 1.5),
            ("18446744073709551615", -18_446_744_073_709_551_616.0),
        ] {
            let item = format!(r#"{{"url": "http://a/", "priority": {priority}}}"#);
            let found = reader.read(item.as_bytes()).unwrap().score;
            assert_eq!(found.to_bits(), f64::to_bits(score), "{priority}");
        }
        assert_eq!(reader.read(b"http://a/").unwrap().score.to_bits(), 0);
        for (priority, found) in [(r#""1""#, "is text;"), ("true", "is true or false;")] {
            let item = format!(r#"{{"url": "http://a/", "priority": {priority}}}"#);
            assert!(reader.read(item.as_bytes()).unwrap_err().to_string().contains(found));
            assert!(read(ItemForm::Auto, Emit::Item, item.as_bytes()).is_ok());
        }
        let infinite = b"\x80\x02}(X\x03\0\0\0urlX\x09\0\0\0http://a/X\x08\0\0\0priority\
            G\x7f\xf0\0\0\0\0\0\0u.";
        assert!(reader.read(infinite).unwrap_err().to_string().contains("not finite"));
        assert!(read(ItemForm::Auto, Emit::Item, infinite).is_ok());
    }

    #[test]
    fn what_has_no_url_cannot_be_emitted_as_one() {
        let read = |item| read(ItemForm::Auto, Emit::Url, item);
        let json = read(br#"{"url": "http://a/\u00e9"}"#).unwrap();
        assert_eq!(json.url.as_deref(), Some("http://a/\u{e9}"));
        assert_eq!(read(b"http://a/").unwrap().url.as_deref(), Some("http://a/"));
        for item in [SHA1.as_bytes(), br#"{"fingerprint": "k"}"#] {
            assert!(matches!(read(item), Err(Unreadable::NothingToEmit)));
        }
    }
}
