//! Items, read: by several threads, batch by batch in turn.

use std::ops::Range;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use urlseen_core::filter::native::{KeyHash, Native};
use urlseen_core::fingerprint::Fingerprint;
use urlseen_engine::config::ItemForm;
use urlseen_engine::item::{Form, Identity, Items, Options, Reader, Unreadable};

/// A batch to be read.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) items: Arc<Items>,
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

/// What a batch is.
#[derive(Debug)]
pub(super) enum Kind {
    /// Items of what is replayed.
    Items(From),
    /// Raw digests that count as seen from the begin on; beside them was what is none.
    Given { bad: Vec<String>, bad_count: u64 },
}

/// Where the first item of a batch stands.
#[derive(Debug, Clone)]
pub(super) struct From {
    /// A file or a key.
    pub(super) name: Arc<str>,
    /// What is counted there.
    pub(super) unit: &'static str,
    /// The number of the first, from 1.
    pub(super) first: u64,
    /// How many entries before it had no item, as they lack the field that has it.
    pub(super) without: u64,
}

/// What a batch says.
#[derive(Debug, Default)]
pub(super) struct Readings {
    /// Whether it is of what counts as seen from the begin on.
    pub(super) is_given: bool,
    pub(super) items: u64,
    pub(super) forms: Vec<(ItemForm, u64)>,
    pub(super) fingerprints: Vec<Fingerprint>,
    pub(super) key_hashes: Vec<KeyHash>,
    pub(super) unfiltered: u64,
    /// The numbers of the rules by which items passed.
    pub(super) passed: Vec<u16>,
    /// Where an item stands that cannot be read, the item, and why.
    pub(super) rejects: Vec<(String, Vec<u8>, Unreadable)>,
    pub(super) without: u64,
    pub(super) bad_seen: Vec<String>,
    pub(super) bad_seen_count: u64,
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

    fn read(&mut self, Work { items, range, kind }: Work) -> Readings {
        let mut readings = Readings {
            fingerprints: Vec::with_capacity(range.len()),
            key_hashes: Vec::with_capacity(range.len()),
            ..Readings::default()
        };
        match kind {
            Kind::Given { bad, bad_count } => {
                readings.is_given = true;
                (readings.bad_seen, readings.bad_seen_count) = (bad, bad_count);
                for index in range {
                    // What is cut for digests is one.
                    if let Ok(item) = self.digests.read(items.get(index))
                        && let Identity::Fingerprint(fingerprint) = item.identity
                    {
                        readings.push(self.native, fingerprint);
                    }
                }
            }
            Kind::Items(from) => {
                readings.items = range.len() as u64;
                readings.without = from.without;
                let mut forms = Vec::new();
                for (index, place) in range.zip(0..) {
                    self.item(items.get(index), &from, place, &mut forms, &mut readings);
                }
                readings.forms = forms;
            }
        }
        readings
    }

    fn item(
        &mut self,
        bytes: &[u8],
        from: &From,
        place: u64,
        forms: &mut Vec<(ItemForm, u64)>,
        readings: &mut Readings,
    ) {
        // An empty one has no form.
        let form = if bytes.is_empty() { None } else { self.options.form.of(bytes) };
        if let Some(form) = form {
            match forms.iter_mut().find(|(known, _)| *known == form) {
                Some((_, count)) => *count += 1,
                None => forms.push((form, 1)),
            }
        }
        match self.reader.read(bytes) {
            Err(reason) => {
                let From { name, unit, first, .. } = from;
                let place = format!("{name}, {unit} {}", first + place);
                // Enough to know it by.
                let shown = bytes[..bytes.len().min(1 << 10)].to_vec();
                readings.rejects.push((place, shown, reason));
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
}

impl Readings {
    fn push(&mut self, native: Native, fingerprint: Fingerprint) {
        self.key_hashes.push(native.key_hash(&fingerprint));
        self.fingerprints.push(fingerprint);
    }
}
