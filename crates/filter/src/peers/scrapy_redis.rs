//! Kind of scrapy-redis: a Redis set of fingerprints, which is exact.

use urlseen_fingerprint::Fingerprint;

use crate::kinds::kind::{IN_REDIS, Kind, Registered};
use crate::kinds::values::Values;
use crate::peers::bit_strings::{BitPosition, PlacementError};
use crate::redis_kind::{Content, KeyLook, KindScript, Question, text};
use crate::{Estimate, Outlook, RedisKind};

pub(crate) const KIND: Kind = Kind(&Registered {
    name: "scrapy-redis",
    keys: &[],
    grows: true,
    is_exact: true,
    read: |_| Ok(Values::in_redis(Vec::new(), Ok(Set))),
    ..IN_REDIS
});

/// Minimum and maximum number of bytes that Redis takes for a member of 40 hex digits. The number
/// depends on the fill of the set's hash table. It was measured with a full table, and with one
/// that had just doubled.
const MEMBER_BYTES: [u64; 2] = [88, 104];

/// Time that Redis takes for a member of a set, in nanoseconds.
const MEMBER: usize = 2_500;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Set;

impl RedisKind for Set {
    fn keys(&self) -> Vec<(u32, Content)> {
        vec![(0, Content::Members)]
    }

    fn key(&self, base: &str, _number: u32) -> String {
        base.to_owned()
    }

    fn positions(&self, fingerprint: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError> {
        if text(fingerprint).is_empty() { Err(PlacementError::Empty) } else { Ok(Vec::new()) }
    }

    fn estimate(&self, looks: &[KeyLook]) -> Estimate {
        Estimate { keys: looks.iter().map(|look| look.size).sum(), error_rate: 0.0 }
    }

    fn outlook(&self, keys: u64) -> Outlook {
        let bytes = MEMBER_BYTES.map(|bytes| bytes.saturating_mul(keys));
        Outlook { bytes, ..Outlook::default() }
    }

    fn script(&self) -> KindScript {
        KindScript {
            lua: include_str!("set.lua").to_owned(),
            cost: MEMBER,
            commands: &[&["SMISMEMBER", ""], &["SADD", ""], &["SCARD"]],
        }
    }

    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question {
        Question::of_texts(vec![self.key(base, 0)], fingerprints)
    }
}
