//! Moves the items of one list in Redis to another, as fast as a client can:
//!
//! ```text
//! mover SOCKET SOURCE SINK BATCH IN_FLIGHT push PERCENT          pushes the first of each batch
//! mover SOCKET SOURCE SINK BATCH IN_FLIGHT redisbloom FILTER N   pushes those that BF.MADD adds
//! ```
//!
//! `push` filters nothing, so no filter between two lists can be faster. `redisbloom` adds the
//! first N bytes of each item to a filter, or the whole item if N is 0. The program reads a batch
//! with `LRANGE`, pushes items of it, and removes the batch with `LTRIM`. It copies items as they
//! are, has several batches in flight, and loses items in a crash. At the end it prints, as JSON,
//! the numbers of all and of pushed items, and the seconds.

// A panic ends the program, as in a test.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// Number of bytes before a string that stay in the buffer: more than its header has.
const KEPT: usize = 32;

fn main() {
    // `--bench` comes from cargo.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [socket, source, sink, batch, in_flight, test @ ..] = &words[..] else {
        panic!("see the top of benches/mover.rs");
    };
    let test = match test {
        ["push", percent] => Test::Push(percent.parse().unwrap()),
        ["redisbloom", filter, bytes] => Test::RedisBloom(filter, bytes.parse().unwrap()),
        _ => panic!("push PERCENT, or redisbloom FILTER N"),
    };
    let batch = batch.parse().unwrap();
    let mut mover = Mover { wire: Wire::connect(socket), source, sink, batch, test };
    mover.wire.ask(&["LLEN", source]);
    mover.wire.send();
    let items = mover.wire.number(b':');
    let begun = Instant::now();
    let pushed = mover.move_items(items, in_flight.parse().unwrap());
    let seconds = begun.elapsed().as_secs_f64();
    println!("{}", serde_json::json!({ "items": items, "pushed": pushed, "seconds": seconds }));
}

/// Way to choose the items that are pushed.
enum Test<'a> {
    /// The first items of each batch, by their percentage.
    Push(usize),
    /// Key of a filter, and number of bytes of an item that are added to it.
    RedisBloom(&'a str, usize),
}

/// Items of a batch, one after the other, in the form of the protocol.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Expected reply of the server.
enum Reply {
    Window,
    Verdicts(Batch),
    Pushed { any: bool },
}

struct Mover<'a> {
    wire: Wire,
    source: &'a str,
    sink: &'a str,
    /// Number of items in a batch.
    batch: usize,
    test: Test<'a>,
}

impl Mover<'_> {
    /// Moves this number of items, and returns the number of pushed ones.
    ///
    /// Each reply leads to the next command of its batch. In the list, the other batches in flight
    /// are before the window (range of items) that the program asks for.
    fn move_items(&mut self, items: usize, in_flight: usize) -> usize {
        let batches = items.div_ceil(self.batch);
        let mut asked = in_flight.min(batches);
        let mut awaited: VecDeque<_> = (0..asked).map(|_| Reply::Window).collect();
        (0..asked).for_each(|ahead| self.ask_for_window(ahead));
        self.wire.send();
        let mut pushed = 0;
        while let Some(reply) = awaited.pop_front() {
            let chosen = match reply {
                Reply::Window => {
                    let batch = self.take_window();
                    match self.test {
                        Test::Push(percent) => {
                            Some(self.push(batch, |_, at, of| at * 100 < of * percent))
                        }
                        Test::RedisBloom(..) => {
                            awaited.push_back(Reply::Verdicts(batch));
                            None
                        }
                    }
                }
                Reply::Verdicts(batch) => {
                    assert_eq!(self.wire.number(b'*'), batch.ends.len());
                    Some(self.push(batch, |wire, _, _| wire.number(b':') == 1))
                }
                Reply::Pushed { any } => {
                    if any {
                        self.wire.number(b':');
                    }
                    assert_eq!(self.wire.line(b'+'), b"OK");
                    None
                }
            };
            if let Some(chosen) = chosen {
                pushed += chosen;
                awaited.push_back(Reply::Pushed { any: chosen > 0 });
                if asked < batches {
                    self.ask_for_window(in_flight - 1);
                    awaited.push_back(Reply::Window);
                    asked += 1;
                }
            }
            self.wire.send();
        }
        pushed
    }

    /// Requests a batch from the source. In the list, `ahead` other batches come before it.
    fn ask_for_window(&mut self, ahead: usize) {
        let (first, last) = (ahead * self.batch, (ahead + 1) * self.batch - 1);
        self.wire.ask(&["LRANGE", self.source, &first.to_string(), &last.to_string()]);
    }

    /// Reads a batch, and asks a filter for its verdicts.
    fn take_window(&mut self) -> Batch {
        let mut batch = Batch::default();
        let items = self.wire.number(b'*');
        if let Test::RedisBloom(filter, _) = self.test {
            self.wire.begin_command(items + 2, &["BF.MADD", filter]);
        }
        for _ in 0..items {
            let (item, encoded) = self.wire.string();
            let encoded = &self.wire.bytes[encoded];
            batch.bytes.extend_from_slice(encoded);
            batch.ends.push(batch.bytes.len());
            match self.test {
                Test::RedisBloom(_, bytes @ 1..) => {
                    write!(self.wire.out, "${bytes}\r\n").unwrap();
                    self.wire.out.extend_from_slice(&self.wire.bytes[item..item + bytes]);
                    self.wire.out.extend_from_slice(b"\r\n");
                }
                Test::RedisBloom(..) => self.wire.out.extend_from_slice(encoded),
                Test::Push(_) => (),
            }
        }
        batch
    }

    /// Pushes the chosen items of a batch, and trims the batch. Returns the number of these items.
    /// `is_chosen` gets the index of an item, and the number of items.
    fn push(
        &mut self,
        mut batch: Batch,
        is_chosen: impl Fn(&mut Wire, usize, usize) -> bool,
    ) -> usize {
        let (mut begin, mut kept, mut chosen) = (0, 0, 0);
        for (at, &end) in batch.ends.iter().enumerate() {
            if is_chosen(&mut self.wire, at, batch.ends.len()) {
                batch.bytes.copy_within(begin..end, kept);
                kept += end - begin;
                chosen += 1;
            }
            begin = end;
        }
        if chosen > 0 {
            self.wire.begin_command(chosen + 2, &["RPUSH", self.sink]);
            self.wire.out.extend_from_slice(&batch.bytes[..kept]);
        }
        self.wire.ask(&["LTRIM", self.source, &self.batch.to_string(), "-1"]);
        chosen
    }
}

/// Connection to the server. `bytes[begin..end]` is read and not parsed yet.
struct Wire {
    stream: UnixStream,
    /// Commands that the next `send` sends.
    out: Vec<u8>,
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Wire {
    fn connect(socket: &str) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        Self { stream, out: Vec::new(), bytes: vec![0; 1 << 20], begin: 0, end: 0 }
    }

    /// Writes a whole command.
    fn ask(&mut self, words: &[&str]) {
        self.begin_command(words.len(), words);
    }

    /// Writes the first `words` of a command that has `count` words.
    fn begin_command(&mut self, count: usize, words: &[&str]) {
        write!(self.out, "*{count}\r\n").unwrap();
        for word in words {
            write!(self.out, "${}\r\n{word}\r\n", word.len()).unwrap();
        }
    }

    fn send(&mut self) {
        self.stream.write_all(&self.out).unwrap();
        self.out.clear();
    }

    /// Reads the next line, a number after its sign.
    fn number(&mut self, sign: u8) -> usize {
        digits(self.line(sign))
    }

    /// Reads a string. Returns the index of its first byte, and the range of its encoded form.
    fn string(&mut self) -> (usize, Range<usize>) {
        let header = self.line(b'$');
        let (length, header) = (digits(header), header.len() + 3);
        while self.end < self.begin + length + 2 {
            self.read();
        }
        let begin = self.begin;
        self.begin += length + 2;
        (begin, begin - header..self.begin)
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

fn digits(text: &[u8]) -> usize {
    text.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}
