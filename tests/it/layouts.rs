//! Checks that the page about other projects' filters shows the counted errors, and that the counts
//! agree with the computed error rates.

#[path = "../../benches/layouts/count/mod.rs"]
#[allow(dead_code, reason = "the program that counts for the page needs more of it")]
mod count;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use count::filter::{Filter, Size};
use count::{Case, Count, PERCENT};
use serde::de::DeserializeOwned;
use serde_json::Value;
use urlseen_core::filter::kinds::Imooc;
use urlseen_core::filter::layout::BitStrings;

use crate::util::sources::root;

/// Maximum number of standard deviations between a count and the computed number. By chance, about
/// one count in a million has a larger deviation. The keys are the same every time, so a test that
/// passes once always passes.
const DEVIATIONS: f64 = 5.0;

/// Returns the lines of a group of `layouts.jsonl`.
fn counted<T: DeserializeOwned>(group: &str) -> Vec<T> {
    let data = fs::read_to_string(root().join("docs/design/layouts.jsonl")).unwrap();
    let lines = data.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines = lines.filter(|line| line["group"] == group);
    lines.map(|line| serde_json::from_value(line).unwrap()).collect()
}

#[test]
fn the_page_shows_the_counts() {
    let check = Command::new(root().join("scripts/layouts")).arg("--check").output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}

#[test]
fn counts_agree_with_computed_rates() {
    let mut percents = BTreeMap::<_, Vec<_>>::new();
    for wrong in counted::<Count>("wrong") {
        let Count { case, native, percent, keys, computed, .. } = wrong;
        same(computed, case.computed(native, keys));
        near(&wrong);
        assert_eq!(keys, (case.made_for * percent).div_ceil(100));
        percents.entry(format!("{case:?} {native}")).or_default().push(percent);
    }
    assert!(percents.values().all(|percents| percents == &PERCENT), "{percents:?}");

    let cases = counted::<Value>("case");
    assert_eq!(percents.len(), 2 * cases.len(), "each filter, and native in its place");
    let mut filters = BTreeSet::new();
    for line in cases {
        let size: Size = serde_json::from_value(line["size"].clone()).unwrap();
        filters.insert(line["filter"].as_str().unwrap().to_owned());
        let found = serde_json::from_value::<Case>(line).unwrap().size();
        same(size.promised, found.promised);
        assert_eq!(Size { promised: found.promised, ..size }, found);
    }
    let all = ["block-cluster", "imooc", "pyrebloom", "scrapy-redis-bloomfilter"];
    assert_eq!(filters, all.map(str::to_owned).into());
}

/// The block that was filled alone has the error rate that is computed for its number of keys.
/// Nearly all errors of the whole filter are in this block.
#[test]
fn the_fullest_block_of_imooc_has_nearly_all_errors() {
    let blocks = counted::<Value>("block");
    let [block] = &blocks[..] else { panic!("one block: {blocks:?}") };
    let number = |name: &str| block[name].as_u64().unwrap();
    let rate = |name: &str| block[name].as_f64().unwrap();

    let one = Imooc::new(1_000_000, rate("error_rate")).unwrap();
    assert_eq!(one.strings(), 1);
    same(rate("computed"), one.error_rate(number("keys")));
    let off = deviations(number("wrong"), number("unseen"), rate("computed"), 0.0);
    assert!(off < DEVIATIONS, "{off} deviations: {block}");

    let keys = number("made_for");
    let all = Imooc::new(keys, rate("error_rate")).unwrap();
    same(rate("computed_of_all"), all.error_rate(keys));
    let off = deviations(number("wrong"), number("asked"), rate("computed_of_all"), 0.01);
    assert!(off < DEVIATIONS, "{off} deviations: {block}");
}

/// Repeats the counts of the page with few keys. imooc is not included, because its strings take
/// 512 MiB even with few keys. A unit test of the kinds counts its errors without strings.
#[test]
fn small_filters_are_wrong_as_often_as_computed() {
    for (filter, made_for) in [
        (Filter::Pyrebloom { capacity: 40_000, error_rate: 0.01 }, 40_000),
        (Filter::ScrapyRedisBloomfilter { bit: 19, hash_number: 6 }, 50_000),
        // The filter gives each key one of 256 numbers. 64 blocks get the keys of two numbers, and
        // the other 128 blocks get the keys of one number.
        (Filter::BlockCluster { bit: 10, hash_number: 5, block_num: 192 }, 25_000),
    ] {
        let mut told = 0;
        Case { filter, made_for, unseen: 100_000 }.count(|wrong| {
            near(&wrong);
            // More than a hundred errors give the error rate with an accuracy of a fifth.
            told += u32::from(wrong.wrong > 100);
        });
        assert!(told >= 5, "{filter:?}: only {told} counts tell anything");
    }
}

/// Checks that a count differs from the computed number by at most its binomial error.
#[track_caller]
fn near(wrong: &Count) {
    let inexact = match wrong.case.filter {
        // This is the documented error of the formula.
        Filter::ScrapyRedisBloomfilter { .. } if !wrong.native => 0.03,
        _ => 0.0,
    };
    let off = deviations(wrong.wrong, wrong.case.unseen, wrong.computed, inexact);
    assert!(off < DEVIATIONS, "{off} deviations: {wrong:?}");
}

/// Returns the difference between a count and the number expected from the `computed` rate, in
/// standard deviations of the binomial distribution. Two parts of the difference do not count: the
/// share that the formula is known to ignore, and three keys. If less than one key is expected, a
/// single key would be many deviations.
fn deviations(wrong: u64, asked: u64, computed: f64, inexact: f64) -> f64 {
    let expected = computed * asked as f64;
    let allowed = inexact * expected + 3.0;
    let off = ((wrong as f64 - expected).abs() - allowed).max(0.0);
    off / (expected * (1.0 - computed)).sqrt().max(1.0)
}

#[track_caller]
fn same(shown: f64, computed: f64) {
    assert!(
        (shown / computed - 1.0).abs() < 1e-6,
        "{shown:e} is {computed:e}; run scripts/layouts"
    );
}
