//! Compares filters with the dumps and answers of a real RedisBloom.

use std::collections::HashSet;
use std::fmt::Write;
use std::io::{self, ErrorKind, Read};
use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde::Deserialize;
use serde_json::Value;
use sha1::{Digest, Sha1};

use crate::peers::redisbloom::filter::{DEFAULT_EXPANSION, MAX_CHUNK};
use crate::peers::redisbloom::parameters::{LayerParameters, Options};
use crate::peers::redisbloom::rate::forecast;
use crate::peers::redisbloom::*;
use crate::{Capacity, ErrorRate};

const LIMIT: u64 = 1 << 20;

/// A filter of a real server.
#[derive(Deserialize)]
struct Dump {
    name: String,
    /// Arguments of `BF.RESERVE`; `None` if the first add made the filter.
    reserve: Option<Vec<String>>,
    /// Number of added items: `sha1(NAME:i)` in hex digits, for each i from 0.
    n: usize,
    reported_new: u64,
    /// Numbers i of the 20,000 items `sha1(other-NAME:i)` that the server reported as seen.
    others_seen: HashSet<usize>,
    info: Value,
    /// Chunks: iterator and base64 data.
    scandump: Vec<(i64, String)>,
}

static DUMPS: LazyLock<Vec<Dump>> = LazyLock::new(|| {
    let file = include_bytes!("../../../../../tests/vectors/redisbloom-scandump.jsonl.gz");
    let mut text = String::new();
    GzDecoder::new(file.as_slice()).read_to_string(&mut text).unwrap();
    let dumps: Vec<_> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(dumps.len(), 6);
    dumps
});

impl Dump {
    fn reserved(&self) -> Filter {
        let arguments = self.reserve.clone().unwrap_or_else(|| vec!["0.01".into(), "100".into()]);
        let growth = match arguments.get(2).map(String::as_str) {
            None => DEFAULT_EXPANSION,
            Some("NONSCALING") => 0,
            Some("EXPANSION") => arguments[3].parse().unwrap(),
            Some(other) => panic!("an argument {other}"),
        };
        let (rate, capacity) = (arguments[0].parse().unwrap(), arguments[1].parse().unwrap());
        reserved(rate, capacity, growth, LIMIT)
    }

    fn chunks(&self) -> Vec<(i64, Vec<u8>)> {
        let bytes = |text| BASE64_STANDARD.decode(text).unwrap();
        self.scandump.iter().map(|(iterator, text)| (*iterator, bytes(text))).collect()
    }

    fn loaded(&self) -> Filter {
        from_chunks(self.chunks(), LIMIT).unwrap()
    }
}

fn reservation(error_rate: f64, capacity: u64, expansion: u32) -> Reservation {
    let error_rate = ErrorRate::new(error_rate).unwrap();
    Reservation { capacity: Capacity::new(capacity).unwrap(), error_rate, expansion }
}

fn reserved(error_rate: f64, capacity: u64, expansion: u32, limit: u64) -> Filter {
    Filter::reserve(reservation(error_rate, capacity, expansion), limit).unwrap()
}

/// Reads a filter from all its chunks, in order: iterator and data.
fn from_chunks(chunks: Vec<(i64, Vec<u8>)>, limit: u64) -> io::Result<Filter> {
    let mut chunks = chunks.into_iter();
    let (iterator, header) = chunks.next().unwrap_or((1, Vec::new()));
    let mut loader = Loader::new(iterator, &header, limit)?;
    chunks.try_for_each(|(iterator, data)| loader.load(iterator, &data))?;
    loader.finish()
}

/// Reads a filter from its own chunks.
fn again(filter: &Filter) -> Filter {
    from_chunks(chunks(filter), LIMIT).unwrap()
}

fn dumped(name: &str) -> &'static Dump {
    DUMPS.iter().find(|dump| dump.name == name).unwrap()
}

fn item(name: &str, number: usize) -> String {
    let digest = Sha1::digest(format!("{name}:{number}"));
    digest.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn chunks(filter: &Filter) -> Vec<(i64, Vec<u8>)> {
    filter.chunks().map(|chunk| (chunk.iterator, chunk.data.into_owned())).collect()
}

#[test]
fn filters_filled_here_have_the_same_bytes_as_on_the_server() {
    for dump in DUMPS.iter() {
        let mut filter = dump.reserved();
        let added = (0..dump.n).map(|n| filter.add(item(&dump.name, n).as_bytes()).unwrap());
        let new = added.filter(|new| *new).count();
        assert_eq!(new as u64, dump.reported_new, "{}", dump.name);
        assert!(chunks(&filter) == dump.chunks(), "{}", dump.name);
    }
}

#[test]
fn loaded_filters_have_the_figures_of_the_server() {
    for dump in DUMPS.iter() {
        let filter = dump.loaded();
        assert_eq!(filter.size(), dump.info["Number of items inserted"]);
        assert_eq!(filter.capacity(), dump.info["Capacity"]);
        assert_eq!(filter.layers(), dump.info["Number of filters"]);
        let expansion = Some(filter.expansion()).filter(|&times| times > 0);
        assert_eq!(serde_json::json!(expansion), dump.info["Expansion rate"]);
        assert!(chunks(&filter) == dump.chunks(), "{}", dump.name);
    }
}

#[test]
fn a_filter_does_not_outgrow_its_limit() {
    let mut filter = reserved(0.01, 100, u32::MAX, 1000);
    let error = (0..).find_map(|n| filter.add(item("grown", n).as_bytes()).err()).unwrap();
    assert_eq!(filter.size(), 100);
    let too_large = "the RedisBloom filter is full and cannot grow: a RedisBloom layer for \
                     429496729500 items takes more than 1000 bytes, its limit";
    assert_eq!(error.to_string(), too_large);
    // Layers of 144 and of 312 bytes.
    for (limit, grows) in [(455, false), (456, true)] {
        let mut filter = reserved(0.01, 100, DEFAULT_EXPANSION, limit);
        let added = (0..150).all(|n| filter.add(item("grown", n).as_bytes()).is_ok());
        assert_eq!((added, filter.bytes()), (grows, if grows { 456 } else { 144 }), "{limit}");
    }
    for (rate, capacity, limit) in [(0.01, 1000, 1000), (1e-12, 1_000_000_000_000, 1 << 40)] {
        let reservation = reservation(rate, capacity, DEFAULT_EXPANSION);
        assert!(Filter::reserve(reservation, limit).is_err(), "{rate} {capacity}");
    }
    let first =
        |capacity, rate| LayerParameters::within(LIMIT, LIMIT, capacity, rate, Options::of(0));
    assert!(first(0, 0.01).is_err() && first(1, 0.0).is_err() && first(u64::MAX, 0.9).is_err());
    assert!(first(1, 0.01).is_ok());
}

/// Tests filters without the option that RedisBloom sets since 2.2. The number of bits is then a
/// power of two, and the capacity is increased accordingly. Computed by hand: 100 items at an error
/// rate of 0.005 take 1102.8 bits. The 945 other bits of 2048 are enough for 85 items.
#[test]
fn layers_of_early_versions_are_powers_of_two() {
    let options = Options(Options::WIDE);
    let first = LayerParameters::within(LIMIT, LIMIT, 100, 0.005, options).unwrap();
    let mut filter = Filter::begun(first, options, 2, LIMIT).unwrap();
    assert_eq!((8 * filter.bytes(), filter.capacity()), (2048, 185));
    for n in 0..300 {
        filter.add(item("early", n).as_bytes()).unwrap();
    }
    let layers: Vec<_> = filter
        .layers
        .iter()
        .map(|layer| (layer.parameters.bits, layer.parameters.capacity))
        .collect();
    assert_eq!(layers, [(2048, 185), (8192, 656)]);
    assert_eq!(again(&filter).layers, filter.layers);
}

#[test]
fn large_layers_come_in_several_chunks() {
    let filter = reserved(0.01, 30_000_000, DEFAULT_EXPANSION, 1 << 30);
    let all = chunks(&filter);
    let lengths: Vec<_> = all.iter().map(|(_, data)| data.len()).collect();
    assert_eq!(lengths, [73, MAX_CHUNK, MAX_CHUNK, 7_799_648]);
    assert_eq!(all[3].0, 1 + i64::try_from(filter.bytes()).unwrap());
    assert_eq!(from_chunks(all, 1 << 30).unwrap().layers, filter.layers);
}

/// Changes the chunks of the filter "scaled". Returns the error of the loader, which refuses them.
fn problem(change: impl FnOnce(&mut Vec<(i64, Vec<u8>)>)) -> String {
    let mut chunks = dumped("scaled").chunks();
    change(&mut chunks);
    from_chunks(chunks, LIMIT).unwrap_err().to_string()
}

/// Returns the error of a chunk with this problem.
fn bad(chunk: u64, offset: u64, problem: &str) -> String {
    refused(ErrorKind::InvalidData, chunk, offset, problem).to_string()
}

#[test]
fn missing_doubled_and_misplaced_chunks_are_named() {
    let wrong = |chunk, found: i64, due: i64| {
        let what = "chunks are missing, doubled or out of order";
        bad(chunk, 0, &format!("its iterator is {found} instead of {due}: {what}"))
    };
    let long = |chunk, found: u64, left: u64| {
        bad(chunk, left, &format!("the chunk has {found} bytes, and its layer lacks only {left}"))
    };
    let missing = |chunk, left: u64| {
        bad(chunk, 0, &format!("the chunk is missing: the filter lacks {left} bytes"))
    };
    for (found, expected) in [
        (problem(Vec::clear), wrong_length(0)),
        (problem(|chunks| chunks[0].0 = 0), wrong(0, 0, 1)),
        (problem(|chunks| drop(chunks.remove(0))), wrong(0, 1385, 1)),
        (problem(|chunks| drop(chunks.remove(1))), long(1, 3120, 1384)),
        (problem(|chunks| drop(chunks.pop())), missing(4, 15_360)),
        (problem(|chunks| chunks.truncate(1)), missing(1, 26_824)),
        (problem(|chunks| chunks[2].0 = -1), wrong(2, -1, 4505)),
        (problem(|chunks| chunks[2].0 = i64::MAX), wrong(2, i64::MAX, 4505)),
        (problem(|chunks| chunks[2].1.truncate(3119)), wrong(2, 4505, 4504)),
        (problem(|chunks| chunks[3].1.push(0)), long(3, 6961, 6960)),
        (problem(|chunks| chunks.push((26_826, vec![0]))), long(5, 1, 0)),
        (problem(|chunks| chunks.push((0, Vec::new()))), bad(5, 0, "the chunk is empty")),
    ] {
        assert_eq!(found, expected);
    }
    assert_eq!(
        problem(|chunks| chunks[2].0 = 7),
        "chunk 2 of the RedisBloom filter, byte 0: its iterator is 7 instead of 4505: chunks are \
         missing, doubled or out of order; dump the filter again with BF.SCANDUMP and pass on \
         every chunk, in order"
    );
}

/// Overwrites the header with `bytes`, from the offset `at` on. Checks the offset, the name and the
/// value of the problem.
fn check_header(at: usize, bytes: &[u8], (offset, field, value): (u64, &str, &str)) {
    let found = problem(|chunks| chunks[0].1[at..at + bytes.len()].copy_from_slice(bytes));
    let said = format!("chunk 0 of the RedisBloom filter, byte {offset}: the {field} is {value}; ");
    assert!(found.starts_with(&said), "{found}");
}

#[test]
fn impossible_numbers_of_a_header_are_named() {
    let whole = |number: u64| number.to_string();
    let long = |number: u64| number.to_le_bytes();
    for (at, bytes, (offset, field, value)) in [
        (0, &long(1)[..], (0, "number of items", whole(1))),
        (12, &[0], (12, "options", "0x0".to_owned())),
        (12, &[7], (12, "options", "0x7".to_owned())),
        (12, &[21], (12, "options", "0x15".to_owned())),
        (20, &long(0), (20, "bytes of a layer", whole(0))),
        (20, &long(1385), (20, "bytes of a layer", whole(1385))),
        (20, &long(1 << 60), (20, "bytes of a layer", whole(1 << 60))),
        (73, &long(8), (81, "bits of a layer", whole(24_960))),
        (81, &long(24_961), (81, "bits of a layer", whole(24_961))),
        (36, &long(1001), (36, "items of a layer", whole(1001))),
        (44, &1.0_f64.to_le_bytes(), (44, "error rate", "1e0".to_owned())),
        (44, &(-0.5_f64).to_le_bytes(), (44, "error rate", "-5e-1".to_owned())),
        (52, &f64::INFINITY.to_le_bytes(), (52, "bits an item", "inf".to_owned())),
        (52, &11.0_f64.to_le_bytes(), (52, "bits an item", "1.1e1".to_owned())),
        (60, &9_u32.to_le_bytes(), (60, "number of hashes", whole(9))),
        (60, &u32::MAX.to_le_bytes(), (60, "number of hashes", whole(u32::MAX.into()))),
        (64, &long(0), (64, "capacity of a layer", whole(0))),
        (72, &[14], (72, "power of two", whole(14))),
        (72, &[255], (72, "power of two", whole(255))),
    ] {
        check_header(at, bytes, (offset, field, &value));
    }
    // A header with a NaN is refused, too.
    check_header(44, &f64::NAN.to_le_bytes(), (44, "error rate", "NaN"));
    check_header(52, &f64::NAN.to_le_bytes(), (52, "bits an item", "NaN"));
}

/// Returns the error for a header of this length.
fn wrong_length(length: usize) -> String {
    let problem = format!(
        "the header has {length} bytes; a header has 20, plus 53 for each layer, and 1 layer or \
         more"
    );
    bad(0, 20_u64.min(length as u64), &problem)
}

#[test]
fn headers_of_impossible_lengths_are_refused() {
    for length in [0, 19, 20, 21, 231, 72] {
        assert_eq!(problem(|chunks| chunks[0].1.truncate(length)), wrong_length(length));
    }
    for length in [233, 247, 249, 285] {
        assert_eq!(problem(|chunks| chunks[0].1.resize(length, 0)), wrong_length(length));
    }
    assert_eq!(problem(|chunks| chunks[0].1[8] = 3), wrong_length(232));
    assert_eq!(problem(|chunks| chunks[0].1[8..12].fill(0)), wrong_length(232));
    assert_eq!(problem(|chunks| chunks[0].1[8..12].fill(255)), wrong_length(232));
    let seeded = problem(|chunks| chunks[0].1.resize(248, 0));
    assert_eq!(
        seeded.split(": the server hashes").next(),
        bad(0, 232, "16 bytes follow the layers").split(';').next()
    );
}

/// A header may claim any size. The loader allocates no memory for bytes that have not arrived.
#[test]
fn layers_over_the_limit_are_refused_before_their_bytes_arrive() {
    let large = (1_u64 << 59) + 1384;
    let change = |chunks: &mut Vec<(i64, Vec<u8>)>| {
        chunks[0].1[20..28].copy_from_slice(&large.to_le_bytes());
        chunks[0].1[28..36].copy_from_slice(&(8 * large).to_le_bytes());
    };
    let over = |offset, limit: u64| {
        let what =
            format!("the layers take more than {limit} bytes, the limit that is set for them");
        bad(0, offset, &what)
    };
    assert_eq!(problem(change), over(20, LIMIT));
    let mut chunks = dumped("scaled").chunks();
    let limited = |limit| from_chunks(dumped("scaled").chunks(), limit);
    assert!(limited(26_824).is_ok());
    assert_eq!(limited(26_823).unwrap_err().to_string(), over(179, 26_823));
    change(&mut chunks);
    let mut loader = Loader::new(1, &chunks[0].1, u64::MAX).unwrap();
    loader.load(1385, &chunks[1].1).unwrap();
    assert!(loader.finish().unwrap_err().to_string().contains("the chunk is missing"));
}

proptest! {
    /// Any chunk is either read or refused. A filter that was read can be tested and filled, and
    /// its dump has the bytes that were read.
    #[test]
    fn changed_chunks_never_panic(
        which in 0..6_usize,
        changes in vec((0..3_usize, any::<Index>(), any::<u8>()), 0..6),
        lengths in vec((0..5_usize, any::<Index>(), 0..60_usize), 0..2),
        iterators in vec((0..5_usize, any::<i64>()), 0..2),
    ) {
        let mut chunks = DUMPS[which].chunks();
        for (chunk, at, byte) in changes {
            // Most often in the header.
            let (_, data) = &mut chunks[chunk / 2];
            let at = at.index(data.len());
            data[at] = byte;
        }
        for (chunk, at, more) in lengths {
            if let Some((_, data)) = chunks.get_mut(chunk) {
                data.truncate(at.index(data.len() + 1));
                data.resize(data.len() + more, 1);
            }
        }
        for (chunk, iterator) in iterators {
            if let Some((found, _)) = chunks.get_mut(chunk) {
                *found = iterator;
            }
        }
        if let Ok(mut filter) = from_chunks(chunks.clone(), LIMIT) {
            prop_assert_eq!(&self::chunks(&filter), &chunks);
            filter.contains(b"item");
            let _ = filter.add(b"item");
            prop_assert!(filter.bytes() <= LIMIT);
        }
    }

    /// Chunks may be cut in any way within layers.
    #[test]
    fn chunks_of_any_length_are_read(length in 100..5000_usize) {
        let dump = dumped("scaled");
        let mut whole = dump.chunks().into_iter();
        let (_, header) = whole.next().unwrap();
        let mut loader = Loader::new(1, &header, LIMIT).unwrap();
        let mut iterator = 1;
        for (_, data) in whole {
            for part in data.chunks(length) {
                iterator += i64::try_from(part.len()).unwrap();
                loader.load(iterator, part).unwrap();
            }
        }
        prop_assert_eq!(loader.finish().unwrap().layers, dump.loaded().layers);
    }
}

#[test]
fn reserved_room_is_enough_and_changes_no_dump() {
    let dump = dumped("scaled");
    let mut filter = dump.reserved();
    for n in 0..dump.n {
        if n % 500 == 0 {
            let before = chunks(&filter);
            filter.make_room(500).unwrap();
            assert!(chunks(&filter) == before);
        }
        filter.add(item(&dump.name, n).as_bytes()).unwrap();
    }
    assert!(chunks(&filter) == dump.chunks());
    filter.make_room(1 << 20).unwrap_err();
    // Layers of 144 and of 312 bytes.
    let mut filter = reserved(0.01, 100, DEFAULT_EXPANSION, 456);
    assert!(filter.make_room(300).is_ok());
    assert!(filter.make_room(301).is_err_and(|full| full.0.contains("is full and cannot grow")));
    let full = (0..400).find_map(|n| filter.add(item("room", n).as_bytes()).err());
    assert!(full.is_some_and(|full| full.0.contains("is full and cannot grow")));
    assert_eq!((filter.size(), filter.bytes()), (300, 456));
    let mut fixed = reserved(1e-9, 10, 0, LIMIT);
    assert_eq!(fixed.make_room(10), Ok(()));
    assert!(fixed.make_room(11).is_err_and(|full| full.0.contains("holds the 10 items")));
}

#[test]
fn a_frozen_copy_does_not_change_when_the_filter_gets_items() {
    let dump = dumped("scaled");
    let mut filter = dump.reserved();
    for n in 0..1500 {
        filter.add(item(&dump.name, n).as_bytes()).unwrap();
    }
    let (frozen, before) = (filter.clone(), chunks(&filter));
    let shared = |one: &Filter, other: &Filter| {
        let pairs = one.layers.iter().zip(&other.layers);
        pairs.filter(|(one, other)| std::sync::Arc::ptr_eq(one, other)).count()
    };
    assert_eq!(shared(&frozen, &filter), 2, "nothing is copied yet");
    for n in 1500..dump.n {
        filter.add(item(&dump.name, n).as_bytes()).unwrap();
    }
    assert!(chunks(&frozen) == before);
    assert!(chunks(&filter) == dump.chunks());
    assert_eq!(shared(&frozen, &filter), 1, "only the newest layer was copied");
}

#[test]
fn the_error_rate_follows_from_the_set_bits() {
    assert!(dumped("scaled").reserved().error_rate_now().abs() < f64::EPSILON);
    for dump in DUMPS.iter() {
        let filter = dump.loaded();
        for layer in &filter.layers {
            let ones: u32 = layer.bits.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(layer.ones, u64::from(ones), "{}", dump.name);
        }
        let (expected, seen) = (filter.error_rate_now(), dump.others_seen.len() as f64);
        // The server tested 20,000 other items. Four standard deviations are allowed.
        let due = 20_000.0 * expected;
        assert!((seen - due).abs() <= 4.0 * due.sqrt().max(1.0), "{}: {seen} {due}", dump.name);
    }
    let mut filter = dumped("scaled").reserved();
    for n in 0..2000 {
        filter.add(item("counted", n).as_bytes()).unwrap();
    }
    assert_eq!(again(&filter).layers, filter.layers, "as counted anew");
}

fn dump_of(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    dump::write(filter, &mut bytes).unwrap();
    assert_eq!(dump::len(filter), bytes.len() as u64);
    bytes
}

fn read_dump(bytes: &[u8]) -> io::Result<Filter> {
    dump::read(&mut &*bytes, LIMIT)
}

#[test]
fn dumps_read_back() {
    for dump in DUMPS.iter() {
        let filter = dump.loaded();
        assert_eq!(read_dump(&dump_of(&filter)).unwrap().layers, filter.layers);
    }
    // The expected bytes are built from the documentation of the format alone.
    let (iterator, header) = dumped("scaled").chunks().swap_remove(0);
    let bytes = dump_of(&dumped("scaled").loaded());
    let mut record = iterator.to_le_bytes().to_vec();
    record.extend((header.len() as u64).to_le_bytes());
    record.extend(&header);
    let mut crc = flate2::Crc::new();
    crc.update(&record);
    record.extend(crc.sum().to_le_bytes());
    assert!(bytes.starts_with(b"RBDUMP 1") && bytes[8..].starts_with(&record));
    let end = [&[0; 16][..], &0xecbb_4b55_u32.to_le_bytes()[..]].concat();
    assert!(bytes.ends_with(&end));
}

#[test]
fn dumps_that_were_cut_or_changed_are_refused_with_the_place() {
    let whole = dump_of(&dumped("scaled").loaded());
    let said = |bytes: &[u8]| {
        let error = read_dump(bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        error.to_string()
    };
    let place = |said: &str| -> usize {
        let (at, _) = said.strip_prefix("at byte ").unwrap().split_once(": ").unwrap();
        at.parse().unwrap()
    };
    // The header has 232 bytes, the layers 1384, 3120, 6960 and 15,360.
    let begins = [8, 8 + 252, 8 + 252 + 1404, whole.len() - 20];
    let cut = "the dump ends in the middle: dump the filter again";
    for end in 0..whole.len() {
        let error = said(&whole[..end]);
        if end < 8 {
            assert!(error.starts_with("at byte 0: this is not a dump"), "{end}: {error}");
        } else {
            assert_eq!(error, format!("at byte {end}: {cut}"));
        }
    }
    for at in (0..whole.len()).step_by(7).chain(begins).chain([whole.len() - 1]) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let error = said(&bytes);
        if at < 8 {
            assert!(error.contains("this is not a dump"), "{at}: {error}");
        } else if error.contains("CRC") || error.contains("the chunk claims") {
            let begin = place(&error);
            assert!(begin <= at && at <= begin + 15_380, "{at}: {error}");
        } else {
            assert!(error.ends_with(cut), "{at}: {error}");
        }
    }
    let behind = said(&[&whole[..], b"x"].concat());
    let more = format!("at byte {}: more bytes follow after the end of the dump", whole.len());
    assert_eq!(behind, more);
    // One chunk less: the CRCs are right, but the filter is not complete.
    let less = [&whole[..8 + 252 + 1404], &whole[8 + 252 + 1404 + 3140..]].concat();
    let claims = "the chunk claims 6960 bytes, and at most 3120 are possible here";
    assert_eq!(said(&less), format!("at byte {}: {claims}", 8 + 252 + 1404));
    let early = said(&[&whole[..begins[2]], &whole[begins[3]..]].concat());
    assert!(early.contains(": the chunk is missing"), "{early}");
    assert!(dump::read(&mut &whole[..], 1000).is_err(), "the limit holds");
}

#[test]
fn a_forecast_matches_a_filled_filter() {
    for (rate, capacity, growth) in
        [(0.01, 100, DEFAULT_EXPANSION), (0.1, 50, 1), (1e-3, 1000, 4), (0.02, 20_000, 0)]
    {
        let mut filter = reserved(rate, capacity, growth, 1 << 24);
        for items in [1, capacity / 2, capacity, capacity + 1, 7 * capacity] {
            let outlook = forecast(reservation(rate, capacity, growth), items).unwrap();
            if growth == 0 && items > capacity {
                let full = forecast(reservation(rate, capacity, growth), capacity).unwrap();
                assert_eq!(outlook, full);
                continue;
            }
            let mut number = 0;
            while filter.size() < items {
                filter.add(item("forecast", number).as_bytes()).unwrap();
                number += 1;
            }
            assert_eq!(outlook.strings, filter.layers(), "{rate} {items}");
            let LayerParameters { hashes, .. } = filter.layers[filter.layers() - 1].parameters;
            assert_eq!(outlook.hashes, hashes);
            assert_eq!(outlook.bits, 8 * filter.bytes());
            let ratio = outlook.error_rate / filter.error_rate_now();
            // Few items are spread unevenly.
            let slack = if items < 50 { 2.0 } else { 1.3 };
            assert!((1.0 / slack..slack).contains(&ratio), "{rate} {capacity} {items}: {ratio}");
        }
    }
}
