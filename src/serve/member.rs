//! Members that a client names, either of a set or of a filter.

use urlseen_core::fingerprint::Fingerprint;
use urlseen_engine::config::ItemForm;
use urlseen_engine::item::{Form, Identity, Options, Reader, Unreadable};

/// Content of a member, once it is read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// Fingerprint of the member.
    Fingerprint(Fingerprint),
    /// Member without a fingerprint, which is always unseen.
    Unfiltered,
}

/// Reads a member. With the form `auto`, a member in no form of an item is a key by itself: clients
/// of sets and of RedisBloom have members of any kind.
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
