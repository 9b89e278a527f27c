//! What is asked about: a member of a set, or an item of a filter, as a client names it.

use urlseen_core::fingerprint::Fingerprint;
use urlseen_engine::config::ItemForm;
use urlseen_engine::item::{Form, Identity, Options, Reader, Unreadable};

/// What a member says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// What it is judged by.
    Fingerprint(Fingerprint),
    /// Nothing: it is always unseen.
    Unfiltered,
}

/// Reads a member. With the form `auto`, what is in none of the forms of items is taken as it is:
/// clients of sets and of RedisBloom have members of any kind.
pub(super) fn read(
    reader: &mut Reader,
    options: Options,
    bytes: &[u8],
) -> Result<Read, Unreadable> {
    match reader.read(bytes) {
        Ok(item) => Ok(match item.identity {
            Identity::Fingerprint(fingerprint) => Read::Fingerprint(fingerprint),
            Identity::Unfiltered => Read::Unfiltered,
        }),
        Err(_) if options.form == Form::Item(ItemForm::Auto) => {
            Ok(Read::Fingerprint(Fingerprint::from_text(bytes)))
        }
        Err(unreadable) => Err(unreadable),
    }
}
