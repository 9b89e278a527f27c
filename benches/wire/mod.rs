//! Client of the Redis protocol for benchmarks. The client must not be the bottleneck: it collects
//! commands in one buffer, copies no reply, and parses only the requested part of a reply.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// Connection to the server. `bytes[begin..end]` is read and not parsed yet.
pub struct Wire {
    stream: UnixStream,
    /// Commands that the next `send` sends.
    pub out: Vec<u8>,
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Wire {
    /// Connects to the server's Unix socket.
    pub fn connect(socket: &str) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        Self { stream, out: Vec::new(), bytes: vec![0; 1 << 20], begin: 0, end: 0 }
    }

    /// Writes a whole command.
    pub fn ask(&mut self, words: &[&str]) {
        self.begin_command(words.len(), words);
    }

    /// Writes the first `words` of a command that has `count` words.
    pub fn begin_command(&mut self, count: usize, words: &[&str]) {
        write!(self.out, "*{count}\r\n").unwrap();
        for word in words {
            write!(self.out, "${}\r\n{word}\r\n", word.len()).unwrap();
        }
    }

    /// Sends all written commands.
    pub fn send(&mut self) {
        self.stream.write_all(&self.out).unwrap();
        self.out.clear();
    }

    /// Reads the next reply, a number.
    pub fn number(&mut self) -> usize {
        digits(self.line(b':'))
    }

    /// Reads the next reply, which must be OK.
    pub fn ok(&mut self) {
        assert_eq!(self.line(b'+'), b"OK");
    }

    /// Reads the length of the next reply, an array. The caller reads each element as a reply.
    pub fn array(&mut self) -> usize {
        digits(self.line(b'*'))
    }

    /// Reads the next reply, a string. Returns it, and its bytes in the form of the protocol.
    pub fn string(&mut self) -> (&[u8], &[u8]) {
        let header = self.line(b'$');
        let (length, header) = (digits(header), header.len() + 3);
        while self.end < self.begin + length + 2 {
            self.read();
        }
        let begin = self.begin;
        self.begin += length + 2;
        (&self.bytes[begin..begin + length], &self.bytes[begin - header..self.begin])
    }

    /// Returns the next line without its first byte, which must be `sign`.
    fn line(&mut self, sign: u8) -> &[u8] {
        let mut looked = 0;
        loop {
            let bytes = &self.bytes[self.begin + looked..self.end];
            // Most lines are short. A search that is optimised for long lines takes longer here.
            if let Some(found) = bytes.iter().position(|byte| *byte == b'\n') {
                let (first, last) = (self.begin, self.begin + looked + found - 1);
                self.begin = last + 2;
                let line = &self.bytes[first..last];
                assert_eq!(line[0], sign, "{}", String::from_utf8_lossy(line));
                return &line[1..];
            }
            looked = self.end - self.begin;
            self.read();
        }
    }

    /// Reads the bytes that have arrived, at least one.
    fn read(&mut self) {
        if self.end == self.bytes.len() {
            // The previous line stays in the buffer, because `string` returns this line together
            // with the string.
            let kept = self.begin.saturating_sub(KEPT);
            self.bytes.copy_within(kept..self.end, 0);
            (self.begin, self.end) = (self.begin - kept, self.end - kept);
            if self.end > self.bytes.len() / 2 {
                self.bytes.resize(2 * self.bytes.len(), 0);
            }
        }
        let read = self.stream.read(&mut self.bytes[self.end..]).unwrap();
        assert!(read > 0, "the server closed the connection");
        self.end += read;
    }
}

/// Number of bytes that are kept: more than the header of a string has.
const KEPT: usize = 32;

fn digits(text: &[u8]) -> usize {
    text.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}
