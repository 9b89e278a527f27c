//! The pipe's limit: movers that filter nothing. Each has one connection with several batches in
//! flight, waits for the source to be filled as the daemon does, and ends once it is empty:
//!
//! ```text
//! mover plain SOCKET SOURCE SINK BATCH IN_FLIGHT PUSHED
//! mover script|lmove SOCKET SOURCE SINK BATCH IN_FLIGHT
//! ```
//!
//! `plain` reads batches off the list, pushes the first `PUSHED` of a hundred items of each on and
//! trims the batch off, as plain commands. It has no crash safety, and reads of a reply only what
//! it takes to find its end: what came is what goes, byte for byte. `script` has a script move
//! whole batches inside of Redis, `lmove` asks for one move an item.

// What cannot be measured ends it, as in a test.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;

/// Moves as many items as it is told, and says how many.
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
        _ => panic!("HOW is plain, with what it pushes, script or lmove"),
    }
}

struct Mover<'a> {
    wire: Wire,
    source: &'a str,
    sink: &'a str,
    /// How many items a batch has.
    batch: usize,
    /// How many batches are on their way.
    in_flight: usize,
    /// What is about to be sent.
    out: Vec<u8>,
}

impl Mover<'_> {
    /// How many items the source holds, once it holds any.
    fn wait_for_items(&mut self) -> usize {
        // Moves an item to where it is: it changes nothing, and wakes at once.
        self.ask(&["BLMOVE", self.source, self.source, "LEFT", "LEFT", "0"]);
        self.ask(&["LLEN", self.source]);
        self.send();
        self.wire.bulk();
        self.wire.number(b':')
    }

    /// Moves that many items as plain commands, `percent` of them to the sink.
    ///
    /// Windows are read ahead: once batch `k` is trimmed, the next one to ask for begins as many
    /// batches behind the list's head as are on their way.
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

    /// Asks for the batch that begins so many batches behind the head.
    fn ask_for_window(&mut self, ahead: usize) {
        let (first, last) = (ahead * self.batch, (ahead + 1) * self.batch - 1);
        self.ask(&["LRANGE", self.source, &first.to_string(), &last.to_string()]);
    }

    /// Pushes on what the next reply holds, and trims it off.
    fn push_and_trim(&mut self, percent: usize) {
        let (pushed, elements) = self.wire.array(|items| (items * percent).div_ceil(100));
        // An element of a reply is written as an argument of a command is.
        command(&mut self.out, pushed + 2, &["RPUSH", self.sink]);
        self.out.extend_from_slice(&self.wire.bytes[elements]);
        self.ask(&["LTRIM", self.source, &self.batch.to_string(), "-1"]);
    }

    /// The replies to a push and a trim.
    fn take_note(&mut self) {
        self.wire.number(b':');
        assert_eq!(self.wire.line(b'+'), b"OK");
    }

    /// Moves that many items by a script.
    fn have_moved(&mut self, items: usize) {
        let batch = self.batch.to_string();
        self.in_turn(
            items,
            |mover, _| mover.ask(&["EVAL", SCRIPT, "2", mover.source, mover.sink, &batch]),
            |mover, moved| assert_eq!(mover.wire.number(b':'), moved),
        );
    }

    /// Moves that many items, a command each.
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

    /// Asks for batches of so many items, and takes the answers, as many behind as are in flight.
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

/// Writes the first `words` of a command that has so many.
fn command(out: &mut Vec<u8>, count: usize, words: &[&str]) {
    write!(out, "*{count}\r\n").unwrap();
    for word in words {
        write!(out, "${}\r\n{word}\r\n", word.len()).unwrap();
    }
}

/// What comes from the server: `bytes[begin..end]` is read off the socket and not looked at yet.
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

    /// The next line, without the sign that it must begin with.
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

    /// How many elements of the next array are wanted, by how many it has, and where they are.
    fn array(&mut self, wanted: impl Fn(usize) -> usize) -> (usize, Range<usize>) {
        // Room for the whole of it, in one piece.
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

    /// Where the element that begins at `at` ends.
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

    /// Reads what is there, at least a byte.
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
