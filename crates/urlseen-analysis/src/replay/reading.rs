//! Items, read: by several threads, batch by batch in turn.

use crossbeam_channel::{Receiver, Sender};

use urlseen_core::filter::native::{KeyHash, Native};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_engine::config::ItemForm;
use urlseen_engine::flow::feed::Page;
use urlseen_engine::item::{Form, Identity, Options, Reader, Unreadable};

/// A batch to be read.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) page: Page,
    /// Its items are raw digests that count as seen from the start.
    pub(super) is_given: bool,
}

/// What a batch says.
#[derive(Debug, Default)]
pub(super) struct Readings {
    /// Whether it is of what counts as seen from the begin on.
    pub(super) is_given: bool,
    /// The page that it is of.
    pub(super) page: Page,
    pub(super) forms: Vec<(ItemForm, u64)>,
    pub(super) fingerprints: Vec<Fingerprint>,
    pub(super) key_hashes: Vec<KeyHash>,
    pub(super) unfiltered: u64,
    /// The numbers of the rules by which items passed.
    pub(super) passed: Vec<u16>,
    /// Where an item stands that cannot be read, the item, and why.
    pub(super) rejects: Vec<(String, Vec<u8>, Unreadable)>,
}

/// A thread that reads.
pub(super) struct Worker {
    options: Options,
    reader: Reader,
    digests: Reader,
    native: Native,
}

impl Worker {
    pub(super) fn new(options: Options, native: Native) -> Self {
        let digests = Options::new(Form::Digest, options.algorithm, options.keep_fragments);
        let (reader, digests) = (Reader::new(options), Reader::new(digests));
        Self { options, reader, digests, native }
    }

    /// Reads until nobody hands in or takes any more.
    pub(super) fn work(mut self, work: &Receiver<Work>, hand_over: &Sender<Readings>) {
        for work in work {
            if hand_over.send(self.read(work)).is_err() {
                return;
            }
        }
    }

    fn read(&mut self, Work { page, is_given }: Work) -> Readings {
        let mut readings = Readings {
            is_given,
            fingerprints: Vec::with_capacity(page.items.len()),
            key_hashes: Vec::with_capacity(page.items.len()),
            ..Readings::default()
        };
        for (index, item) in page.items.iter().enumerate() {
            // An empty one has no form.
            let has_form = !is_given && !item.is_empty();
            if let Some(form) = has_form.then(|| self.options.form.of(item)).flatten() {
                match readings.forms.iter_mut().find(|(known, _)| *known == form) {
                    Some((_, count)) => *count += 1,
                    None => readings.forms.push((form, 1)),
                }
            }
            let reader = if is_given { &mut self.digests } else { &mut self.reader };
            match reader.read(item) {
                Err(reason) => {
                    // Enough to know it by.
                    let shown = item[..item.len().min(1 << 10)].to_vec();
                    readings.rejects.push((page.place(index).to_string(), shown, reason));
                }
                Ok(item) => match item.identity {
                    Identity::Unfiltered => {
                        readings.unfiltered += 1;
                        readings.passed.extend(item.passed);
                    }
                    Identity::Fingerprint(fingerprint) => readings.push(self.native, fingerprint),
                },
            }
        }
        Readings { page, ..readings }
    }
}

impl Readings {
    fn push(&mut self, native: Native, fingerprint: Fingerprint) {
        self.key_hashes.push(native.key_hash(&fingerprint));
        self.fingerprints.push(fingerprint);
    }
}
