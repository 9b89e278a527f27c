//! Conversion of a native filter into a filter that grows: `urlseen storage convert`.

use std::fs;

use super::{Crawl, SINK, stop, urls};

/// Makes a crawl whose native filter has seen 1000 URLs, and then sets the kind `two-choice`.
fn seen() -> Crawl {
    let crawl = Crawl::new()
        .set("filter.kind=native")
        .set("filter.capacity=1000")
        .set("filter.error_rate=1e-9");
    crawl.push(&urls(0, 1000));
    assert_eq!(crawl.drain().counts(), (1000, [1000, 0, 0, 0]));
    crawl.set("filter.kind=two-choice").set("filter.grow_to=100_000")
}

fn convert(crawl: &Crawl) -> String {
    let output = crawl.command("storage convert", &[]).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.text().to_owned()
}

#[test]
fn a_converted_filter_grows_and_keeps_what_was_seen() {
    let crawl = seen();
    let refused = crawl.run(&["--drain"]).output();
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("urlseen storage convert"), "{refused:?}");
    let said = convert(&crawl);
    assert!(said.contains("over a frozen native filter with 1,000 fingerprints"), "{said}");
    assert!(convert(&crawl).contains("already holds a filter of the kind two-choice"));
    crawl.push(&urls(0, 5000));
    let summary = crawl.drain();
    assert_eq!(summary.counts(), (5000, [4000, 1000, 0, 0]), "{summary:?}");
    // The log and a snapshot have both filters.
    for _ in 0..2 {
        crawl.push(&urls(0, 5000));
        let crawl = crawl.drain();
        assert_eq!(crawl.counts(), (5000, [0, 5000, 0, 0]), "{crawl:?}");
    }
    let shown = crawl.command("storage show", &[]).output();
    assert!(shown.text().contains("over a frozen native filter"), "{shown:?}");
}

/// Rule G4: a tombstone hides a forgotten URL from the frozen filter, and is kept.
#[test]
fn urls_of_the_frozen_filter_can_be_forgotten_before_and_after_the_conversion() {
    let crawl = seen();
    let native = Crawl { server: crawl.server, settings: Vec::new(), user: None };
    let native = native.set("filter.capacity=1000").set("filter.error_rate=1e-9");
    let forget = |crawl: &Crawl, first| {
        let items = urls(first, 10);
        let items: Vec<&str> = items.iter().map(String::as_str).collect();
        let output = crawl.command("forget", &items).output();
        assert_eq!(output.code(), Some(0), "{output:?}");
    };
    forget(&native, 0);
    assert_eq!(native.drain().counts(), (0, [0, 0, 0, 0]));
    let crawl = native.set("filter.kind=two-choice").set("filter.grow_to=100_000");
    convert(&crawl);
    forget(&crawl, 500);
    crawl.push(&urls(0, 1000));
    assert_eq!(crawl.drain().counts(), (1000, [20, 980, 0, 0]));
    forget(&crawl, 0);
    crawl.push(&urls(0, 1000));
    assert_eq!(crawl.drain().counts(), (1000, [10, 990, 0, 0]));
    crawl.push(&urls(0, 1000));
    assert_eq!(crawl.drain().counts(), (1000, [0, 1000, 0, 0]));
}

#[test]
fn a_conversion_that_was_killed_is_completed() {
    let crawl = seen();
    let dir = crawl.storage_dir();
    let [aside, earlier] = [".converting", ".native"].map(|ending| {
        let mut name = dir.clone().into_os_string();
        name.push(ending);
        std::path::PathBuf::from(name)
    });
    // Files of a conversion that was killed before the new folder was complete.
    fs::create_dir(&aside).unwrap();
    fs::write(aside.join("header"), "incomplete").unwrap();
    fs::remove_file(aside.join("header")).unwrap();
    fs::write(aside.join("snapshot-aside"), "incomplete").unwrap();
    convert(&crawl);
    assert!(!aside.exists() && earlier.join("header").exists());
    // The state after the first of both renames.
    fs::rename(&dir, &aside).unwrap();
    assert!(convert(&crawl).contains("already holds a filter of the kind two-choice"));
    crawl.push(&urls(0, 1100));
    assert_eq!(crawl.drain().counts(), (1100, [100, 1000, 0, 0]));
    assert_eq!(crawl.len(SINK), 1100);
}

#[test]
fn only_a_native_filter_at_rest_can_be_converted() {
    let refused = |crawl: &Crawl, words: &str| {
        let output = crawl.command("storage convert", &[]).output();
        assert_ne!(output.code(), Some(0), "{output:?}");
        assert!(output.stderr.contains(words), "{words:?} in {output:?}");
    };
    let crawl = Crawl::new().set("filter.kind=native");
    refused(&crawl, "set filter.place = \"local\" and filter.kind = \"two-choice\"");
    let crawl = crawl.set("filter.kind=two-choice");
    refused(&crawl, "is new: it holds no filter");
    let exact = crawl.set("filter.kind=exact");
    exact.push(&urls(0, 10));
    exact.drain();
    let crawl = exact.set("filter.kind=two-choice");
    refused(&crawl, "has the kind exact, and only a native filter can be converted");
    let crawl = seen();
    let native = Crawl { server: crawl.server, settings: crawl.settings.clone(), user: None };
    let native = native.set("filter.kind=native");
    let daemon = native.start();
    let crawl = native.set("filter.kind=two-choice");
    refused(&crawl, "is in use by process");
    stop(daemon);
    convert(&crawl);
}
