//! A record of the log.
//!
//! ```text
//! at  bytes
//!  0      1  kind: 1 batch: counts if Redis committed it; 2 adds, 3 forgets, 4 generation: count
//!            always
//!  1      8  number: one more than that of the record before
//!  9      8  seq   ┐ batch: its own
//! 17      8  commit_id   ┘ others: those of the last batch logged before
//! 25      8  commit_id of the last batch logged before
//! 33      8  number of a record that was on the disk when this one was written
//! 41      4  number of the generation of the fingerprints; 4,294,967,295 if they do not expire
//! 45      4  count of fingerprints
//! 49      4  length of what follows the head
//! 53      4  CRC-32C of what follows the head
//! 57      4  CRC-32C of bytes 0 to 56
//! 61         fingerprints, one after the other: a byte with the length (16, 20 or 32), then the
//!            raw bytes. For text: the byte 255, the length (4 bytes), then the text
//!            In a batch, the number of changed counts (4 bytes), then for each the hash of its
//!            group (16 bytes) and the number of items (8 bytes)
//!            If some fingerprints have a lifetime of their own, a byte for each fingerprint: the
//!            number of generations after which it passes again (1 to 5), or 255 for never
//! ```
//!
//! A record of the kind *generation* has no fingerprints: its generation begins.
//!
//! The head has a CRC of its own, so that a reader can trust the length before it reads the body.
//! The number of the synced record proves that all records up to there were once whole: if one of
//! them cannot be read, it was damaged later.

use std::io;

use urlseen_filter::Generation;
use urlseen_filter::id::RandomId;
use urlseen_filter::limit::Counted;
use urlseen_filter::{Lifetime, Lifetimes};
use urlseen_fingerprint::Fingerprint;

use super::encoding::{Fields, agree, checked, push_crc, push_position};
use crate::head::{Head, Position};

/// Bytes of a record before its fingerprints.
pub(super) const HEAD: usize = 61;

/// Tag of a fingerprint of plain text.
pub(super) const TEXT: u8 = 255;

/// Kinds of records. The kind decides when a record counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// Counts if Redis committed the batch. Its body has the changes of the counts of limits.
    Batch = 1,
    /// Always counts: its fingerprints are seen.
    Adds = 2,
    /// Always counts: its fingerprints pass once more.
    Forgets = 3,
    /// Always counts: its generation begins.
    Generation = 4,
}

impl RecordKind {
    /// Returns the change that a record of this kind makes to its fingerprints. `None` if it has no
    /// fingerprints.
    pub(super) fn change(self) -> Option<Change> {
        match self {
            Self::Batch | Self::Adds => Some(Change::Add),
            Self::Forgets => Some(Change::Forget),
            Self::Generation => None,
        }
    }
}

/// Change of a fingerprint in the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The fingerprint is seen from now on.
    Add = 1,
    /// The fingerprint passes once more.
    Forget = 2,
}

/// Head of a record, before its fingerprints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub(super) kind: RecordKind,
    pub(super) position: Position,
    pub(super) predecessor: RandomId,
    /// Number of a record that was on the disk, with all records before it, when this one was
    /// written.
    pub(super) synced: u64,
    /// Generation of the fingerprints; [`Generation::FOREVER`] if they do not expire.
    pub(super) generation: Generation,
    pub(super) count: u32,
    pub(super) length: u32,
    pub(super) body_crc: u32,
}

impl RecordHead {
    /// Reads a head, and checks its CRC. The error is a description of the damage.
    pub(super) fn decode(bytes: &[u8; HEAD]) -> Result<Self, &'static str> {
        let damaged = "the record's head is damaged";
        let mut fields = Fields(checked(bytes).ok_or(damaged)?);
        let kind = match fields.u8() {
            1 => RecordKind::Batch,
            2 => RecordKind::Adds,
            3 => RecordKind::Forgets,
            4 => RecordKind::Generation,
            _ => return Err("the record is of an unknown kind: run the version that wrote it"),
        };
        Ok(Self {
            kind,
            position: fields.position().ok_or(damaged)?,
            predecessor: RandomId::new(fields.u64()),
            synced: fields.u64(),
            generation: Generation::new(fields.u32()),
            count: fields.u32(),
            length: fields.u32(),
            body_crc: fields.u32(),
        })
    }

    /// Returns true if the record counts for a filter at batch `seq`.
    pub(super) fn counts_at(&self, seq: u64) -> bool {
        self.kind != RecordKind::Batch || self.position.head.seq <= seq
    }

    /// Returns true if this record directly follows `before`.
    pub(super) fn follows(&self, before: Position) -> bool {
        let is_batch = self.kind == RecordKind::Batch;
        let seq = before.head.seq + u64::from(is_batch);
        let commit_id_fits = is_batch || self.position.head.commit_id == before.head.commit_id;
        self.position.number == before.number + 1
            && self.position.head.seq == seq
            && self.predecessor == before.head.commit_id
            && commit_id_fits
    }

    /// Returns true if `body` has the CRC in this head.
    pub(super) fn matches(&self, body: &[u8]) -> bool {
        agree(crc32c::crc32c(body), self.body_crc)
    }
}

/// Bytes of a record after its head.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordContent<'a> {
    /// Number of the last record that is known to be on the disk.
    pub(super) synced: u64,
    pub(super) fingerprints: &'a [Fingerprint],
    /// Generation of the fingerprints, or [`Generation::FOREVER`].
    pub(super) generation: Generation,
    /// Lifetimes of the fingerprints.
    pub(super) lifetimes: &'a Lifetimes,
    /// Changes of counts, if the kind of the record has them.
    pub(super) counted: &'a [Counted],
}

/// Content of a record, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecordBody {
    pub(super) fingerprints: Vec<Fingerprint>,
    /// Lifetimes of the fingerprints.
    pub(super) lifetimes: Lifetimes,
    /// Changes of the counts of limits.
    pub(super) counted: Vec<Counted>,
}

/// Appends a record to `bytes`.
///
/// # Errors
/// If the fingerprints take more than 4 GiB, the limit of a record.
pub(super) fn encode(
    kind: RecordKind,
    before: Head,
    position: Position,
    RecordContent { synced, fingerprints, generation, lifetimes, counted }: RecordContent<'_>,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    let start = bytes.len();
    bytes.reserve(HEAD + fingerprints.len() * (1 + 20));
    bytes.resize(start + HEAD, 0);
    for fingerprint in fingerprints {
        bytes.push(width(fingerprint));
        // The compiler knows these lengths, so it copies the bytes without a call.
        match fingerprint {
            Fingerprint::Raw16(raw) => bytes.extend(raw),
            Fingerprint::Raw20(raw) => bytes.extend(raw),
            Fingerprint::Raw32(raw) => bytes.extend(raw),
            Fingerprint::Text(text) => {
                // A longer text makes the record too long, which is refused below.
                let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
                bytes.extend(length.to_le_bytes());
                bytes.extend(text.iter());
            }
        }
    }
    let too_long = |_| io::Error::other("too many fingerprints for one record of the log");
    if kind == RecordKind::Batch {
        bytes.extend(u32::try_from(counted.len()).map_err(too_long)?.to_le_bytes());
        for counted in counted {
            counted.encode(bytes);
        }
    }
    if generation != Generation::FOREVER && !lifetimes.are_whole() {
        bytes.extend((0..fingerprints.len()).map(|index| lifetimes.of(index).byte()));
    }
    let body = &bytes[start + HEAD..];
    let length = u32::try_from(body.len()).map_err(too_long)?;
    // Each fingerprint takes at least a byte, so their number is not above `length`.
    let count = u32::try_from(fingerprints.len()).map_err(too_long)?;
    let mut head = Vec::with_capacity(HEAD);
    head.push(kind as u8);
    push_position(&mut head, position);
    head.extend(before.commit_id.get().to_le_bytes());
    head.extend(synced.to_le_bytes());
    for field in [generation.get(), count, length, crc32c::crc32c(body)] {
        head.extend(field.to_le_bytes());
    }
    push_crc(&mut head, 0);
    bytes[start..start + HEAD].copy_from_slice(&head);
    Ok(())
}

/// Returns the bytes that a fingerprint takes in a record.
pub(super) fn encoded_len(fingerprint: &Fingerprint) -> usize {
    let length = if matches!(fingerprint, Fingerprint::Text(_)) { 4 } else { 0 };
    1 + length + fingerprint.as_bytes().len()
}

/// Number of bytes of a fingerprint, or [`TEXT`].
fn width(fingerprint: &Fingerprint) -> u8 {
    match fingerprint {
        Fingerprint::Raw16(_) => 16,
        Fingerprint::Raw20(_) => 20,
        Fingerprint::Raw32(_) => 32,
        Fingerprint::Text(_) => TEXT,
    }
}

/// Reads the body of a record. Returns `None` unless it has exactly as many readable fingerprints
/// as the head says.
pub(super) fn decode(head: &RecordHead, mut body: &[u8]) -> Option<RecordBody> {
    // Each fingerprint takes at least a byte.
    let mut fingerprints = Vec::with_capacity(body.len().min(head.count as usize));
    for _ in 0..head.count {
        fingerprints.push(take(*body.split_off_first()?, &mut body)?);
    }
    let mut counted = Vec::new();
    if head.kind == RecordKind::Batch {
        let (count, rest) = body.split_first_chunk()?;
        body = rest;
        let length = (u32::from_le_bytes(*count) as usize).checked_mul(Counted::BYTES)?;
        counted = Counted::decode_all(body.split_off(..length)?)?;
    }
    if !body.is_empty() && body.len() != head.count as usize {
        return None;
    }
    let mut lifetimes = Lifetimes::default();
    for (index, &byte) in body.iter().enumerate() {
        lifetimes.push(index, Lifetime::from_byte(byte)?);
    }
    Some(RecordBody { fingerprints, lifetimes, counted })
}

/// Removes a fingerprint of this width from the front of a body, and returns it.
fn take(width: u8, body: &mut &[u8]) -> Option<Fingerprint> {
    if width != TEXT {
        return Fingerprint::from_raw(body.split_off(..width.into())?);
    }
    let (length, rest) = body.split_first_chunk()?;
    *body = rest;
    let text = body.split_off(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    Some(Fingerprint::Text(text.into()))
}
