//! Stream of bytes from one thread to another, piece by piece.

use std::io::{self, Cursor, Read};

use crossbeam_channel::{Receiver, Sender, bounded};

/// Number of bytes that are passed on together.
const PIECE: u64 = 1 << 20;

/// Maximum number of pieces that wait to be read.
const WAITING: usize = 2;

/// Reading end of a stream, whose bytes come from another thread.
#[derive(Debug)]
pub(super) struct Pieces {
    pieces: Receiver<Vec<u8>>,
    current: Cursor<Vec<u8>>,
}

/// Writing end of [`Pieces`].
#[derive(Debug)]
pub(super) struct Feed(Sender<Vec<u8>>);

/// Returns both ends of a stream.
pub(super) fn pieces() -> (Feed, Pieces) {
    let (feed, pieces) = bounded(WAITING);
    (Feed(feed), Pieces { pieces, current: Cursor::default() })
}

impl Feed {
    /// Sends all bytes of `from`. Ends early, without an error, if the reading end was dropped.
    pub(super) fn all(self, from: &mut dyn Read) -> io::Result<()> {
        loop {
            let mut piece = Vec::new();
            from.take(PIECE).read_to_end(&mut piece)?;
            if piece.is_empty() || self.0.send(piece).is_err() {
                return Ok(());
            }
        }
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.current.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            match self.pieces.recv() {
                Ok(piece) => self.current = Cursor::new(piece),
                Err(_) => return Ok(0),
            }
        }
    }
}
