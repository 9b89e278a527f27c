//! Mover: moves items between two lists in Redis, and filters nothing. Its speed is an upper limit
//! for the daemon. It has one connection with several batches in flight. It waits for items in the
//! source in the same way as the daemon, and ends when the source is empty:
//!
//! ```text
//! mover plain SOCKET SOURCE SINK BATCH IN_FLIGHT PUSHED
//! mover script|lmove SOCKET SOURCE SINK BATCH IN_FLIGHT
//! ```
//!
//! `plain` uses plain commands: it reads a batch of the list, pushes the first `PUSHED` of each
//! hundred items, and trims the batch. It has no crash safety. It does not parse items: it only
//! finds the end of a reply, and sends the items unchanged. `script` moves whole batches with a
//! script in Redis. `lmove` sends one `LMOVE` for each item.

// A panic ends the program, as in a test.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;

/// Moves a batch of items, and returns their number.
const SCRIPT: &str = "
    local items = redis.call('LRANGE', KEYS[1], 0, ARGV[1] - 1)
    redis.call('RPUSH', KEYS[2], unpack(items))
    redis.call('LTRIM', KEYS[1], ARGV[1], -1)
    return #items";

fn main() {
    // `--bench` comes from cargo.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [how, socket, source, sink, batch, in_flight, rest @ ..] = &words[..] else {
        panic!("mover HOW SOCKET SOURCE SINK BATCH IN_FLIGHT …");
    };
    let number = |word: &str| word.parse::<usize>().unwrap();
    let mut mover = Mover {
        wire: Wire::new(UnixStream::connect(socket).unwrap()),
        source,
        sink,
        batch: number(batch),
        in_flight: number(in_flight),
        out: Vec::new(),
    };
    let waiting = mover.wait_for_items();
    match (how.as_str(), rest) {
        ("plain", [pushed]) => mover.move_on(waiting, number(pushed)),
        ("script", []) => mover.have_moved(waiting),
        ("lmove", []) => mover.move_one_by_one(waiting),
        _ => panic!("HOW is plain (with PUSHED after it), script or lmove"),
    }
}

struct Mover<'a> {
    wire: Wire,
    source: &'a str,
    sink: &'a str,
    /// Number of items in a batch.
    batch: usize,
    /// Number of batches that are in flight.
    in_flight: usize,
    /// Commands that the next `send` sends.
    out: Vec<u8>,
}

impl Mover<'_> {
    /// Waits for the first item, and returns the number of items in the source.
    fn wait_for_items(&mut self) -> usize {
        // This command moves an item to its own place. It changes nothing, and returns as soon as
        // there is an item.
        self.ask(&["BLMOVE", self.source, self.source, "LEFT", "LEFT", "0"]);
        self.ask(&["LLEN", self.source]);
        self.send();
        self.wire.bulk();
        self.wire.number(b':')
    }

    /// Moves this number of items with plain commands. `percent` % of them go to the sink.
    ///
    /// The mover reads windows (ranges of items) ahead. The batches in flight are at the start of
    /// the list, so the next window starts after them.
    fn move_on(&mut self, items: usize, percent: usize) {
        let batches = items.div_ceil(self.batch);
        for ahead in 0..self.in_flight.min(batches) {
            self.ask_for_window(ahead);
        }
        self.send();
        for batch in 0..batches {
            if batch >= self.in_flight {
                self.take_note();
            }
            self.push_and_trim(percent);
            if batch + self.in_flight < batches {
                self.ask_for_window(self.in_flight - 1);
            }
            self.send();
        }
        for _ in 0..self.in_flight.min(batches) {
            self.take_note();
        }
    }

    /// Requests a batch from the source. In the list, `ahead` other batches come before it.
    fn ask_for_window(&mut self, ahead: usize) {
        let (first, last) = (ahead * self.batch, (ahead + 1) * self.batch - 1);
        self.ask(&["LRANGE", self.source, &first.to_string(), &last.to_string()]);
    }

    /// Pushes `percent` % of the items in the next reply, and trims the whole batch off the source.
    fn push_and_trim(&mut self, percent: usize) {
        let (pushed, elements) = self.wire.array(|items| (items * percent).div_ceil(100));
        // In the protocol, elements of replies and arguments of commands have the same form.
        command(&mut self.out, pushed + 2, &["RPUSH", self.sink]);
        self.out.extend_from_slice(&self.wire.bytes[elements]);
        self.ask(&["LTRIM", self.source, &self.batch.to_string(), "-1"]);
    }

    /// Reads the replies to a push and a trim.
    fn take_note(&mut self) {
        self.wire.number(b':');
        assert_eq!(self.wire.line(b'+'), b"OK");
    }

    /// Moves this number of items with a script.
    fn have_moved(&mut self, items: usize) {
        let batch = self.batch.to_string();
        self.in_turn(
            items,
            |mover, _| mover.ask(&["EVAL", SCRIPT, "2", mover.source, mover.sink, &batch]),
            |mover, moved| assert_eq!(mover.wire.number(b':'), moved),
        );
    }

    /// Moves this number of items, with a command for each.
    fn move_one_by_one(&mut self, items: usize) {
        self.in_turn(
            items,
            |mover, items| {
                for _ in 0..items {
                    mover.ask(&["LMOVE", mover.source, mover.sink, "LEFT", "RIGHT"]);
                }
            },
            |mover, items| (0..items).for_each(|_| mover.wire.bulk()),
        );
    }

    /// Sends the commands for all items, in batches. `ask` writes the commands of a batch, and
    /// `answered` reads their replies. At most `in_flight` batches wait for replies.
    fn in_turn(
        &mut self,
        items: usize,
        mut ask: impl FnMut(&mut Self, usize),
        mut answered: impl FnMut(&mut Self, usize),
    ) {
        let batches = items.div_ceil(self.batch);
        let whole = self.batch;
        let size = |batch: usize| (items - batch * whole).min(whole);
        for batch in 0..batches + self.in_flight {
            if let Some(behind) = batch.checked_sub(self.in_flight) {
                answered(self, size(behind));
            }
            if batch < batches {
                ask(self, size(batch));
                self.send();
            }
        }
    }

    fn ask(&mut self, words: &[&str]) {
        command(&mut self.out, words.len(), words);
    }

    fn send(&mut self) {
        self.wire.stream.write_all(&self.out).unwrap();
        self.out.clear();
    }
}

/// Writes the first `words` of a command that has `count` words.
fn command(out: &mut Vec<u8>, count: usize, words: &[&str]) {
    write!(out, "*{count}\r\n").unwrap();
    for word in words {
        write!(out, "${}\r\n{word}\r\n", word.len()).unwrap();
    }
}

/// Connection to the server. `bytes[begin..end]` is read and not parsed yet.
struct Wire {
    stream: UnixStream,
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Wire {
    fn new(stream: UnixStream) -> Self {
        Self { stream, bytes: vec![0; 1 << 20], begin: 0, end: 0 }
    }

    /// Returns the next line without its first byte, which must be `sign`.
    fn line(&mut self, sign: u8) -> &[u8] {
        let mut at = self.begin;
        loop {
            match memchr::memchr(b'\n', &self.bytes[at..self.end]) {
                Some(found) => {
                    let line = self.begin..at + found - 1;
                    self.begin = at + found + 1;
                    let line = &self.bytes[line];
                    assert_eq!(line[0], sign, "{}", String::from_utf8_lossy(line));
                    return &line[1..];
                }
                None => at = self.end,
            }
            self.read();
        }
    }

    fn number(&mut self, sign: u8) -> usize {
        digits(self.line(sign))
    }

    fn bulk(&mut self) {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        self.begin = self.skip(self.begin);
    }

    /// Reads an array. `wanted` gets the length of the array, and returns how many of the first
    /// elements to take. The result is this number, and the range of these elements in `bytes`.
    fn array(&mut self, wanted: impl Fn(usize) -> usize) -> (usize, Range<usize>) {
        // Makes room for the whole array in one piece.
        self.bytes.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        let items = self.number(b'*');
        let (wanted, begin) = (wanted(items), self.begin);
        let mut wanted_end = begin;
        for item in 0..items {
            self.begin = self.skip(self.begin);
            if item + 1 == wanted {
                wanted_end = self.begin;
            }
        }
        (wanted, begin..wanted_end)
    }

    /// Returns the end of the element that starts at `at`.
    fn skip(&mut self, at: usize) -> usize {
        let mut colon = at;
        loop {
            match self.bytes[colon..self.end].iter().position(|byte| *byte == b'\n') {
                Some(found) => {
                    let newline = colon + found;
                    assert_eq!(self.bytes[at], b'$');
                    let end = newline + 1 + digits(&self.bytes[at + 1..newline - 1]) + 2;
                    while self.end < end {
                        self.read();
                    }
                    return end;
                }
                None => colon = self.end,
            }
            self.read();
        }
    }

    /// Reads the bytes that have arrived, at least one.
    fn read(&mut self) {
        if self.end == self.bytes.len() {
            self.bytes.resize(2 * self.bytes.len(), 0);
        }
        let read = self.stream.read(&mut self.bytes[self.end..]).unwrap();
        assert!(read > 0, "the server closed the connection");
        self.end += read;
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}
