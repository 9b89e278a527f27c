//! The kind of scrapy-redis: a Redis set of fingerprints, which is exact.

use std::sync::Arc;

use super::{Kind, KindParameters, Parameters, Registered};
use crate::filter::choice::FilterPlace;
use crate::filter::layout::{BitPosition, PlacementError};
use crate::filter::redis_kind::{Command, Content, KeyLook, Question, text};
use crate::filter::spec::SpecError;
use crate::filter::{Estimate, Outlook, RedisKind};
use crate::fingerprint::Fingerprint;

pub(super) const KIND: Kind = Kind(&Registered {
    name: "scrapy-redis",
    short: "scrapy-redis",
    summary: "the set of scrapy-redis: exact",
    keys: &[],
    usual: &[],
    places: &[FilterPlace::Redis],
    read: |_| Ok(Parameters::new(Set)),
});

/// Bytes that a member takes in Redis, 40 hex digits: the least and the most, by the fill of the
/// set's hash table. peers, memory: SADD, 40 hex digits, hash table full and doubling
const MEMBER_BYTES: [u64; 2] = [88, 104];

/// Redis's time for a member of a set, in nanoseconds.
const MEMBER: usize = 2_500;

#[derive(Debug, Clone, Copy)]
pub(in crate::filter) struct Set;

impl KindParameters for Set {
    fn kind(&self) -> Kind {
        KIND
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn grows(&self) -> bool {
        true
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn in_redis(&self) -> Result<Arc<dyn RedisKind>, SpecError> {
        Ok(Arc::new(*self))
    }
}

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
        let member = |it: Option<&Fingerprint>| it.map_or_else(Vec::new, |it| text(it).into());
        Question {
            keys: vec![self.key(base, 0)],
            places: Vec::new(),
            extras: fingerprints.iter().copied().map(member).collect(),
        }
    }

    fn commands(&self) -> &'static [&'static [&'static str]] {
        &[&["SMISMEMBER", ""], &["SADD", ""], &["SCARD"]]
    }

    fn bits(&self) -> u64 {
        0
    }

    fn hashes(&self) -> u32 {
        0
    }

    fn is_exact(&self) -> bool {
        true
    }
}
