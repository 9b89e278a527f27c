//! Kind of scrapy-redis: a Redis set of fingerprints, which is exact.

use super::{IN_REDIS, Kind, Registered, Values};
use crate::filter::layout::{BitPosition, PlacementError};
use crate::filter::redis_kind::{Command, Content, KeyLook, Question, text};
use crate::filter::{Estimate, Outlook, RedisKind};
use crate::fingerprint::Fingerprint;

pub(super) const KIND: Kind = Kind(&Registered {
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
pub(in crate::filter) struct Set;

impl RedisKind for Set {
    fn used(&self) -> Vec<u32> {
        vec![0]
    }

    fn key(&self, base: &str, _number: u32) -> String {
        base.to_owned()
    }

    fn content(&self, _number: u32) -> Content {
        Content::Members
    }

    fn check(&self, fingerprint: &Fingerprint) -> Result<(), PlacementError> {
        if text(fingerprint).is_empty() { Err(PlacementError::Empty) } else { Ok(()) }
    }

    fn positions(&self, _: &Fingerprint) -> Result<Vec<BitPosition>, PlacementError> {
        Ok(Vec::new())
    }

    fn ask(&self, base: &str, fingerprint: &Fingerprint) -> Result<Vec<Command>, PlacementError> {
        let key = self.key(base, 0).into_bytes();
        Ok(vec![vec![b"SMISMEMBER".to_vec(), key, text(fingerprint).into()]])
    }

    fn estimate(&self, looks: &[KeyLook]) -> Estimate {
        Estimate { keys: looks.iter().map(|look| look.size).sum(), error_rate: 0.0 }
    }

    fn outlook(&self, keys: u64) -> Outlook {
        Outlook::of_set(MEMBER_BYTES.map(|bytes| bytes.saturating_mul(keys)))
    }

    fn lua(&self) -> String {
        include_str!("set.lua").to_owned()
    }

    fn cost(&self) -> usize {
        MEMBER
    }

    fn question(&self, base: &str, fingerprints: &[Option<&Fingerprint>]) -> Question {
        Question::of_texts(vec![self.key(base, 0)], fingerprints)
    }

    fn commands(&self) -> &'static [&'static [&'static str]] {
        &[&["SMISMEMBER", ""], &["SADD", ""], &["SCARD"]]
    }
}
