//! Imports of files: formats, incomplete ends, invalid lines, compression.

use tempfile::TempDir;

use super::{Crawl, Imported, fingerprints, frames, hex, import_to, raw, urls};
use crate::pipe::gzip;
use crate::util::binary::urlseen;

/// Returns a `requests.seen` in the format of older versions of Scrapy.
fn lines(digests: impl Iterator<Item = [u8; 20]>) -> String {
    digests.map(|digest| format!("{}\n", hex(&digest))).collect()
}

fn unhex(digits: &str) -> [u8; 20] {
    std::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
}

#[test]
fn a_crawl_skips_fingerprints_imported_from_either_format() {
    let crawl = Crawl::new();
    assert_eq!(crawl.crawl(&urls(0..10)), urls(0..10));
    let binary = fingerprints(&urls(10..5_000));
    crawl.write("requests.seen", frames(binary.iter().map(|digits| unhex(digits))));
    crawl.import(&["requests.seen"]).check([4_990, 4_990, 0, 0]);
    let text = fingerprints(&urls(5..10_000)).join("\n");
    crawl.write("old", text);
    crawl.import(&["old"]).check([9_995, 5_000, 4_995, 0]);
    assert_eq!(crawl.crawl(&urls(0..10_010)), urls(10_000..10_010));
}

#[test]
fn many_files_compressed_or_not_and_standard_input_are_read_one_after_the_other() {
    let crawl = Crawl::new();
    crawl.write("frames", frames(raw(0..30_000)));
    crawl.write("frames.gz", gzip(&frames(raw(20_000..50_000))));
    let packed = zstd::encode_all(lines(raw(50_000..60_000)).as_bytes(), 1).unwrap();
    crawl.write("lines.zst", packed);
    let all = ["frames", "frames.gz", "-", "lines.zst"];
    let input = lines(raw(60_000..70_000)).replace('\n', "\r\n");
    let run = crawl.command("import", &["--json"]).args(&all).stdin(input);
    Imported::of(run.output()).check([80_000, 70_000, 10_000, 0]);
    let run = crawl.command("import", &["--json"]).stdin(frames(raw(70_000..70_001)));
    Imported::of(run.output()).check([1, 1, 0, 0]);
    crawl.write("empty", "");
    crawl.import(&["empty"]).check([0, 0, 0, 0]);
}

/// During an import, snapshots cover the growing log. A restart reads the snapshots.
#[test]
fn snapshots_are_taken_as_the_log_grows() {
    let mut crawl = Crawl::new();
    crawl.settings.push("storage.snapshot_bytes=1_000_000");
    crawl.write("frames", frames(raw(0..500_000)));
    crawl.import(&["frames"]).check([500_000, 500_000, 0, 0]);
    let show = urlseen(["storage", "show", "--json", "--storage", &crawl.state()]).output();
    let show: serde_json::Value = serde_json::from_slice(&show.stdout).unwrap();
    let newest = show["snapshots"].as_array().unwrap().last().unwrap();
    assert!(newest["keys"].as_u64() > Some(0), "{show}");
    crawl.write("again", frames(raw(0..500_001)));
    crawl.import(&["again"]).check([500_001, 1, 500_000, 0]);
}

/// Each import ends before the log can grow by `storage.snapshot_bytes`.
#[test]
fn the_log_of_many_short_imports_is_bounded() {
    let mut crawl = Crawl::new();
    crawl.settings = vec!["filter.capacity=10_000", "storage.snapshot_bytes=8192"];
    for number in 0..20 {
        crawl.write("frames", frames(raw(number * 100..(number + 1) * 100)));
        crawl.import(&["frames"]).check([100, 100, 0, 0]);
    }
    let logs = std::fs::read_dir(crawl.state()).unwrap().map(Result::unwrap);
    let logs = logs.filter(|entry| entry.file_name().to_string_lossy().starts_with("log"));
    let bytes: u64 = logs.map(|entry| entry.metadata().unwrap().len()).sum();
    assert!(bytes < 3 * 8192, "the 2,000 keys take {bytes} bytes of log");
}

/// Redis comes back with data from before the import. The folder can go back to that time, although
/// the import has taken more snapshots than are usually kept.
#[test]
fn a_crawl_can_go_back_to_its_state_before_an_import() {
    let mut crawl = Crawl::new();
    crawl.settings = vec![
        "filter.capacity=100_000",
        "filter.error_rate=1e-12",
        "storage.snapshot_bytes=100_000",
    ];
    assert_eq!(crawl.crawl(&urls(0..10)), urls(0..10));
    crawl.server.cli(&["save"]);
    for number in 0..5 {
        // Without a batch between two imports, each snapshot would replace the snapshot before it.
        let url = urls(10 + number..11 + number);
        assert_eq!(crawl.crawl(&url), url);
        let number = u64::from(number);
        crawl.write("frames", frames(raw(number * 10_000..(number + 1) * 10_000)));
        crawl.import(&["frames"]).check([10_000, 10_000, 0, 0]);
    }
    crawl.server.restart();
    assert_eq!(crawl.crawl(&urls(0..16)), urls(10..16));
    crawl.write("all", frames(raw(0..50_000)));
    crawl.import(&["all"]).check([50_000, 0, 50_000, 0]);
}

#[test]
fn an_incomplete_end_is_reported_and_all_before_it_is_imported() {
    let crawl = Crawl::new();
    let whole = frames(raw(0..1000));
    crawl.write("requests.seen", &whole[..whole.len() - 9]);
    let imported = crawl.import(&["requests.seen"]);
    assert_eq!((imported.counts(), imported.code), ([999, 999, 0, 1], Some(1)));
    let named = "urlseen: requests.seen, byte 21978: the last 13 bytes are an incomplete \
        fingerprint and are skipped; the crawl that wrote the file was probably killed\n";
    assert_eq!(imported.stderr, named);
    assert_eq!(imported.summary["bad_first"][0]["offset"], 21_978);
    // A restarted Scrapy appends to the incomplete end.
    let more = frames(raw(1000..2000));
    crawl.write("requests.seen", [&whole[..whole.len() - 9], &more].concat());
    let imported = crawl.import(&["requests.seen"]);
    assert_eq!(imported.code, Some(1));
    assert_eq!(imported.counts()[3], 1);
    crawl.write("all", [frames(raw(0..999)), more].concat());
    crawl.import(&["all"]).check([1999, 0, 1999, 0]);
}

#[test]
fn invalid_lines_are_reported_by_line_and_byte() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("lines");
    let digests = lines(raw(0..2));
    std::fs::write(&file, format!("{digests}\nhttp://a/\n{}abc", lines(raw(2..4)))).unwrap();
    let name = file.to_str().unwrap();
    let state = folder.path().join("storage");
    let imported = Imported::of(import_to(&state, &["--capacity", "1000", name]).output());
    assert_eq!((imported.counts(), imported.code), ([4, 4, 0, 2], Some(1)));
    let said = [
        format!("urlseen: {name}, line 4 (byte 83): not 32, 40 or 64 hex digits: 'http://a/'\n"),
        format!("urlseen: {name}, line 7 (byte 175): not 32, 40 or 64 hex digits: 'abc'\n"),
    ];
    assert_eq!(imported.stderr, said.concat());
    assert_eq!(imported.summary["bad_first"][1]["line"], 7);
    assert_eq!(imported.summary["bad_first"][1]["offset"], 175);
}

#[test]
fn an_import_makes_a_filter_that_grows() {
    let folder = TempDir::new().unwrap();
    let file = |numbers: std::ops::Range<u64>| {
        let path = folder.path().join(format!("from-{}", numbers.start));
        std::fs::write(&path, lines(raw(numbers))).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (first, second) = (file(0..3000), file(1000..4000));
    let state = folder.path().join("storage");
    let import = |arguments: &[&str]| Imported::of(import_to(&state, arguments).output());
    let made = ["--kind", "two-choice", "--capacity", "10", "--grow-to", "10k", "--error-rate"];
    let imported = import(&[&made[..], &["1e-9", &first]].concat());
    imported.check([3000, 3000, 0, 0]);
    // The error rate of the present keys, with 52 bits of each key in its shard.
    let rate = imported.summary["error_rate"].as_f64().unwrap();
    assert!((1e-10..3.1e-10).contains(&rate), "{rate}");
    import(&["--grow-to", "10000", &second]).check([3000, 1000, 2000, 0]);
    let refused = import_to(&state, &["--grow-to", "20000", &second]).output();
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("filter.grow_to"), "{refused:?}");
}

#[test]
fn a_file_of_another_format_is_refused_and_other_files_are_imported() {
    let crawl = Crawl::new();
    crawl.write("urls", "http://example.com/\n".repeat(1000));
    crawl.write("binary", [0, 0, 1, 2, 3]);
    crawl.write("good", lines(raw(0..10)));
    let imported = crawl.import(&["urls", "binary", "good"]);
    assert_eq!((imported.counts(), imported.code), ([10, 10, 0, 2], Some(1)));
    let said: Vec<&str> = imported.stderr.lines().collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("urlseen: urls, byte 0: neither lines of 32, 40 or 64 hex"));
    assert!(said[0].contains("'http://example.com/\\nhttp"), "{said:?}");
    assert!(said[1].starts_with("urlseen: binary, byte 0: neither"), "{said:?}");
    // With a stated format, the file is read in this format.
    let imported = crawl.import(&["--format", "hex", "urls"]);
    assert_eq!((imported.counts(), imported.code), ([0, 0, 0, 1000], Some(1)));
    assert!(imported.stderr.ends_with("… and 990 more that are not fingerprints\n"));
}
