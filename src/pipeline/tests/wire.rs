//! The part of the Redis protocol that the simulated server supports.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, DuplexStream};

/// Word of a command, or item of a list. Its clones share the bytes.
pub(super) type Word = Bytes;

/// Command and its arguments.
pub(super) type Words = Vec<Word>;

/// Bytes of commands that have arrived.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: BytesMut,
}

impl Inbox {
    /// Waits for the next command. An error means that the client has disconnected.
    pub(super) async fn next(&mut self, stream: &mut DuplexStream) -> io::Result<Words> {
        loop {
            if let Some(words) = self.ready() {
                return Ok(words);
            }
            self.receive(stream).await?;
        }
    }

    /// Waits for more bytes of commands.
    pub(super) async fn receive(&mut self, stream: &mut DuplexStream) -> io::Result<()> {
        match stream.read_buf(&mut self.bytes).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Removes and returns the next command, if all of it has arrived.
    pub(super) fn ready(&mut self) -> Option<Words> {
        let mut at = 0;
        let words = (0..self.length(&mut at)?).map(|_| {
            let length = self.length(&mut at)?;
            let start = at;
            at += length + 2;
            Some(start..start + length)
        });
        let words = words.collect::<Option<Vec<_>>>()?;
        if at > self.bytes.len() {
            return None;
        }
        let command = self.bytes.split_to(at).freeze();
        Some(words.into_iter().map(|word| command.slice(word)).collect())
    }

    /// Reads a length, `*N` or `$N`.
    fn length(&self, at: &mut usize) -> Option<usize> {
        let rest = self.bytes.get(*at..)?;
        let end = memchr::memchr(b'\n', rest)?;
        let number = std::str::from_utf8(&rest[1..end - 1]).expect("a length");
        *at += end + 1;
        Some(number.parse().expect("a length"))
    }
}

pub(super) fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

pub(super) fn integer(number: usize) -> Vec<u8> {
    format!(":{number}\r\n").into_bytes()
}

pub(super) fn error(text: &str) -> Vec<u8> {
    format!("-{text}\r\n").into_bytes()
}

pub(super) fn array(elements: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let (mut count, mut bytes) = (0, Vec::new());
    for element in elements {
        count += 1;
        bytes.extend(element);
    }
    [format!("*{count}\r\n").into_bytes(), bytes].concat()
}
