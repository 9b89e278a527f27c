//! A filter that grows in a control group with little memory.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::Duration;

use redis::{Commands, Script};

use super::{Crawl, PROCESSING, READY, SINK, SOURCE, Summary, stop};
use crate::util::binary::Daemon;
use crate::util::memory::MemoryGroup;
use crate::util::wait::{SOON, wait_until};

/// Memory that a growing filter leaves free.
const SPARE: u64 = 64 << 20;

/// Memory that the daemon can take before its filter has to leave the rest free.
const ROOM: u64 = 8 << 20;

/// Number of fingerprints. They take more than [`ROOM`].
const ITEMS: usize = 1_300_000;

/// Longest time for work on all items. Debug builds on a busy machine need minutes.
const LONG: Duration = Duration::from_mins(20);

/// Number of digests that one script pushes.
const PART: usize = 50_000;

/// Key of the list of items until it is complete.
const PUSHED: &str = "pushed";

/// Pushes digests of numbers to a list.
const PUSH: &str = "
    for number = ARGV[1], ARGV[2] do redis.call('RPUSH', KEYS[1], redis.sha1hex(number)) end";

/// Starts the daemon in the group, and waits until it works.
fn start(crawl: &Crawl, group: &MemoryGroup) -> Daemon {
    let run = group.run(env!("CARGO_BIN_EXE_urlseen"), &["run"]);
    let mut daemon = crawl.configured(run, &crawl.server.url(), &["--json"]).start();
    daemon.wait_for_line(READY, SOON);
    daemon
}

/// Gives the source all items at once. So the source is empty when the daemon ends, and unread
/// items return to it, however many they are.
fn push(crawl: &Crawl) {
    let (script, mut connection) = (Script::new(PUSH), crawl.connection());
    for from in (0..ITEMS).step_by(PART) {
        let mut call = script.key(PUSHED);
        call.arg(from).arg(from + PART - 1).invoke::<()>(&mut connection).unwrap();
    }
    let () = connection.rename(PUSHED, SOURCE).unwrap();
}

/// Fails if the daemon is killed by the kernel, gives no warning before it ends, or loses or
/// repeats an item. If no control group can be made, as usual without root, the test says that it
/// tests nothing.
#[test]
fn a_filter_that_has_used_up_its_memory_ends_the_run_and_goes_on_with_more() {
    let group = match MemoryGroup::make() {
        Ok(group) => group,
        Err(why) => {
            // The output of `eprintln` would be shown only if the test failed.
            let untested =
                format!("NOT TESTED: a filter without memory, because this test {why}\n");
            return io::stderr().write_all(untested.as_bytes()).unwrap();
        }
    };
    let crawl = Crawl::new().set("filter.kind=two-choice").set("filter.grow_to=100_000_000");
    let crawl = crawl.set("filter.capacity=1").set("filter.threads=1");
    let daemon = start(&crawl, &group);
    group.limit(group.used() + SPARE + ROOM);
    push(&crawl);

    let full = Summary::of(daemon.output(LONG));
    assert_eq!((full.code, full.ending()), (Some(3), "full"), "{full:?}");
    let [warned, told, ended] = [
        "and still grows, and",
        "67108864 bytes must stay free",
        "and has no room for more: items without a verdict wait in the source. Give the process \
         more memory",
    ]
    .map(|part| full.stderr.find(part).unwrap_or_else(|| panic!("no {part:?}: {full:?}")));
    assert!(warned < told && told < ended, "{full:?}");
    let emitted = full.count("unseen");
    assert!((100_000..ITEMS).contains(&emitted), "{full:?}");
    assert_eq!((crawl.len(SINK), crawl.len(PROCESSING)), (emitted, 0));
    assert_eq!(crawl.len(SOURCE), ITEMS - emitted);

    // With as little memory, a further start also ends before it loses anything.
    let run = group.run(env!("CARGO_BIN_EXE_urlseen"), &["run"]);
    let again = crawl.configured(run, &crawl.server.url(), &["--json"]).start().output(LONG);
    assert_eq!(again.code(), Some(3), "{again:?}");
    assert_eq!(crawl.len(SINK) + crawl.len(SOURCE), ITEMS);

    group.limit(1 << 30);
    let daemon = start(&crawl, &group);
    wait_until(LONG, "empty source", || crawl.len(SINK) >= ITEMS);
    let rest = stop(daemon);
    assert_eq!(rest.count("seen"), 0, "{rest:?}");
    let sink: HashSet<_> = crawl.list(SINK).into_iter().collect();
    assert_eq!(sink.len(), ITEMS, "an item is in the sink twice");
}
