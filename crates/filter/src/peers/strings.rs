//! Filters of other projects whose bits are all in Redis strings.

use urlseen_fingerprint::Fingerprint;

use crate::Outlook;
use crate::number::whole;
use crate::peers::bit_strings::{BitPosition, BitStrings, PlacementError};
use crate::redis_kind::{
    Asked, Content, Estimate, ForeignKey, KeyLook, KindScript, Question, Record, RedisKind, text,
};

/// Time that Redis takes for one bit of an unseen item, in nanoseconds.
pub(crate) const BIT: usize = 2_300;

/// Filter whose bits are in the strings of a layout.
impl RedisKind for BitStrings {
    fn keys(&self) -> Vec<(u32, Content)> {
        let crowded = Some(self.crowded_bits);
        let content =
            |string| Content::Bits { bits: self.bits(string), is_reserved: true, crowded };
        self.used_strings().into_iter().map(|string| (string, content(string))).collect()
    }

    fn key(&self, base: &str, number: u32) -> String {
        let number = self.separator.map(|separator| format!("{separator}{number}"));
        base.to_owned() + &number.unwrap_or_default()
    }

    fn foreign(&self, base: &str) -> Vec<ForeignKey> {
        if self.separator.is_none() {
            return Vec::new();
        }
        let why = "which no filter of this kind and size has: the existing filter was made with a \
                   larger capacity, or with more blocks";
        vec![ForeignKey { key: self.key(base, self.strings), why }]
    }

    fn record(&self, base: &str) -> Option<Record> {
        // The key is that of Redisson, the only project with such a hash.
        let has_tag = base.contains('{');
        let key = if has_tag { format!("{base}:config") } else { format!("{{{base}}}:config") };
        self.record.clone().map(|record| Record { key, ..record })
    }

    fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError> {
        let mut positions = Vec::new();
        self.push_positions(&text(fingerprint), &mut positions)?;
        Ok(positions)
    }

    fn estimate(&self, looks: &[KeyLook]) -> Estimate {
        let hashes = f64::from(self.spread_hashes);
        let keys = self.used_strings().into_iter().zip(looks).map(|(string, look)| {
            let bits = self.bits(string) as f64;
            -bits / hashes * (-look.fill.min(1.0 - 1.0 / bits)).ln_1p()
        });
        let keys = whole(keys.sum::<f64>().round());
        Estimate { keys, error_rate: self.error_rate(keys) }
    }

    fn outlook(&self, keys: u64) -> Outlook {
        let bits: Vec<_> =
            self.used_strings().into_iter().map(|string| self.bits(string)).collect();
        Outlook::of_strings(&bits, self.hashes, self.error_rate(keys))
    }

    fn script(&self) -> KindScript {
        let mut lua = format!("local WIDTH = {}\n{}", self.hashes, include_str!("bits.lua"));
        if let Some(Record { fields, fixed, .. }) = self.record.clone() {
            let words = fields.iter().map(|(name, value)| format!("'{name}', '{value}'"));
            let words: Vec<_> = words.collect();
            let record = format!("local RECORD, FIXED = {{{}}}, {fixed}\n", words.join(", "));
            lua = [&lua, &*record, include_str!("record.lua")].join("\n");
        }
        let commands: &[&[_]] = &[
            &["BITFIELD_RO", "GET", "u1", "0"],
            &["BITFIELD", "SET", "u1", "0", "0"],
            &["BITCOUNT"],
        ];
        KindScript { lua, cost: BIT * self.hashes as usize, commands }
    }

    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question {
        let width = self.hashes as usize;
        let mut asked = Asked::new(|number| self.key(base, number));
        let mut positions = Vec::with_capacity(width);
        for fingerprint in fingerprints {
            let Some(fingerprint) = fingerprint else {
                asked.skip(2 * width, width);
                continue;
            };
            positions.clear();
            let text = text(fingerprint);
            self.push_positions(&text, &mut positions).expect("checked when it was read");
            for &BitPosition { string, bit } in &positions {
                asked.string(string);
                asked.number(bit);
            }
        }
        let mut question = asked.question;
        question.keys.extend(self.record(base).map(|record| record.key));
        question
    }
}
