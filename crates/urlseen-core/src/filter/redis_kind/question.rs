//! Question about some items, as arguments of a script.

use std::collections::BTreeMap;

use super::{Command, text};
use crate::filter::bit_strings::BitPosition;
use crate::fingerprint::Fingerprint;

/// Arguments with which a script tests some items, and adds the unseen ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Redis keys of the filter that the script needs.
    pub keys: Vec<String>,
    /// Encoded positions in the strings under these keys.
    pub places: Vec<u8>,
    /// Further arguments of each item, such as bit offsets or the item's text.
    pub extras: Vec<Vec<u8>>,
}

impl Question {
    /// Makes a question from the texts of fingerprints. An item that passes unchecked has an empty
    /// text.
    pub(in crate::filter) fn of_texts(
        keys: Vec<String>,
        fingerprints: &[Option<&Fingerprint>],
    ) -> Self {
        let extra = |it: Option<&Fingerprint>| it.map_or_else(Vec::new, |it| text(it).into());
        let extras = fingerprints.iter().copied().map(extra).collect();
        Self { keys, places: Vec::new(), extras }
    }
}

/// Builder of a question. It numbers the strings in the order in which they are added.
pub(in crate::filter) struct Asked<K> {
    key: K,
    numbers: BTreeMap<u32, u16>,
    /// Question about the items that have been added so far.
    pub(in crate::filter) question: Question,
}

impl<K: Fn(u32) -> String> Asked<K> {
    /// Starts an empty question. `key` returns the Redis key of a string.
    pub(in crate::filter) fn new(key: K) -> Self {
        Self { key, numbers: BTreeMap::new(), question: Question::default() }
    }

    /// Adds an item that passes unchecked. Appends `places` zero bytes to the question's places,
    /// and `extras` empty arguments to its extras.
    pub(in crate::filter) fn skip(&mut self, places: usize, extras: usize) {
        let Question { places: all, extras: more, .. } = &mut self.question;
        all.resize(all.len() + places, 0);
        more.resize(more.len() + extras, Vec::new());
    }

    /// Adds a number to the extras, as decimal text.
    pub(in crate::filter) fn number(&mut self, number: u32) {
        self.question.extras.push(itoa::Buffer::new().format(number).as_bytes().to_vec());
    }

    /// Adds a string to the places, by its number in the filter.
    pub(in crate::filter) fn string(&mut self, string: u32) {
        let keys = &mut self.question.keys;
        let number = *self.numbers.entry(string).or_insert_with(|| {
            keys.push((self.key)(string));
            u16::try_from(keys.len()).expect("no commit has so many bits")
        });
        self.question.places.extend(number.to_be_bytes());
    }
}

/// Returns commands that read bits, one command for each string.
pub(super) fn bits(positions: Vec<BitPosition>, key: impl Fn(u32) -> String) -> Vec<Command> {
    let mut by_string: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for position in positions {
        by_string.entry(position.string).or_default().push(position.bit);
    }
    let ask = |(string, bits): (u32, Vec<u32>)| {
        let mut command = vec![b"BITFIELD_RO".to_vec(), key(string).into_bytes()];
        for bit in bits {
            command.extend([b"GET".to_vec(), b"u1".to_vec(), bit.to_string().into_bytes()]);
        }
        command
    };
    by_string.into_iter().map(ask).collect()
}
