//! The Redis keys of one filter, and the questions of a commit to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use urlseen_fingerprint::Fingerprint;

use super::{Command, Content, KindScript, PlacementError, Record, RedisKind, text};
use crate::peers::bit_strings::BitPosition;

/// Approximate maximum time for which a script may block Redis, in nanoseconds. It limits the
/// number of items that one script judges.
const LONGEST: usize = 5_000_000;

/// Time that Redis needs for an unseen item, in nanoseconds, in addition to the cost of the kind.
const ITEM: usize = 1_500;

/// Redis keys of one filter of any kind, and the bit positions of fingerprints in them.
#[derive(Debug, Clone)]
pub struct RedisFilterKeys {
    /// Name of the filter, `filter.key`, which its Redis keys begin with.
    pub base: String,
    /// Kind of the filter with its parameters.
    pub kind: Arc<dyn RedisKind>,
    /// Numbers of the Redis keys that can have content, in order, with their content.
    pub keys: Vec<(u32, Content)>,
    /// Lua functions of the kind.
    pub script: KindScript,
}

impl RedisFilterKeys {
    /// Creates the keys of a filter whose name, `filter.key`, is `base`.
    pub fn new(base: impl Into<String>, kind: Arc<dyn RedisKind>) -> Self {
        let (keys, script) = (kind.keys(), kind.script());
        Self { base: base.into(), kind, keys, script }
    }

    /// Returns the name of a Redis key by its number.
    pub fn key(&self, number: u32) -> String {
        self.kind.key(&self.base, number)
    }

    /// Returns the names of all Redis keys, including the key of the record.
    pub fn all(&self) -> impl Iterator<Item = String> {
        let record = self.record().map(|record| record.key);
        self.keys.iter().map(|&(number, _)| self.key(number)).chain(record)
    }

    /// Returns the Redis hash in which the kind's project keeps the parameters, if it has one.
    pub fn record(&self) -> Option<Record> {
        self.kind.record(&self.base)
    }

    /// Checks that the kind can place a fingerprint.
    ///
    /// # Errors
    /// The kind cannot place the fingerprint.
    pub fn check(&self, fingerprint: &Fingerprint) -> Result<(), PlacementError> {
        // Every kind can place a digest.
        let Fingerprint::Text(_) = fingerprint else { return Ok(()) };
        self.kind.check(fingerprint)
    }

    /// Returns read-only commands that test a fingerprint. The reply to each command consists of
    /// numbers; 1 stands for a set bit or an existing member.
    ///
    /// # Errors
    /// The kind cannot place the fingerprint.
    pub fn ask(&self, fingerprint: &Fingerprint) -> Result<Vec<Command>, PlacementError> {
        if let [(number, Content::Members)] = self.keys[..] {
            let key = self.key(number).into_bytes();
            return Ok(vec![vec![b"SMISMEMBER".to_vec(), key, text(fingerprint).into()]]);
        }
        Ok(bits(self.kind.positions(fingerprint)?, |number| self.key(number)))
    }

    /// Returns the maximum number of items that one script may judge, so that it does not block
    /// Redis for long.
    pub fn most_judged(&self) -> usize {
        (LONGEST / (self.script.cost + ITEM)).max(1)
    }

    /// Returns the question about these fingerprints for a script. `None` stands for an item that
    /// passes unchecked.
    pub fn question<'a>(
        &self,
        fingerprints: impl Iterator<Item = Option<&'a Fingerprint>>,
    ) -> Question {
        self.kind.question(&self.base, &fingerprints.collect::<Vec<_>>())
    }
}

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
    pub(crate) fn of_texts(keys: Vec<String>, fingerprints: &[Option<&Fingerprint>]) -> Self {
        let extra = |it: Option<&Fingerprint>| it.map_or_else(Vec::new, |it| text(it).into());
        let extras = fingerprints.iter().copied().map(extra).collect();
        Self { keys, places: Vec::new(), extras }
    }
}

/// Builder of a question. It numbers the strings in the order in which they are added.
pub(crate) struct Asked<K> {
    key: K,
    numbers: BTreeMap<u32, u16>,
    /// Question about the items that have been added so far.
    pub(crate) question: Question,
}

impl<K: Fn(u32) -> String> Asked<K> {
    /// Starts an empty question. `key` returns the Redis key of a string.
    pub(crate) fn new(key: K) -> Self {
        Self { key, numbers: BTreeMap::new(), question: Question::default() }
    }

    /// Adds an item that passes unchecked. Appends `places` zero bytes to the question's places,
    /// and `extras` empty arguments to its extras.
    pub(crate) fn skip(&mut self, places: usize, extras: usize) {
        let Question { places: all, extras: more, .. } = &mut self.question;
        all.resize(all.len() + places, 0);
        more.resize(more.len() + extras, Vec::new());
    }

    /// Adds a number to the extras, as decimal text.
    pub(crate) fn number(&mut self, number: u32) {
        self.question.extras.push(itoa::Buffer::new().format(number).as_bytes().to_vec());
    }

    /// Adds a string to the places, by its number in the filter.
    pub(crate) fn string(&mut self, string: u32) {
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
