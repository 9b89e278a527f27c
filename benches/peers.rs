//! Moves items from one list in Redis to another. A filter of another project finds the new items,
//! and only these are moved. The conditions are the best for such a filter: precomputed
//! fingerprints, no crash safety, and several batches in flight. `scripts/bench-peers` runs this
//! program beside programs in Python:
//!
//! ```text
//! peers SOCKET SOURCE SINK FILTER BATCH IN_FLIGHT redisbloom|set|set-of-bytes|pyrebloom:N:P
//! ```
//!
//! The program reads a batch with `LRANGE`, and tests and sets its items in the key `FILTER`. For
//! RedisBloom it uses `BF.MADD`. For a set it sends a `SADD` for each item, because only this
//! command tells which items are new. For pyreBloom with capacity N and error rate P it sends a
//! `SETBIT` for each hash, which returns the old bit. New items go to `SINK`, and `LTRIM` removes
//! the batch from `SOURCE`. `set-of-bytes` keeps fingerprints as 20 bytes, the others as 40 digits.

// A panic ends the program, as in a test.
#![allow(clippy::unwrap_used)]

mod wire;

use std::collections::VecDeque;
use std::time::Instant;

use urlseen_core::filter::kinds::PyreBloom;
use urlseen_core::filter::layout::{BitPosition, BitStrings};
use wire::Wire;

/// Number of hex digits of a fingerprint.
const DIGITS: usize = 40;

fn main() {
    // `--bench` comes from cargo.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [socket, source, sink, filter, batch, in_flight, test] = &words[..] else {
        panic!(
            "peers SOCKET SOURCE SINK FILTER BATCH IN_FLIGHT TEST: see the top of benches/peers.rs"
        );
    };
    let mut peer = Peer {
        wire: Wire::connect(socket),
        source,
        sink,
        filter,
        batch: batch.parse().unwrap(),
        test: match test.as_str() {
            "redisbloom" => Test::RedisBloom,
            "set" => Test::Set,
            "set-of-bytes" => Test::SetOfBytes,
            other => Test::PyreBloom(pyrebloom(other)),
        },
        sadd: Vec::new(),
        free: Vec::new(),
    };
    if matches!(peer.test, Test::Set | Test::SetOfBytes) {
        peer.wire.begin_command(3, &["SADD", filter]);
        peer.sadd = std::mem::take(&mut peer.wire.out);
    }
    peer.wire.ask(&["LLEN", source]);
    peer.wire.send();
    let items = peer.wire.number();
    let begun = Instant::now();
    let unseen = peer.filter(items, in_flight.parse().unwrap());
    let seconds = begun.elapsed().as_secs_f64();
    let line = serde_json::json!({ "items": items, "unseen": unseen, "seconds": seconds });
    println!("{line}");
}

/// Filter that tests and sets items.
enum Test {
    RedisBloom,
    Set,
    SetOfBytes,
    PyreBloom(PyreBloom),
}

/// Reads `pyrebloom:CAPACITY:RATE`.
fn pyrebloom(test: &str) -> PyreBloom {
    let words: Vec<&str> = test.split(':').collect();
    let ["pyrebloom", capacity, rate] = words[..] else { panic!("{test}: no such test") };
    PyreBloom::new(capacity.parse().unwrap(), rate.parse().unwrap()).unwrap()
}

struct Peer<'a> {
    wire: Wire,
    source: &'a str,
    sink: &'a str,
    filter: &'a str,
    /// Number of items in a batch.
    batch: usize,
    test: Test,
    /// Encoded start of the command `SADD FILTER ITEM`, without the item. Empty if the test uses
    /// another command.
    sadd: Vec<u8>,
    /// Buffers of finished batches. New batches use them again.
    free: Vec<Batch>,
}

/// Items of a batch, one after the other, in the encoding of the Redis protocol.
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

impl Peer<'_> {
    /// Moves this number of items, and returns the number of unseen ones.
    ///
    /// Each reply leads to the next command of its batch. After a batch's `LTRIM`, the program asks
    /// for the next window (range of items). In the list, the other batches in flight are before
    /// this window.
    fn filter(&mut self, items: usize, in_flight: usize) -> usize {
        let batches = items.div_ceil(self.batch);
        let mut awaited = VecDeque::new();
        let mut asked = in_flight.min(batches);
        for ahead in 0..asked {
            self.ask_for_window(ahead);
            awaited.push_back(Reply::Window);
        }
        self.wire.send();
        let mut unseen = 0;
        while let Some(reply) = awaited.pop_front() {
            match reply {
                Reply::Window => {
                    let batch = self.take_window();
                    awaited.push_back(Reply::Verdicts(batch));
                }
                Reply::Verdicts(batch) => {
                    let new = self.push_unseen(batch);
                    unseen += new;
                    awaited.push_back(Reply::Pushed { any: new > 0 });
                    if asked < batches {
                        self.ask_for_window(in_flight - 1);
                        awaited.push_back(Reply::Window);
                        asked += 1;
                    }
                }
                Reply::Pushed { any } => {
                    if any {
                        self.wire.number();
                    }
                    self.wire.ok();
                }
            }
            self.wire.send();
        }
        unseen
    }

    /// Requests a batch from the source. In the list, `ahead` other batches come before it.
    fn ask_for_window(&mut self, ahead: usize) {
        let (first, last) = (ahead * self.batch, (ahead + 1) * self.batch - 1);
        self.wire.ask(&["LRANGE", self.source, &first.to_string(), &last.to_string()]);
    }

    /// Reads a batch, and asks for its verdicts.
    fn take_window(&mut self) -> Batch {
        let mut batch = self.free.pop().unwrap_or_default();
        batch.bytes.clear();
        batch.ends.clear();
        let items = self.wire.array();
        if let Test::RedisBloom = self.test {
            self.wire.begin_command(items + 2, &["BF.MADD", self.filter]);
        }
        for _ in 0..items {
            let (item, written) = self.wire.string();
            batch.bytes.extend_from_slice(written);
            batch.ends.push(batch.bytes.len());
            let mut fingerprint = [0; DIGITS];
            fingerprint.copy_from_slice(&item[..DIGITS]);
            self.test(&fingerprint);
        }
        batch
    }

    fn test(&mut self, fingerprint: &[u8; DIGITS]) {
        if let Test::PyreBloom(layout) = &self.test {
            let mut positions = Vec::new();
            layout.push_positions(fingerprint, &mut positions).unwrap();
            for BitPosition { string, bit } in positions {
                let key = layout.key(self.filter, string);
                self.wire.ask(&["SETBIT", &key, &bit.to_string(), "1"]);
            }
            return;
        }
        let out = &mut self.wire.out;
        out.extend_from_slice(&self.sadd);
        if let Test::SetOfBytes = self.test {
            out.extend_from_slice(b"$20\r\n");
            let pairs = fingerprint.chunks_exact(2);
            out.extend(pairs.map(|pair| digit(pair[0]) << 4 | digit(pair[1])));
        } else {
            out.extend_from_slice(b"$40\r\n");
            out.extend_from_slice(fingerprint);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Reads the verdicts of a batch, pushes its new items, and trims the batch. Returns the number
    /// of new items.
    fn push_unseen(&mut self, mut batch: Batch) -> usize {
        if let Test::RedisBloom = self.test {
            assert_eq!(self.wire.array(), batch.ends.len());
        }
        let (mut begin, mut kept, mut unseen) = (0, 0, 0);
        for &end in &batch.ends {
            let is_new = match &self.test {
                Test::PyreBloom(layout) => {
                    (0..layout.hashes()).fold(false, |any, _| any | (self.wire.number() == 0))
                }
                Test::RedisBloom | Test::Set | Test::SetOfBytes => self.wire.number() == 1,
            };
            if is_new {
                batch.bytes.copy_within(begin..end, kept);
                kept += end - begin;
                unseen += 1;
            }
            begin = end;
        }
        if unseen > 0 {
            self.wire.begin_command(unseen + 2, &["RPUSH", self.sink]);
            self.wire.out.extend_from_slice(&batch.bytes[..kept]);
        }
        self.wire.ask(&["LTRIM", self.source, &self.batch.to_string(), "-1"]);
        self.free.push(batch);
        unseen
    }
}

/// Returns the value of a hex digit in lower case.
fn digit(digit: u8) -> u8 {
    if digit <= b'9' { digit - b'0' } else { digit - b'a' + 10 }
}
