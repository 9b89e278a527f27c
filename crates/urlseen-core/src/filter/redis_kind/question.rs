//! Question about some items, for a script.

use std::collections::BTreeMap;

use super::Command;
use crate::filter::layout::BitPosition;

/// Arguments by which a script judges some items.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Keys of the filter that the script needs.
    pub keys: Vec<String>,
    /// Places to look at in these keys.
    pub places: Vec<u8>,
    /// Values to look for there.
    pub extras: Vec<Vec<u8>>,
}

/// A question while it is built. Strings are numbered as they come.
pub(in crate::filter) struct Asked<K> {
    key: K,
    numbers: BTreeMap<u32, u16>,
    question: Question,
}

impl<K: Fn(u32) -> String> Asked<K> {
    /// Starts an empty question; `key` names strings.
    pub(in crate::filter) fn new(key: K) -> Self {
        Self { key, numbers: BTreeMap::new(), question: Question::default() }
    }

    /// Adds an item that passes unchecked: so many empty bytes of places and empty extras.
    pub(in crate::filter) fn skip(&mut self, places: usize, extras: usize) {
        let Question { places: all, extras: more, .. } = &mut self.question;
        all.resize(all.len() + places, 0);
        more.resize(more.len() + extras, Vec::new());
    }

    /// Adds a number as a decimal text.
    pub(in crate::filter) fn number(&mut self, number: u32) {
        self.question.extras.push(itoa::Buffer::new().format(number).as_bytes().to_vec());
    }

    /// Adds a string by its number in the filter.
    pub(in crate::filter) fn string(&mut self, string: u32) {
        let keys = &mut self.question.keys;
        let number = *self.numbers.entry(string).or_insert_with(|| {
            keys.push((self.key)(string));
            u16::try_from(keys.len()).expect("no commit has so many bits")
        });
        self.question.places.extend(number.to_be_bytes());
    }

    /// Returns the places, to append more.
    pub(in crate::filter) fn places(&mut self) -> &mut Vec<u8> {
        &mut self.question.places
    }

    pub(in crate::filter) fn question(self) -> Question {
        self.question
    }
}

/// Returns commands that ask for bits, one for each string.
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
