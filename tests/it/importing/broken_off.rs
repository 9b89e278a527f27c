//! Imports that are killed, and continue with the next command.

use std::path::Path;

use rustix::process::Signal;
use tempfile::TempDir;

use super::{Crawl, Imported, SET, hex, import_to, raw};
use crate::util::binary::Daemon;
use crate::util::wait::{SOON, wait_until};

/// Kills an import when it has written a checkpoint.
fn kill_midway(mut import: Daemon, state: &Path) {
    wait_until(SOON, "checkpoint", || checkpoints(state).is_some());
    import.signal(Signal::KILL);
    assert_eq!(import.wait(SOON).code(), None, "it ended before it was killed");
}

/// Returns the recorded checkpoints; `None` if there are none.
fn checkpoints(state: &Path) -> Option<String> {
    let notes = std::fs::read_to_string(state.join("notes")).ok()?;
    let (_, from) = notes.split_once("\"checkpoints\":[{")?;
    Some(from.split(']').next()?.to_owned())
}

#[test]
fn a_continued_import_continues_the_line_numbers() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("lines");
    let mut text: String = raw(0..500_000).map(|digest| format!("{}\n", hex(&digest))).collect();
    text.push_str("end");
    std::fs::write(&file, text).unwrap();
    let state = folder.path().join("storage");
    let arguments = ["--capacity", "1M", "--error-rate", "1e-12", file.to_str().unwrap()];
    kill_midway(import_to(&state, &arguments).start(), &state);
    let rest = Imported::of(import_to(&state, &arguments).output());
    let [read, _, _, bad] = rest.counts();
    assert!(0 < read && read < 500_000, "{rest:?}");
    assert_eq!((bad, rest.code), (1, Some(1)));
    assert_eq!(rest.summary["bad_first"][0]["line"], 500_001);
    assert_eq!(rest.summary["bad_first"][0]["offset"], 500_000 * 41);
    assert_eq!(rest.summary["keys"], 500_000);
}

#[test]
fn a_killed_import_of_a_set_continues() {
    const ALL: u64 = 400_000;
    let crawl = Crawl::new();
    let members: Vec<String> = raw(0..ALL).map(|digest| hex(&digest)).collect();
    crawl.add(&members);
    let state = crawl.state();
    let import = crawl.command("import", &["--redis-set", SET, "--algorithm", "scrapy"]).start();
    kill_midway(import, Path::new(&state));
    let rest = crawl.import(&["--redis-set", SET, "--algorithm", "scrapy"]);
    let [read, ..] = rest.counts();
    assert!(0 < read && read < ALL, "{rest:?}");
    let said = format!("an earlier import has read {} members of the set {SET}", ALL - read);
    assert!(rest.stderr.contains(&said), "{rest:?}");
    assert_eq!(rest.summary["keys"], ALL);
    // A set that was read to its end is read again, because it may have grown.
    crawl.import(&["--redis-set", SET, "--algorithm", "scrapy"]).check([ALL, 0, ALL, 0]);
}

#[test]
fn an_import_of_a_set_starts_again_if_its_cursor_is_invalid() {
    let mut crawl = Crawl::new();
    let members: Vec<String> = raw(0..200_000).map(|digest| hex(&digest)).collect();
    crawl.add(&members);
    let state = crawl.state();
    let import = crawl.command("import", &["--redis-set", SET, "--algorithm", "scrapy"]).start();
    kill_midway(import, Path::new(&state));
    // After a restart, the server returns the members in another order.
    crawl.server.restart();
    crawl.add(&members);
    let import = crawl.command("import", &["--redis-set", SET, "--algorithm", "scrapy"]).start();
    kill_midway_again(import, Path::new(&state));
    // A set that is smaller now counts as another set.
    crawl.server.cli(&["del", SET]);
    crawl.add(&members[..5_000]);
    let anew = crawl.import(&["--redis-set", SET, "--algorithm", "scrapy"]);
    assert_eq!((anew.counts()[0], anew.stderr.as_str()), (5_000, ""));
}

/// Kills an import after an earlier import has left a checkpoint. The killed import must have
/// started from the beginning, not from that checkpoint.
fn kill_midway_again(mut import: Daemon, state: &Path) {
    let before = checkpoints(state);
    wait_until(SOON, "another checkpoint", || checkpoints(state) != before);
    import.signal(Signal::KILL);
    assert_eq!(import.wait(SOON).code(), None, "it ended before it was killed");
    assert_eq!(import.stderr(), "");
}
