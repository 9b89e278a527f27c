//! Numbers and CRCs in files. Numbers are little endian, one after the other.

#[cfg(any(test, feature = "simulation"))]
use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::head::{Head, Position};
use urlseen_filter::id::RandomId;

/// Format of the folder: of its header, its snapshots and its log.
pub(crate) const FORMAT: u32 = 7;

/// Bytes of an encoded [`Position`].
pub(super) const POSITION: usize = 24;

/// Reads numbers from the front of a slice. The caller knows that the slice has enough bytes.
#[derive(Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    pub(super) fn array<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().expect("as many bytes as fields");
        self.0 = rest;
        *first
    }

    pub(super) fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// Reads a position: 8 bytes number, 8 seq, 8 `commit_id`. Returns `None` for numbers that no
    /// log reaches, because the next ones would not fit.
    pub(super) fn position(&mut self) -> Option<Position> {
        let (number, seq) = (self.u64(), self.u64());
        let head = Head { seq, commit_id: RandomId::new(self.u64()) };
        (number.max(seq) < 1 << 63).then_some(Position { number, head })
    }
}

/// Appends a position as [`Fields::position`] reads it.
pub(super) fn push_position(bytes: &mut Vec<u8>, position: Position) {
    let Position { number, head: Head { seq, commit_id } } = position;
    for field in [number, seq, commit_id.get()] {
        bytes.extend(field.to_le_bytes());
    }
}

/// Appends the CRC-32C of everything from `start` on.
pub(super) fn push_crc(bytes: &mut Vec<u8>, start: usize) {
    let crc = crc32c::crc32c(&bytes[start..]);
    bytes.extend(crc.to_le_bytes());
}

/// Returns the bytes before the CRC-32C at the end, if the CRC is right.
pub(super) fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (content, crc) = bytes.split_last_chunk()?;
    agree(crc32c::crc32c(content), u32::from_le_bytes(*crc)).then_some(content)
}

/// Returns true if the computed CRC is the one in a file.
pub(super) fn agree(computed: u32, found: u32) -> bool {
    #[cfg(any(test, feature = "simulation"))]
    if ACCEPTS_ANY_CRC.get() {
        return true;
    }
    computed == found
}

#[cfg(any(test, feature = "simulation"))]
thread_local! {
    /// True while a test reads damaged data as if its CRC were right.
    pub(super) static ACCEPTS_ANY_CRC: Cell<bool> = const { Cell::new(false) };
}

/// Returns the milliseconds since 1970, by the system's clock.
pub(super) fn unix_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
