//! Compares this crate's layouts with the code of the projects that use these layouts.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

use crate::RedisKind;
use crate::number::whole;
use crate::peers::bit_strings::{BitPosition, BitStrings, PlacementError};
use crate::peers::block_cluster::layout as block_cluster;
use crate::peers::imooc::{self, SEEDS, layout as imooc};
use crate::peers::pyrebloom::{rounded as pyrebloom, seeds, unrounded};
use crate::peers::scrapy_redis_bloomfilter::layout as scrapy_redis_bloomfilter;

/// Filter in the file that `scripts/vectors layouts` writes.
#[derive(Deserialize)]
struct Vector {
    layout: String,
    settings: BTreeMap<String, f64>,
    key: String,
    /// Set bits of each value, by Redis key; `None` if the project raises an exception.
    values: BTreeMap<String, Option<BTreeMap<String, Vec<u32>>>>,
}

impl Vector {
    // The settings are small whole numbers except for error rates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn layout(&self) -> BitStrings {
        let number = |name| self.settings[name] as u32;
        let rate = || self.settings["error_rate"];
        match self.layout.as_str() {
            "scrapy-redis-bloomfilter" => {
                scrapy_redis_bloomfilter(number("bit"), number("hash_number")).unwrap()
            }
            "block-cluster" => {
                let (bit, hashes) = (number("bit"), number("hash_number"));
                block_cluster(bit, hashes, number("block_num")).unwrap()
            }
            "imooc" => {
                let capacity = self.settings["capacity"] as u64;
                let layout = imooc(capacity, rate()).unwrap();
                let [m, k, _] = imooc::sizes(capacity, rate());
                self.check_sizes(whole(m), whole(k), &layout);
                layout
            }
            "pyrebloom" => {
                let is_rounded = self.settings["rounded"] > 0.0;
                let new = if is_rounded { pyrebloom } else { unrounded };
                let layout = new(number("capacity"), rate()).unwrap();
                self.check_sizes(layout.m, layout.hashes.into(), &layout);
                layout
            }
            other => panic!("a layout {other}"),
        }
    }

    #[allow(clippy::float_cmp)]
    fn check_sizes(&self, m: u64, k: u64, layout: &BitStrings) {
        let found = [("m", m), ("k", k), ("strings", layout.strings.into())];
        for (name, found) in found {
            assert_eq!(found as f64, self.settings[name], "{name}: {:?}", self.settings);
        }
    }
}

fn positions(layout: &BitStrings, text: &[u8]) -> Result<Vec<BitPosition>, PlacementError> {
    let mut positions = Vec::new();
    layout.push_positions(text, &mut positions)?;
    assert_eq!(positions.len(), layout.hashes as usize);
    for position in &positions {
        assert!(position.string < layout.strings);
        assert!(u64::from(position.bit) < layout.bits(position.string));
    }
    Ok(positions)
}

/// Compares the bits with recorded bits. The packages set the recorded bits in a Redis server, or
/// Python computed them from the packages' formulas. If a package raises an exception for a value,
/// the layout refuses the value. `LAYOUT_VECTORS` can name another file that
/// `scripts/vectors layouts` wrote.
#[test]
fn bits_are_those_of_the_other_projects() {
    let file = std::env::var("LAYOUT_VECTORS").unwrap_or_else(|_| {
        format!("{}/../../tests/vectors/layouts.jsonl.gz", env!("CARGO_MANIFEST_DIR"))
    });
    let packed = std::fs::read(&file).unwrap();
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    let (head, filters) = text.split_once('\n').unwrap();
    let head: Value = serde_json::from_str(head).unwrap();
    assert_eq!(head["filters"], filters.lines().count());
    for line in filters.lines() {
        let vector: Vector = serde_json::from_str(line).unwrap();
        let layout = vector.layout();
        for (value, expected) in &vector.values {
            let found = positions(&layout, value.as_bytes()).ok().map(|positions| {
                let mut found = BTreeMap::<String, Vec<u32>>::new();
                for BitPosition { string, bit } in positions {
                    found.entry(layout.key(&vector.key, string)).or_default().push(bit);
                }
                for bits in found.values_mut() {
                    bits.sort_unstable();
                    bits.dedup();
                }
                found
            });
            assert_eq!(&found, expected, "{} {:?}: {value:?}", vector.layout, vector.settings);
        }
    }
}

/// Compares positions with those that the class uses in Redis, in the order of its hashes.
#[test]
fn imooc_positions_are_those_of_its_class() {
    let file = include_str!("../../../../tests/vectors/imooc.json");
    let file: Value = serde_json::from_str(file).unwrap();
    assert_eq!(file["seeds"], serde_json::json!(SEEDS.to_vec()));
    let cases = file["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let capacity = case["capacity"].as_u64().unwrap();
        let error_rate = case["error_rate"].as_f64().unwrap();
        let layout = imooc(capacity, error_rate).unwrap();
        let [m, k, _] = imooc::sizes(capacity, error_rate).map(whole);
        assert_eq!(m, case["m"].as_u64().unwrap());
        assert_eq!(k, case["k"].as_u64().unwrap());
        assert_eq!(layout.hashes, case["hashes_used"]);
        assert_eq!(layout.strings, case["blocks"]);
        for (value, expected) in case["positions"].as_object().unwrap() {
            let bits = expected["bits"].as_array().unwrap().iter().map(|bit| {
                let string = u32::try_from(expected["block"].as_u64().unwrap()).unwrap();
                BitPosition { string, bit: u32::try_from(bit.as_u64().unwrap()).unwrap() }
            });
            assert_eq!(positions(&layout, value.as_bytes()), Ok(bits.collect()), "{value}");
        }
    }
}

/// Compares positions with those that the C code uses in Redis, in the order of its hashes.
#[test]
fn pyrebloom_positions_are_those_of_its_code() {
    let file = include_str!("../../../../tests/vectors/pyrebloom.jsonl");
    assert_eq!(file.lines().count(), 5);
    for line in file.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let capacity = u32::try_from(case["capacity"].as_u64().unwrap()).unwrap();
        let layout = pyrebloom(capacity, case["error_rate"].as_f64().unwrap()).unwrap();
        assert_eq!(layout.m, case["bits"].as_u64().unwrap());
        assert_eq!(layout.hashes, case["hashes"]);
        assert_eq!(layout.strings, case["strings"]);
        let first_seeds: Vec<_> = seeds(&layout).take(5).collect();
        assert_eq!(case["seeds"], serde_json::json!(first_seeds));
        for (value, expected) in case["positions"].as_object().unwrap() {
            let found = positions(&layout, value.as_bytes()).unwrap();
            let found: Vec<_> =
                found.iter().map(|position| (position.string, position.bit)).collect();
            assert_eq!(&serde_json::json!(found), expected, "{value}");
        }
    }
}

#[test]
fn strings_have_their_keys_and_lengths() {
    let imooc = imooc(1_000_000_000, 1e-8).unwrap();
    assert_eq!((imooc.strings, imooc.key("demo", 8)), (9, "demo_8".into()));
    assert_eq!(imooc.bits(0).div_ceil(8), 512 << 20);
    let pyrebloom = pyrebloom(200_000_000, 1e-7).unwrap();
    assert_eq!((pyrebloom.strings, pyrebloom.key("demo", 1)), (2, "demo.1".into()));
    assert_eq!(pyrebloom.bits(0), 4_294_967_295);
    assert_eq!(pyrebloom.bits(0) + pyrebloom.bits(1), pyrebloom.m);
    assert_eq!(
        [0, 1, 2].map(|string| pyrebloom.bits(string).div_ceil(8)),
        [512 << 20, 301_821_696, 0]
    );
    let plain = scrapy_redis_bloomfilter(30, 6).unwrap();
    assert_eq!((plain.strings, plain.key("demo", 0)), (1, "demo".into()));
    assert_eq!(plain.bits(0).div_ceil(8), 128 << 20);
    let cluster = block_cluster(2, 6, 257).unwrap();
    assert_eq!((cluster.strings, cluster.key("demo", 256)), (257, "demo256".into()));
    assert_eq!(cluster.bits(0).div_ceil(8), 1);
}

/// Checks that the list of used strings has exactly the strings that at least one key uses. The
/// keys begin with all possible groups of three hex digits.
#[test]
fn the_strings_that_get_bits_are_listed() {
    let imooc = |capacity| imooc(capacity, 1e-7).unwrap();
    let cluster = |blocks| block_cluster(10, 1, blocks).unwrap();
    let layouts: [(BitStrings, u32, u32); 7] = [
        (imooc(2_000_000_000), 16, 10),
        (imooc(1_000_000_000), 8, 8),
        (imooc(12_000_000_000), 94, 16),
        (cluster(256), 256, 256),
        (cluster(300), 300, 300),
        (cluster(5000), 5000, 4096),
        (pyrebloom(1_000_000_000, 1e-7).unwrap(), 8, 8),
    ];
    for (layout, strings, used) in layouts {
        let mut found = std::collections::BTreeSet::new();
        for number in 0..4096 {
            let text = format!("{number:03x}{number:037}");
            let positions = positions(&layout, text.as_bytes()).unwrap();
            found.extend(positions.iter().map(|position| position.string));
        }
        assert_eq!((layout.strings, found.len()), (strings, used as usize));
        assert_eq!(layout.used_strings(), found.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn impossible_settings_are_refused() {
    let nan = f64::NAN;
    let problems = [
        imooc(0, 0.1).err(),
        imooc(10, 0.0).err(),
        imooc(10, 1.0).err(),
        imooc(10, nan).err(),
        imooc(10, 1e-310).err(),
        imooc(u64::MAX, 1e-8).err(),
        pyrebloom(0, 0.1).err(),
        pyrebloom(10, 1e-50).err(),
        pyrebloom(10, 1.0 - 1e-9).err(),
        pyrebloom(10, -1.0).err(),
        pyrebloom(1, 0.9).err(),
        scrapy_redis_bloomfilter(33, 6).err(),
        scrapy_redis_bloomfilter(30, 0).err(),
        scrapy_redis_bloomfilter(30, 1001).err(),
        block_cluster(32, 0, 1).err(),
        block_cluster(32, 15, 0).err(),
    ];
    for (number, problem) in problems.iter().enumerate() {
        assert!(problem.is_some(), "{number}");
    }
    let said = problems.map(|problem| problem.unwrap().to_string());
    assert_eq!(said[1], "the layout imooc cannot have the error rate 0: it lies between 0 and 1");
    assert_eq!(
        said[10],
        "the layout pyrebloom cannot have the error rate 0.8999999761581421: with the capacity 1, \
         the filter would have no bit"
    );
}

#[test]
fn a_text_without_a_place_adds_no_positions() {
    let imooc = imooc(1000, 0.01).unwrap();
    let plain = scrapy_redis_bloomfilter(30, 6).unwrap();
    let cluster = block_cluster(32, 15, 300).unwrap();
    let mut positions = Vec::new();
    for (layout, text, why) in [
        (&imooc, b"".as_slice(), PlacementError::Empty),
        (&imooc, b"\xffa", PlacementError::NotText),
        (&plain, b"", PlacementError::Empty),
        (&plain, b"a\xff", PlacementError::NotText),
        (&cluster, b"", PlacementError::Empty),
        (&cluster, b"00g", PlacementError::NotHex(3)),
        (&cluster, b"+0f", PlacementError::NotHex(3)),
    ] {
        assert_eq!(layout.push_positions(text, &mut positions), Err(why));
        assert_eq!(positions, []);
    }
}

/// Returns the number of unseen fingerprints that a filter reports as seen. The filter holds the
/// same number of seen fingerprints.
fn wrong_verdicts(layout: &BitStrings, keys: u64, unseen: u64) -> f64 {
    let mut random = fastrand::Rng::with_seed(20);
    let mut fingerprint = || {
        let digits = format!("{:016x}{:024x}", random.u64(..), random.u128(..) >> 32);
        assert_eq!(digits.len(), 40);
        digits
    };
    let mut set = Vec::new();
    for _ in 0..keys {
        layout.push_positions(fingerprint().as_bytes(), &mut set).unwrap();
    }
    set.sort_unstable();
    set.dedup();
    let mut positions = Vec::new();
    let mut wrong = 0.0;
    for _ in 0..unseen {
        positions.clear();
        layout.push_positions(fingerprint().as_bytes(), &mut positions).unwrap();
        if positions.iter().all(|position| set.binary_search(position).is_ok()) {
            wrong += 1.0;
        }
    }
    wrong
}

/// Checks that the computed and the measured rate differ by at most four standard deviations, plus
/// the share `inexact`. The formula leaves out this share. The filters must be large, so that all
/// of them fill equally.
#[track_caller]
fn check_rate(layout: &BitStrings, keys: u64, unseen: u64, inexact: f64) {
    let rate = layout.error_rate(keys);
    let expected = rate * unseen as f64;
    let wrong = wrong_verdicts(layout, keys, unseen);
    let deviation = (expected * (1.0 - rate)).sqrt();
    assert!(expected > 50.0, "{expected} tells nothing");
    assert!(
        (wrong - expected).abs() < 4.0 * deviation + inexact * expected,
        "{wrong} of {unseen}, {expected} ± {deviation} were expected"
    );
}

#[test]
fn pyrebloom_has_the_computed_error_rate() {
    let layout = pyrebloom(10_000, 0.01).unwrap();
    check_rate(&layout, 10_000, 200_000, 0.0);
    check_rate(&layout, 20_000, 50_000, 0.0);
    assert!((layout.error_rate(10_000) / 0.01 - 1.0).abs() < 0.01);
}

/// Tests a filter of sixteen blocks. The digits 0 to 9 lead to blocks 0 to 9, and the letters a to
/// f lead to blocks 1 to 6. So some blocks get no key, and blocks 1 to 6 get twice as many keys as
/// block 0.
#[test]
fn imooc_has_the_computed_error_rate() {
    let layout = imooc(300_000_000_000, 0.9).unwrap();
    assert_eq!((layout.strings, layout.hashes), (16, 1));
    let keys = 1 << 21;
    check_rate(&layout, keys, keys, 0.0);
    // While few bits are set, each key increases the error rate by 2^-32 times the sum of the
    // squared shares of the blocks.
    let few = 1000_u32;
    for (capacity, blocks, squares) in [(300_000_000_000, 16, 28.0), (135_000_000_000, 7, 40.0)] {
        let layout = imooc(capacity, 0.9).unwrap();
        assert_eq!((layout.strings, layout.hashes), (blocks, 1));
        let expected = f64::from(few) * 2.0_f64.powi(-32) * squares / 256.0;
        assert!((layout.error_rate(few.into()) / expected - 1.0).abs() < 1e-3, "{blocks}");
    }
}

#[test]
fn block_cluster_has_the_computed_error_rate() {
    for (bit, hashes, blocks, keys, unseen) in [
        (20, 4, 1, 200_000, 100_000),
        (18, 3, 3, 150_000, 50_000),
        // Of the 256 numbers, blocks 0 to 85 get two each, and the other blocks get one each.
        (12, 3, 170, 80_000, 100_000),
        (11, 2, 300, 60_000, 100_000),
        (20, 15, 2, 140_000, 100_000),
    ] {
        let layout = block_cluster(bit, hashes, blocks).unwrap();
        check_rate(&layout, keys, unseen, 0.0);
    }
}

#[test]
fn scrapy_redis_bloomfilter_has_the_computed_error_rate() {
    for (bit, hashes, keys, unseen) in [
        (18, 6, 20_000, 300_000),
        (20, 6, 170_000, 50_000),
        (14, 3, 2_000, 50_000),
        (20, 1, 2_000, 20_000),
    ] {
        let layout = scrapy_redis_bloomfilter(bit, hashes).unwrap();
        check_rate(&layout, keys, unseen, 0.03);
    }
    // With k independent hashes, as in textbooks, the error rate would be far lower.
    let layout = scrapy_redis_bloomfilter(30, 6).unwrap();
    let textbook = (1.0 - (-6e7 / 2.0_f64.powi(30)).exp()).powi(6);
    assert!(layout.error_rate(10_000_000) > 5.0 * textbook);
}

#[test]
fn error_rates_begin_at_0_and_end_at_1() {
    let layouts: [BitStrings; 6] = [
        imooc(1_000_000_000, 1e-8).unwrap(),
        pyrebloom(1000, 0.01).unwrap(),
        scrapy_redis_bloomfilter(30, 6).unwrap(),
        scrapy_redis_bloomfilter(0, 1).unwrap(),
        block_cluster(32, 15, 256).unwrap(),
        block_cluster(0, 1, 1).unwrap(),
    ];
    for layout in layouts {
        let rates = [0, 1, 1000, 1_000_000, 1_000_000_000, u64::MAX].map(|n| layout.error_rate(n));
        assert!(rates.is_sorted() && rates[0].abs() < 1e-300 && rates[5] > 1.0 - 1e-9, "{rates:?}");
    }
}
