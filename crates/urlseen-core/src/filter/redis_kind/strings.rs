//! Filters of other projects whose bits are all in Redis strings.

use super::{
    Asked, Content, Estimate, ForeignKey, KeyLook, PlacementError, Question, Record, RedisKind,
    text,
};
use crate::filter::Outlook;
use crate::filter::layout::{BitPosition, BitStrings};
use crate::filter::number::whole;
use crate::filter::strings::{ScriptFilter, StringFilter};
use crate::fingerprint::Fingerprint;

/// Time that Redis takes for one bit of an unseen item, in nanoseconds.
pub(in crate::filter) const BIT: usize = 2_300;

/// Filter whose bits are in the strings of a layout.
#[derive(Debug)]
pub(in crate::filter) struct InStrings<L>(pub(in crate::filter) L);

impl<L: BitStrings + Clone + Send + Sync + 'static> RedisKind for InStrings<L> {
    fn used(&self) -> Vec<u32> {
        self.0.used_strings()
    }

    fn key(&self, base: &str, number: u32) -> String {
        self.0.key(base, number)
    }

    fn content(&self, number: u32) -> Content {
        Content::Bits { bits: self.0.bits(number), is_reserved: true }
    }

    fn foreign(&self, base: &str) -> Vec<ForeignKey> {
        // A layout with only one string has the same name for all numbers.
        if self.0.key(base, 0) == self.0.key(base, 1) {
            return Vec::new();
        }
        let why = "which no filter of this kind and size has: the existing filter was made with a \
                   larger capacity, or with more blocks";
        vec![ForeignKey { key: self.0.key(base, self.0.strings()), why }]
    }

    fn record(&self, base: &str) -> Option<Record> {
        self.0.record(base)
    }

    fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError> {
        let mut positions = Vec::new();
        self.0.push_positions(&text(fingerprint), &mut positions)?;
        Ok(positions)
    }

    fn estimate(&self, looks: &[KeyLook]) -> Estimate {
        let hashes = self.0.spread_hashes();
        let keys = self.used().into_iter().zip(looks).map(|(string, look)| {
            let bits = self.0.bits(string) as f64;
            -bits / hashes * (-look.fill.min(1.0 - 1.0 / bits)).ln_1p()
        });
        let keys = whole(keys.sum::<f64>().round());
        Estimate { keys, error_rate: self.0.error_rate(keys) }
    }

    fn crowded_bits(&self) -> Option<u64> {
        Some(self.0.crowded_bits())
    }

    fn outlook(&self, keys: u64) -> Outlook {
        let bits: Vec<_> = self.used().into_iter().map(|string| self.0.bits(string)).collect();
        Outlook::of_strings(&bits, self.0.hashes(), self.0.error_rate(keys))
    }

    fn lua(&self) -> String {
        let bits = format!("local WIDTH = {}\n{}", self.0.hashes(), include_str!("bits.lua"));
        let Some(Record { fields, fixed, .. }) = self.0.record("") else { return bits };
        let (fixed, rest): (Vec<_>, Vec<_>) =
            fields.into_iter().partition(|(name, _)| fixed.contains(name));
        let count = fixed.len();
        let words =
            fixed.into_iter().chain(rest).map(|(name, value)| format!("'{name}', '{value}'"));
        let words: Vec<_> = words.collect();
        let record = format!("local RECORD, FIXED = {{{}}}, {count}\n", words.join(", "));
        [&bits, &*record, include_str!("record.lua")].join("\n")
    }

    fn cost(&self) -> usize {
        BIT * self.0.hashes() as usize
    }

    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question {
        let width = self.0.hashes() as usize;
        let mut asked = Asked::new(|number| self.0.key(base, number));
        let mut positions = Vec::with_capacity(width);
        for fingerprint in fingerprints {
            let Some(fingerprint) = fingerprint else {
                asked.skip(2 * width, width);
                continue;
            };
            positions.clear();
            let text = text(fingerprint);
            self.0.push_positions(&text, &mut positions).expect("checked when it was read");
            for &BitPosition { string, bit } in &positions {
                asked.string(string);
                asked.number(bit);
            }
        }
        let mut question = asked.question;
        question.keys.extend(self.0.record(base).map(|record| record.key));
        question
    }

    fn commands(&self) -> &'static [&'static [&'static str]] {
        &[&["BITFIELD_RO", "GET", "u1", "0"], &["BITFIELD", "SET", "u1", "0", "0"], &["BITCOUNT"]]
    }

    fn in_memory(&self) -> Option<Box<dyn ScriptFilter>> {
        Some(Box::new(StringFilter::new(self.0.clone())))
    }
}
