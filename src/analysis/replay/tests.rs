//! Tests that replay small files.

use std::io::Write;

use tempfile::NamedTempFile;

use super::*;
use urlseen_engine::flow::driver::Progress;
use urlseen_engine::flow::feed::Bad;
use urlseen_filter::choice::{End, FilterPlace, ItemForm};
use urlseen_filter::{FilterSpec, Kind};
use urlseen_fingerprint::Algorithm;

struct Silent;

impl Audience for Silent {
    fn say(&mut self, words: &str) {
        panic!("{words}");
    }

    fn bad(&mut self, bad: &Bad) {
        panic!("{bad}");
    }

    fn progress(&mut self, _: &Progress) {}
}

/// Replays these lines in batches of 7 items, with a filter of each of these kinds and this number
/// of threads.
fn replay(lines: &[u8], kinds: &[Kind], threads: usize) -> ReplayReport {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(lines).unwrap();
    let spec = |kind: &Kind| {
        let value = |name| match name {
            "filter.capacity" => Some("300".to_owned()),
            "filter.error_rate" => Some("0.05".to_owned()),
            name => kind.usual(name).map(str::to_owned),
        };
        let (parameters, fingerprint) = (kind.read(&value).unwrap(), Algorithm::Scrapy.into());
        let spec = FilterSpec { parameters, fingerprint };
        LaneSpec::new(&spec, FilterPlace::Local, 0).unwrap()
    };
    let address = RedisAddress::local();
    let setup = Setup {
        crawl: Crawl { address: &address, list: Source { take_from: End::Left }, batch: 7 },
        items: Options::new(ItemForm::Auto.into(), Algorithm::Scrapy),
        seed: Seed::new(3),
        specs: kinds.iter().map(spec).collect(),
        threads,
        seen: Vec::new(),
        input: Input::Files(vec![file.path().to_owned()], Records::Lines),
        most: None,
    };
    run(setup, &Arc::default(), &mut Silent).unwrap()
}

#[test]
fn the_number_of_threads_does_not_change_the_results() {
    let lines = (0..5000).map(|number| format!("http://a/{}", number % 3000));
    let lines = lines.collect::<Vec<_>>().join("\n");
    let kinds = ["native", "pyrebloom", "scrapy-redis"].map(|it| it.parse().unwrap());
    let one = replay(lines.as_bytes(), &kinds, 1);
    let five = replay(lines.as_bytes(), &kinds, 5);
    assert_eq!(one.kinds, five.kinds);
    assert_eq!((one.tally.items, one.tally.new, one.tally.again), (5000, 3000, 2000));
    let [native, pyrebloom, set] = &one.kinds[..] else { panic!("three kinds") };
    for lane in [native, pyrebloom] {
        assert_eq!(lane.unseen + lane.wrong, 3000, "{}", lane.kind);
        assert_eq!(lane.unseen + lane.seen, 5000, "{}", lane.kind);
        assert!(lane.keys >= lane.unseen - 100, "{}", lane.kind);
        let curve::CurvePoint { items, new, again, wrong, .. } = lane.curve[lane.curve.len() - 1];
        assert_eq!((items, new, again, wrong), (5000, 3000, 2000, lane.wrong));
        assert!(lane.full_after.is_some_and(|items| (300..400).contains(&items)));
    }
    // Such a small native filter has far more bits than its error rate requires.
    assert!(pyrebloom.wrong > 500, "{}", pyrebloom.wrong);
    assert_eq!((set.unseen, set.seen, set.wrong, set.keys), (3000, 2000, 0, 3000));
    assert_eq!((one.exact_keys, matches!(one.ending, ReplayEnding::Whole)), (3000, true));
}

#[test]
fn reasons_are_counted_and_their_first_items_are_located() {
    let lines = b"http://a/\n\n/a\nhttp://a/\xff\n/b\nhttp://a/b\xffc\n";
    let report = replay(lines, &[Kind::NATIVE], 2);
    let tally = &report.tally;
    assert_eq!((tally.items, tally.rejected, tally.new), (6, 5, 1));
    let found = |words: &str| {
        let reason = tally.rejects.iter().find(|it| it.words.contains(words)).unwrap();
        (reason.items, reason.place.rsplit(", ").next().unwrap().to_owned())
    };
    assert_eq!(found("empty"), (1, "line 2".to_owned()));
    assert_eq!(found("not absolute"), (2, "line 3".to_owned()));
    assert_eq!(found("not UTF-8"), (2, "line 4".to_owned()));
    assert_eq!(tally.forms, [("url", 5)].into_iter().collect());
}

#[test]
fn a_replay_that_exceeds_the_memory_is_refused() {
    let refused = check_memory(u64::MAX, 1 << 30).unwrap_err().to_string();
    assert!(refused.contains("the exact set 1.00 GiB"), "{refused}");
    assert!(check_memory(0, 0).is_ok());
}
