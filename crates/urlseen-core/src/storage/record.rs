//! A record of the log.
//!
//! ```text
//! at  bytes
//!  0      1  kind: 1 batch, counts if Redis committed it; 2 adds, 3 forgets, 4 generation: count
//!            always
//!  1      8  number: one more than that of the record before
//!  9      8  seq   ┐ batch: its own
//! 17      8  commit_id   ┘ others: those of the last batch logged before
//! 25      8  commit_id of the last batch logged before
//! 33      4  count of fingerprints
//! 37      4  length of what follows the head
//! 41      4  CRC-32C of what follows the head
//! 45      4  CRC-32C of bytes 0 to 44
//! 49         fingerprints, one after the other: a byte with the length (16, 20 or 32), then the
//!            raw bytes. For text: the byte 255, the length (4 bytes), then the text
//!            If the fingerprints of the filter expire, the number of their generation (4 bytes).
//!            If some have a lifetime of their own, then a byte for each fingerprint: the number of
//!            generations after which it passes again (1 to 5), or 255 for never
//! ```
//!
//! A record of the kind *generation* has no fingerprints: its generation begins.
//!
//! The head has a CRC of its own, so that a reader can trust the length before it reads the body.
//! The CRC also distinguishes an unfinished record from a damaged record.

use std::io;

use super::encoding::{Fields, checked, push_crc, push_position};
use crate::filter::generation::Generation;
use crate::filter::id::RandomId;
use crate::filter::lifetime::{Lifetime, Lifetimes};
use crate::fingerprint::Fingerprint;
use crate::storage::head::{Head, Position};

/// Bytes of a record before its fingerprints.
pub(super) const HEAD: usize = 49;

/// Tag of a fingerprint of plain text.
pub(super) const TEXT: u8 = 255;

/// Kinds of records. The kind decides when a record counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Counts if Redis committed the batch.
    Batch = 1,
    /// Always counts: its fingerprints are seen.
    Adds = 2,
    /// Always counts: its fingerprints pass once more.
    Forgets = 3,
    /// Always counts: its generation begins.
    Generation = 4,
}

impl Kind {
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
    pub(super) kind: Kind,
    pub(super) position: Position,
    pub(super) predecessor: RandomId,
    pub(super) count: u32,
    pub(super) length: u32,
    body_crc: u32,
}

/// Reason why bytes are not the head of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoHead {
    /// The CRC does not match: the bytes were damaged.
    Damaged,
    /// A later version of urlseen wrote a record of this kind.
    UnknownKind(u8),
}

impl RecordHead {
    /// Reads a head, and checks its CRC.
    pub(super) fn decode(bytes: &[u8; HEAD]) -> Result<Self, NoHead> {
        let mut fields = Fields(checked(bytes).ok_or(NoHead::Damaged)?);
        let kind = match fields.u8() {
            1 => Kind::Batch,
            2 => Kind::Adds,
            3 => Kind::Forgets,
            4 => Kind::Generation,
            kind => return Err(NoHead::UnknownKind(kind)),
        };
        Ok(Self {
            kind,
            position: fields.position(),
            predecessor: RandomId::new(fields.u64()),
            count: fields.u32(),
            length: fields.u32(),
            body_crc: fields.u32(),
        })
    }

    /// Returns true if the record counts for a filter at batch `seq`.
    pub(super) fn counts_at(&self, seq: u64) -> bool {
        self.kind != Kind::Batch || self.position.head.seq <= seq
    }

    /// Returns true if this record directly follows `before`.
    pub(super) fn follows(&self, before: Position) -> bool {
        let seq = match self.kind {
            Kind::Batch => before.head.seq.wrapping_add(1),
            Kind::Adds | Kind::Forgets | Kind::Generation => before.head.seq,
        };
        let commit_id_fits =
            self.kind == Kind::Batch || self.position.head.commit_id == before.head.commit_id;
        self.position.number == before.number.wrapping_add(1)
            && self.position.head.seq == seq
            && self.predecessor == before.head.commit_id
            && commit_id_fits
    }

    /// Returns true if `body` has the CRC in this head.
    pub(super) fn matches(&self, body: &[u8]) -> bool {
        crc32c::crc32c(body) == self.body_crc
    }
}

/// What a record has after its head.
#[derive(Debug, Clone, Copy)]
pub(super) struct Content<'a> {
    pub(super) fingerprints: &'a [Fingerprint],
    /// Generation of the fingerprints, or [`Generation::FOREVER`].
    pub(super) generation: Generation,
    /// Lifetimes of the fingerprints.
    pub(super) lifetimes: &'a Lifetimes,
}

/// Appends a record to `bytes`.
///
/// # Errors
/// If the fingerprints take more than 4 GiB, the limit of a record.
pub(super) fn encode(
    kind: Kind,
    before: Head,
    position: Position,
    Content { fingerprints, generation, lifetimes }: Content<'_>,
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
            Fingerprint::Text(_) => push_body(bytes, fingerprint),
        }
    }
    if generation != Generation::FOREVER {
        bytes.extend(generation.get().to_le_bytes());
        if !lifetimes.are_whole() {
            bytes.extend((0..fingerprints.len()).map(|index| lifetimes.of(index).byte()));
        }
    }
    let body = &bytes[start + HEAD..];
    let too_long = |_| io::Error::other("too many fingerprints for one record of the log");
    let length = u32::try_from(body.len()).map_err(too_long)?;
    // Each fingerprint takes at least a byte, so their number is not above `length`.
    let count = u32::try_from(fingerprints.len()).map_err(too_long)?;
    let mut head = Vec::with_capacity(HEAD);
    head.push(kind as u8);
    push_position(&mut head, position);
    head.extend(before.commit_id.get().to_le_bytes());
    for field in [count, length, crc32c::crc32c(body)] {
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

/// Appends the bytes of a fingerprint. The length of a text comes before its bytes.
pub(super) fn push_body(bytes: &mut Vec<u8>, fingerprint: &Fingerprint) {
    if let Fingerprint::Text(text) = fingerprint {
        // A longer text makes the record too long, and `encode` refuses it.
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        bytes.extend(length.to_le_bytes());
    }
    bytes.extend(fingerprint.as_bytes());
}

/// Number of bytes of a fingerprint, or [`TEXT`].
pub(super) fn width(fingerprint: &Fingerprint) -> u8 {
    match fingerprint {
        Fingerprint::Raw16(_) => 16,
        Fingerprint::Raw20(_) => 20,
        Fingerprint::Raw32(_) => 32,
        Fingerprint::Text(_) => TEXT,
    }
}

/// Calls `visit` with each fingerprint of a body, and returns their generation and lifetimes.
/// Returns `None` unless the body has exactly `count` readable fingerprints.
pub(super) fn decode(
    mut body: &[u8],
    count: u32,
    mut visit: impl FnMut(Fingerprint),
) -> Option<(Generation, Lifetimes)> {
    for _ in 0..count {
        visit(take(*body.split_off_first()?, &mut body)?);
    }
    if body.is_empty() {
        return Some((Generation::FOREVER, Lifetimes::default()));
    }
    let (generation, bytes) = body.split_first_chunk()?;
    if !bytes.is_empty() && bytes.len() != count as usize {
        return None;
    }
    let mut lifetimes = Lifetimes::default();
    for (index, &byte) in bytes.iter().enumerate() {
        lifetimes.push(index, Lifetime::from_byte(byte)?);
    }
    Some((Generation::new(u32::from_le_bytes(*generation)), lifetimes))
}

/// Removes a fingerprint of this width from the front of a body, and returns it.
pub(super) fn take(width: u8, body: &mut &[u8]) -> Option<Fingerprint> {
    if width != TEXT {
        return Fingerprint::from_raw(body.split_off(..width.into())?);
    }
    let (length, rest) = body.split_first_chunk()?;
    *body = rest;
    let text = body.split_off(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    Some(Fingerprint::Text(text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprints() -> Vec<Fingerprint> {
        vec![
            Fingerprint::Raw20([1; 20]),
            Fingerprint::Raw16([2; 16]),
            Fingerprint::Text(b""[..].into()),
            Fingerprint::Raw32([3; 32]),
            Fingerprint::Text(b"https://example.com/"[..].into()),
        ]
    }

    fn positions() -> (Position, Position) {
        let before = Position { number: 6, head: Head { seq: 3, commit_id: RandomId::new(33) } };
        (before, Position { number: 7, head: Head { seq: 4, commit_id: RandomId::new(44) } })
    }

    fn encoded() -> Vec<u8> {
        encoded_in(Generation::FOREVER, &Lifetimes::default())
    }

    fn encoded_in(generation: Generation, lifetimes: &Lifetimes) -> Vec<u8> {
        let (before, position) = positions();
        let mut bytes = Vec::new();
        let content = Content { fingerprints: &fingerprints(), generation, lifetimes };
        encode(Kind::Batch, before.head, position, content, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_record_is_read_back() {
        let bytes = encoded();
        let (head, body) = bytes.split_first_chunk().unwrap();
        let head = RecordHead::decode(head).unwrap();
        let (before, position) = positions();
        assert_eq!((head.kind, head.position, head.count), (Kind::Batch, position, 5));
        assert_eq!(head.length as usize, body.len());
        assert_eq!(body.len(), fingerprints().iter().map(encoded_len).sum::<usize>());
        assert!(head.follows(before) && head.matches(body));
        let mut read = Vec::new();
        let dated = decode(body, head.count, |fingerprint| read.push(fingerprint));
        let forever = Some((Generation::FOREVER, Lifetimes::default()));
        assert_eq!((read, dated), (fingerprints(), forever));
    }

    #[test]
    fn a_record_has_the_generation_of_its_fingerprints() {
        let generation = Generation::new(4711);
        let mut lifetimes = Lifetimes::default();
        for _ in 0..2 {
            let bytes = encoded_in(generation, &lifetimes);
            let (head, body) = bytes.split_first_chunk().unwrap();
            let head = RecordHead::decode(head).unwrap();
            assert_eq!(decode(body, head.count, drop), Some((generation, lifetimes.clone())));
            assert_eq!(decode(&body[..body.len() - 1], head.count, drop), None);
            lifetimes.push(1, Lifetime::FOREVER);
        }
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_noticed() {
        let good = encoded();
        for bit in 0..8 * good.len() {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (head, body) = bytes.split_first_chunk().unwrap();
            match RecordHead::decode(head) {
                Ok(head) => assert!(bit >= 8 * HEAD && !head.matches(body), "bit {bit}"),
                Err(error) => assert!(bit < 8 * HEAD && error == NoHead::Damaged, "bit {bit}"),
            }
        }
        assert_eq!(RecordHead::decode(&[0; HEAD]), Err(NoHead::Damaged), "a hole in the file");
    }

    #[test]
    fn a_record_follows_only_the_one_before() {
        let (before, position) = positions();
        let elsewhere = RandomId::new(9);
        for kind in [Kind::Batch, Kind::Adds, Kind::Forgets, Kind::Generation] {
            let own = if kind == Kind::Batch { position.head } else { before.head };
            let head = RecordHead {
                kind,
                position: Position { number: 7, head: own },
                predecessor: before.head.commit_id,
                count: 0,
                length: 0,
                body_crc: 0,
            };
            assert!(head.follows(before));
            let with_head = |head| Position { head, ..before };
            for other in [
                Position { number: 5, ..before },
                Position { number: 7, ..before },
                with_head(Head { seq: 2, ..before.head }),
                with_head(Head { seq: 4, ..before.head }),
                with_head(Head { commit_id: elsewhere, ..before.head }),
            ] {
                assert!(!head.follows(other), "{kind:?} behind {other}");
            }
        }
        let mut renamed = RecordHead {
            kind: Kind::Adds,
            position: Position { number: 7, head: before.head },
            predecessor: before.head.commit_id,
            count: 0,
            length: 0,
            body_crc: 0,
        };
        renamed.position.head.commit_id = elsewhere;
        assert!(!renamed.follows(before), "adds move no head");
    }

    #[test]
    fn a_body_with_another_count_of_fingerprints_is_refused() {
        let bytes = encoded();
        let body = &bytes[HEAD..];
        assert_eq!(decode(body, 4, drop), None);
        assert_eq!(decode(body, 6, drop), None);
        assert_eq!(decode(&body[..body.len() - 1], 5, drop), None);
        assert_eq!(decode(&[17], 1, drop), None);
    }
}
