//! Stream of generated URLs for `scripts/stream`, and the check of a filter's output:
//!
//! ```text
//! stream write DISTINCT REPEATED    prints different URLs, and then URLs that repeat these
//! stream check DISTINCT REPEATED    reads the lines that a filter printed of this stream
//! ```
//!
//! The repeated URLs are drawn evenly from all different ones, so that the processor's cache does
//! not help. All lines have the same length. So the number of bytes that a program has read shows
//! how many lines it has read. `check` prints, as JSON, the number of different URLs that the
//! filter dropped, and the number of repeated URLs that it printed.

// A failure ends the program, as in a test.
#![allow(clippy::unwrap_used)]

use std::io::{BufReader, Read, Write, stdin, stdout};
use std::ops::Range;

/// Line of a URL, whose digits depend on the number of the URL.
type Line = [u8; 63];

const LINE: &Line = b"https://shop-0000.example.com/catalogue/item-0000000000?page=2\n";
const SHOP: Range<usize> = 13..17;
const ITEM: Range<usize> = 45..55;
/// Number of shops. Neighbouring items belong to different shops.
const SHOPS: u64 = 9973;
/// Number of lines that are written together.
const BLOCK: usize = 4096;

fn main() {
    // `--bench` comes from cargo.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [action, distinct, repeated] = words[..] else {
        panic!("stream write|check DISTINCT REPEATED");
    };
    let stream =
        Stream { distinct: distinct.parse().unwrap(), repeated: repeated.parse().unwrap() };
    match action {
        "write" => stream.write(&mut stdout().lock()),
        "check" => {
            let (dropped, again) = stream.check(BufReader::with_capacity(1 << 20, stdin().lock()));
            println!("{{\"dropped\": {dropped}, \"printed again\": {again}}}");
        }
        _ => panic!("stream write|check DISTINCT REPEATED"),
    }
}

/// Different URLs, followed by repeated ones.
struct Stream {
    distinct: u64,
    repeated: u64,
}

impl Stream {
    /// Returns the numbers of all URLs in order.
    fn urls(&self) -> impl Iterator<Item = u64> {
        let distinct = self.distinct;
        (0..distinct).chain((0..self.repeated).map(move |number| mix(number) % distinct))
    }

    fn write(&self, out: &mut impl Write) {
        let mut block = vec![*LINE; BLOCK];
        let mut urls = self.urls();
        loop {
            let mut filled = 0;
            for (line, url) in block.iter_mut().zip(&mut urls) {
                set(line, url);
                filled += 1;
            }
            if filled == 0 {
                return;
            }
            out.write_all(block[..filled].as_flattened()).unwrap();
        }
    }

    /// Returns the number of different URLs that are missing in `printed`, and the number of
    /// repeated URLs that are in it. A filter keeps the order of the lines, so all lines of the
    /// stream between two printed lines were dropped.
    fn check(&self, mut printed: impl Read) -> (u64, u64) {
        let (mut dropped, mut again) = (0, 0);
        let mut urls = self.urls().zip(0..);
        let (mut line, mut expected) = (*LINE, *LINE);
        while is_read(&mut printed, &mut line) {
            loop {
                let next = urls.next();
                let (url, place) = next.expect("only lines of the stream, in their order");
                set(&mut expected, url);
                let is_distinct = place < self.distinct;
                if line == expected {
                    again += u64::from(!is_distinct);
                    break;
                }
                dropped += u64::from(is_distinct);
            }
        }
        let rest = urls.take_while(|&(_, place)| place < self.distinct).count();
        (dropped + u64::try_from(rest).unwrap(), again)
    }
}

/// Reads a line. Returns false at the end of the input.
fn is_read(input: &mut impl Read, line: &mut Line) -> bool {
    match input.read_exact(&mut line[..1]) {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return false,
        read => read.unwrap(),
    }
    input.read_exact(&mut line[1..]).unwrap();
    true
}

/// Sets the digits of a line to those of a URL.
fn set(line: &mut Line, url: u64) {
    set_digits(&mut line[SHOP], url % SHOPS);
    set_digits(&mut line[ITEM], url);
}

fn set_digits(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).unwrap();
        number /= 10;
    }
}

/// Output function of SplitMix64.
fn mix(number: u64) -> u64 {
    let word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
