//! Item that a program pushes, and the search for its partition.

use crate::{Error, ErrorKind};
use urlseen_filter::choice::ItemForm;
use urlseen_fingerprint::Request;
use urlseen_fingerprint::{Fingerprint, Fingerprinter};

/// Maximum number of characters of an item in an error message.
const SHOWN: usize = 80;

/// Item for the source of a crawl: a discovered request, in one of the forms that the daemon reads
/// (`docs/reference/items.md`).
///
/// Most programs pass their items as text or bytes, which convert to an `Item`. Only a crawl with
/// several partitions needs more: the fingerprint of an item determines its partition. From a URL,
/// from hex digits, and from hex digits with a tab and a payload, the consumer finds the
/// fingerprint itself. For JSON and pickles, the program passes the fingerprint.
///
/// ```no_run
/// use urlseen::{Consumer, Fingerprinter, Item, Request};
///
/// let consumer = Consumer::open("redis://127.0.0.1/", "demo:discovered")?;
/// consumer.push(["https://example.com/"])?;
///
/// let request = Request { method: "POST", body: b"a=1", ..Request::get("https://example.com/") };
/// let json = r#"{"url": "https://example.com/", "method": "POST", "body": "a=1"}"#;
/// consumer.push([Item::new(json, Fingerprinter::default().fingerprint(&request)?)])?;
///
/// let again = r#"{"url": "https://example.com/news", "dont_filter": true}"#;
/// consumer.push([Item::unfiltered(again)])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub(super) bytes: Vec<u8>,
    identity: Identity,
}

/// Knowledge of the program about the fingerprint of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Identity {
    /// The item itself leads to its fingerprint.
    InItem,
    Fingerprint(Fingerprint),
    Unfiltered,
}

impl Item {
    /// Makes an item from its bytes and its fingerprint. The daemon must find the same fingerprint
    /// in the item. Otherwise it rejects the item, and the reject names the right partition.
    pub fn new(bytes: impl Into<Vec<u8>>, fingerprint: impl Into<Fingerprint>) -> Self {
        Self { bytes: bytes.into(), identity: Identity::Fingerprint(fingerprint.into()) }
    }

    /// Makes an item that passes unfiltered: its `dont_filter` is true, or a `[[pass]]` rule of the
    /// daemon matches. Such an item may go to any partition. [`Consumer::finish`] pushes it exactly
    /// once.
    ///
    /// [`Consumer::finish`]: crate::Consumer::finish
    pub fn unfiltered(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), identity: Identity::Unfiltered }
    }

    /// Returns the fingerprint of the item if the source has items of this form. Returns `None` if
    /// the item may go to any partition, because it passes unfiltered or the daemon will reject it.
    pub(super) fn fingerprint(
        &self,
        form: ItemForm,
        fingerprinter: &mut Fingerprinter,
    ) -> Result<Option<Fingerprint>, Error> {
        let bytes = &self.bytes[..];
        match &self.identity {
            Identity::Fingerprint(fingerprint) => return Ok(Some(fingerprint.clone())),
            Identity::Unfiltered => return Ok(None),
            Identity::InItem if bytes.is_empty() => return Ok(None),
            Identity::InItem => {}
        }
        let form = if form == ItemForm::Auto { ItemForm::detect(bytes) } else { form };
        Ok(match form {
            ItemForm::Auto | ItemForm::Url => {
                let url = std::str::from_utf8(bytes).ok();
                url.and_then(|url| fingerprinter.fingerprint(&Request::get(url)).ok())
            }
            ItemForm::Fingerprint => Some(Fingerprint::from_text(bytes)),
            ItemForm::Tab => {
                let tab = bytes.iter().position(|&byte| byte == b'\t');
                tab.map(|tab| Fingerprint::from_text(&bytes[..tab]))
            }
            ItemForm::Json | ItemForm::Pickle => return Err(self.no_fingerprint(form)),
        })
    }

    fn no_fingerprint(&self, form: ItemForm) -> Error {
        let text = String::from_utf8_lossy(&self.bytes);
        let shown: String = text.chars().take(SHOWN).collect();
        let text = format!(
            "the crawl has several partitions, and the fingerprint of an item in the form {form} \
             determines its partition, but the program passed no fingerprint of {shown:?}; pass \
             urlseen::Item::new(item, fingerprint), or urlseen::Item::unfiltered(item) if its \
             dont_filter is true"
        );
        Error::new(ErrorKind::NoFingerprint, text)
    }
}

/// Makes an item from its bytes, without a fingerprint.
impl<T: AsRef<[u8]>> From<T> for Item {
    fn from(bytes: T) -> Self {
        Self { bytes: bytes.as_ref().to_vec(), identity: Identity::InItem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(form: ItemForm, item: impl Into<Item>) -> Option<String> {
        let found = item.into().fingerprint(form, &mut Fingerprinter::default()).unwrap();
        found.map(|fingerprint| fingerprint.to_string())
    }

    #[test]
    fn the_usual_forms_lead_to_their_fingerprints() {
        let (url, digits) = ("https://example.com/?b=2&a=1", "0f".repeat(20));
        let computed = Fingerprinter::default().fingerprint(&Request::get(url)).unwrap();
        let computed = Some(computed.to_string());
        for (form, item, expected) in [
            (ItemForm::Auto, url, &computed),
            (ItemForm::Auto, &digits, &Some(digits.clone())),
            (ItemForm::Auto, &format!("{digits}\t{{}}"), &Some(digits.clone())),
            (ItemForm::Url, url, &computed),
            (ItemForm::Tab, "page 7\tpayload", &Some("page 7".to_owned())),
            (ItemForm::Fingerprint, url, &Some(url.to_owned())),
        ] {
            assert_eq!(of(form, item), *expected, "{form}: {item}");
        }
    }

    #[test]
    fn items_that_the_daemon_rejects_or_does_not_filter_may_go_anywhere() {
        for item in [&b""[..], b"\xff", b"no URL"] {
            assert_eq!(of(ItemForm::Auto, item), None);
        }
        assert_eq!(of(ItemForm::Tab, "no tab"), None);
        assert_eq!(of(ItemForm::Json, Item::unfiltered("{}")), None);
    }

    #[test]
    fn json_and_pickles_need_a_fingerprint() {
        for (form, item) in [
            (ItemForm::Auto, &b" {\"url\": \"https://example.com/\"}"[..]),
            (ItemForm::Auto, b"\x80\x04."),
            (ItemForm::Json, b"https://example.com/"),
        ] {
            let refused = Item::from(item).fingerprint(form, &mut Fingerprinter::default());
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoFingerprint);
            assert!(error.to_string().contains("Item::new(item, fingerprint)"), "{error}");
        }
        assert_eq!(of(ItemForm::Json, Item::new("{}", "page 7")), Some("page 7".to_owned()));
    }
}
