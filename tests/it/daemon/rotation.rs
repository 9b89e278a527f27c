//! Rotation: an empty filter in place of the present one, `urlseen storage rotate`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread::{scope, sleep};
use std::time::Duration;

use redis::{Commands, Connection, cmd};
use rustix::process::Signal;
use serde_json::Value;

use super::{Crawl, READY, SINK, SOURCE, STATE, stop, urls};
use crate::util::binary::{Daemon, Output, Run, urlseen};
use crate::util::wait::{SOON, wait_until};

#[track_caller]
fn rotate(crawl: &Crawl, arguments: &[&str]) -> String {
    let output = crawl.command("storage rotate", arguments).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.text().to_owned()
}

/// Returns the folders beside the storage folder.
fn earlier(crawl: &Crawl) -> Vec<PathBuf> {
    let (dir, above) = (crawl.storage_dir(), crawl.server.folder());
    let files = fs::read_dir(above).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| *file != dir && file.join("header").exists()).collect()
}

fn shown(crawl: &Crawl) -> Value {
    let output = crawl.command("storage show", &["--json"]).output();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn filter(crawl: &Crawl) -> String {
    shown(crawl)["header"]["filter"].as_str().unwrap().to_owned()
}

fn check(folder: &std::path::Path, item: &str) -> Output {
    urlseen(["check", item, "--storage"]).arg(folder).output()
}

#[test]
fn a_running_daemon_goes_on_with_an_empty_filter_and_the_earlier_one_can_be_read() {
    let crawl = Crawl::new();
    let daemon = crawl.start();
    crawl.push(&urls(0, 500));
    crawl.wait_for_sink(500);
    let first = filter(&crawl);
    let said = rotate(&crawl, &[]);
    assert!(said.contains("holds an empty filter now"), "{said}");
    crawl.push(&urls(0, 1000));
    crawl.wait_for_sink(1500);
    let folders = earlier(&crawl);
    assert_eq!(folders.len(), 1, "{folders:?}");
    assert!(folders[0].to_string_lossy().ends_with(&first) && said.contains(&first), "{said}");
    assert_eq!(check(&folders[0], "http://example.com/499").code(), Some(0));
    assert_eq!(check(&folders[0], "http://example.com/500").code(), Some(1));
    assert_eq!(check(&crawl.storage_dir(), "http://example.com/999").code(), Some(0));
    // The counts go on.
    let summary = stop(daemon);
    assert_eq!(summary.counts(), (1500, [1500, 0, 0, 0]), "{summary:?}");
    // The next start finds the new filter.
    crawl.push(&urls(0, 1001));
    assert_eq!(crawl.drain().counts(), (1001, [1, 1000, 0, 0]));
}

#[test]
fn each_item_passes_exactly_once_for_each_filter() {
    const ROTATIONS: usize = 8;
    // One filter could hold everything, so none becomes overfull and loses items.
    const MOST: usize = 1_000_000;
    let crawl = Crawl::new().set("source.batch=50").set(&format!("filter.capacity={MOST}"));
    let daemon = crawl.start();
    let again = urls(MOST, 20);
    let mut pushed = 0;
    scope(|scope| {
        let rotations = scope.spawn(|| (0..ROTATIONS).for_each(|_| drop(rotate(&crawl, &[]))));
        while !rotations.is_finished() && pushed < MOST {
            crawl.push(&urls(pushed, 100));
            crawl.push(&again);
            pushed += 100;
            // A slow daemon could not process a long source in time.
            wait_until(SOON, "progress", || crawl.len(SOURCE) < 2000);
        }
        rotations.join().unwrap();
    });
    crawl.wait_until_idle();
    assert_eq!(earlier(&crawl).len(), ROTATIONS);
    let mut times: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for item in crawl.list(SINK) {
        *times.entry(item).or_default() += 1;
    }
    let summary = stop(daemon);
    let items = pushed + pushed / 100 * again.len();
    assert_eq!(summary.count("unseen") + summary.count("seen"), items, "{summary:?}");
    for url in &again {
        let times = times.remove(url.as_bytes()).unwrap_or_default();
        assert!((2..=ROTATIONS + 1).contains(&times), "{url} passed {times} times");
    }
    assert!(times.values().all(|&times| times == 1), "an item passed twice");
    assert_eq!(times.len(), pushed, "an item is lost");
}

#[test]
fn a_new_filter_has_the_parameters_of_the_configuration() {
    let crawl = Crawl::new();
    let file = crawl.server.folder().join("filter.toml");
    let write = |keys: &str| fs::write(&file, format!("[filter]\ncapacity = {keys}\n")).unwrap();
    let crawl = Crawl { server: crawl.server, settings: Vec::new(), user: None };
    let config = ["--config", file.to_str().unwrap()];
    let refused = |more: &[&str], words: &str| {
        let output = crawl.command("storage rotate", &[&config[..], more].concat()).output();
        assert!(output.code() == Some(3) && output.stderr.contains(words), "{output:?}");
    };
    write("20_000");
    let mut daemon = crawl.run(&[&config[..], &["--json"]].concat()).start();
    daemon.wait_for_line(READY, SOON);
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(10);
    // The next start would not know a parameter that only this command knows.
    refused(&["--set", "filter.error_rate=1e-9"], "filter.error_rate is 1e-9 for this command");
    write("0");
    let output = crawl.command("storage rotate", &config).output();
    assert_eq!(output.code(), Some(2), "{output:?}");
    write("50_000\nplace = \"redis\"");
    let output = crawl.command("storage rotate", &config).output();
    assert_eq!(output.code(), Some(2), "{output:?}");
    write("30_000\nkind = \"exact\"");
    rotate(&crawl, &config);
    let header = shown(&crawl)["header"].clone();
    assert_eq!(header["kind"], "exact", "{header}");
    crawl.push(&urls(0, 10));
    crawl.wait_for_sink(20);
    let summary = stop(daemon);
    assert_eq!(summary.counts(), (20, [20, 0, 0, 0]), "{summary:?}");
    crawl.push(&urls(0, 20));
    let drained = crawl.run(&[&config[..], &["--drain"]].concat()).output();
    assert_eq!(drained.code(), Some(0), "{drained:?}");
    assert_eq!(crawl.len(SINK), 30);
}

#[test]
fn a_filter_at_rest_is_rotated_and_the_earlier_one_can_be_deleted() {
    let crawl = Crawl::new();
    let refused = crawl.command("storage rotate", &[]).output();
    assert!(refused.stderr.contains("is new: it holds no filter"), "{refused:?}");
    assert!(!crawl.storage_dir().exists());
    crawl.push(&urls(0, 100));
    assert_eq!(crawl.drain().counts(), (100, [100, 0, 0, 0]));
    for daemon in [false, true] {
        let daemon = daemon.then(|| crawl.start());
        let refused = crawl.command("storage rotate", &["--drop"]).output();
        assert_eq!(refused.code(), Some(2), "{refused:?}");
        let said = rotate(&crawl, &["--drop", "--yes"]);
        assert!(said.contains("the earlier filter is deleted"), "{said}");
        assert_eq!(earlier(&crawl), Vec::<PathBuf>::new());
        if let Some(daemon) = daemon {
            stop(daemon);
        }
        crawl.push(&urls(0, 100));
        assert_eq!(crawl.drain().counts(), (100, [100, 0, 0, 0]));
    }
}

/// The state after a kill between the exchange of the folders and the first words to Redis.
#[test]
fn a_rotation_that_redis_does_not_know_of_is_completed() {
    let crawl = Crawl::new();
    crawl.push(&urls(0, 100));
    crawl.drain();
    let first = filter(&crawl);
    rotate(&crawl, &[]);
    let () = crawl.connection().hset(STATE, "filter", &first).unwrap();
    crawl.push(&urls(0, 200));
    assert_eq!(crawl.drain().counts(), (200, [200, 0, 0, 0]));
    let named: String = crawl.connection().hget(STATE, "filter").unwrap();
    assert_eq!(named, filter(&crawl));
    // A filter that is neither the present nor the replaced one is refused, as always.
    let () = crawl.connection().hset(STATE, "filter", "0123456789abcdef").unwrap();
    let refused = crawl.run(&["--drain"]).output();
    assert!(refused.stderr.contains("belongs to the filter 0123456789abcdef"), "{refused:?}");
}

/// Point 7 of ARCHITECTURE.md: the filter follows a rollback of Redis, also to a time before the
/// filter began.
#[test]
fn a_rotated_filter_follows_a_redis_that_went_back_to_before_the_rotation() {
    for snapshots in ["storage.snapshot_bytes=1048576", "storage.snapshot_bytes=4096"] {
        let mut crawl = Crawl::new().set(snapshots).set("source.batch=20");
        let daemon = crawl.start();
        crawl.push(&urls(0, 100));
        crawl.wait_until_idle();
        crawl.server.cli(&["save"]);
        crawl.push(&urls(100, 100));
        crawl.wait_until_idle();
        rotate(&crawl, &[]);
        crawl.push(&urls(0, 500));
        crawl.wait_until_idle();
        assert_eq!(crawl.len(SINK), 700);
        crawl.server.restart();
        wait_until(SOON, "recovery", || daemon.stderr().matches(READY).count() == 3);
        // Redis lost everything that the new filter had let through. So all URLs pass again.
        assert_eq!(crawl.len(SINK), 100);
        crawl.push(&urls(0, 500));
        crawl.wait_for_sink(600);
        crawl.push(&urls(0, 500));
        crawl.wait_until_idle();
        assert_eq!(crawl.len(SINK), 600);
        stop(daemon);
        crawl.push(&urls(0, 501));
        assert_eq!(crawl.drain().counts(), (501, [1, 500, 0, 0]));
    }
}

#[test]
fn a_daemon_that_is_killed_during_a_rotation_loses_and_repeats_nothing() {
    let crawl = Crawl::new().set("source.batch=50");
    let mut pushed = 0;
    for kill in 0..12 {
        let mut daemon = crawl.start();
        let before = filter(&crawl);
        scope(|scope| {
            scope.spawn(|| crawl.command("storage rotate", &[]).output());
            for _ in 0..4 {
                crawl.push(&urls(pushed, 100));
                pushed += 100;
            }
            // Some daemons are killed before, some during and some after the rotation.
            sleep(Duration::from_millis(4 * kill));
            daemon.signal(Signal::KILL);
            daemon.wait(SOON);
        });
        // The folder at the path is complete, with either filter.
        let (after, folders) = (filter(&crawl), earlier(&crawl));
        let is_kept = folders.iter().any(|it| it.to_string_lossy().ends_with(&before));
        assert!(after == before || is_kept, "{before}: {folders:?}");
    }
    crawl.drain();
    let mut sink = crawl.list(SINK);
    sink.sort_by_key(|item| (item.len(), item.clone()));
    let expected: Vec<_> = urls(0, pushed).into_iter().map(String::into_bytes).collect();
    assert!(sink == expected, "{} of {pushed}", sink.len());
    // The rest of a killed rotation does not hinder the next one.
    rotate(&crawl, &[]);
}

#[test]
fn a_rotation_without_redis_is_refused_and_the_daemon_goes_on() {
    let crawl = Crawl::new();
    let daemon = crawl.start();
    crawl.push(&urls(0, 100));
    crawl.wait_until_idle();
    crawl.server.pause();
    wait_until(SOON, "no Redis", || daemon.stderr().contains("Trying again"));
    let output = crawl.command("storage rotate", &[]).output();
    assert!(output.stderr.contains("does not answer, so the filter stays as it is"), "{output:?}");
    crawl.server.resume();
    crawl.push(&urls(0, 200));
    crawl.wait_for_sink(200);
    let summary = stop(daemon);
    assert_eq!(summary.counts(), (300, [200, 100, 0, 0]), "{summary:?}");
    assert_eq!(earlier(&crawl), Vec::<PathBuf>::new());
}

/// A filter in Redis is not rotated. It begins anew at another key.
#[test]
fn a_filter_in_redis_begins_anew_at_another_key() {
    let crawl = Crawl::new().set("filter.place=redis").set("filter.key=demo:may");
    crawl.push(&urls(0, 100));
    assert_eq!(crawl.drain().counts(), (100, [100, 0, 0, 0]));
    let refused = crawl.command("storage rotate", &[]).output();
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("set another filter.key, and run urlseen storage adopt"));
    let crawl = crawl.set("filter.key=demo:june");
    let refused = crawl.run(&["--drain"]).output();
    assert!(refused.stderr.contains("urlseen storage adopt"), "{refused:?}");
    let adopted = crawl.command("storage adopt", &[]).output();
    assert_eq!(adopted.code(), Some(0), "{adopted:?}");
    crawl.push(&urls(0, 110));
    assert_eq!(crawl.drain().counts(), (110, [110, 0, 0, 0]));
    let crawl = crawl.set("filter.key=demo:may");
    let check = |item| crawl.command("check", &[item]).output().code();
    assert_eq!(check("http://example.com/99"), Some(0));
    assert_eq!(check("http://example.com/109"), Some(1));
}

#[test]
fn another_folder_with_the_name_of_the_earlier_filter_is_not_replaced() {
    let crawl = Crawl::new();
    crawl.push(&urls(0, 100));
    crawl.drain();
    let first = filter(&crawl);
    let mut beside = crawl.storage_dir().into_os_string();
    beside.push(format!(".{first}"));
    let copied = Run::of("cp", ["-r"]).arg(crawl.storage_dir()).arg(&beside).output();
    assert_eq!(copied.code(), Some(0), "{copied:?}");
    for daemon in [false, true] {
        let daemon = daemon.then(|| crawl.start());
        let refused = crawl.command("storage rotate", &[]).output();
        assert_eq!(refused.code(), Some(3), "{refused:?}");
        assert!(refused.stderr.contains("rename or remove it"), "{refused:?}");
        if let Some(daemon) = daemon {
            crawl.push(&urls(0, 100));
            crawl.wait_until_idle();
            assert_eq!(stop(daemon).counts(), (100, [0, 100, 0, 0]));
        }
    }
}

/// Connects a client to the daemon.
fn client(daemon: &mut Daemon) -> Connection {
    let said = daemon.wait_for_line("clients can use the Redis protocol at ", SOON);
    let address = said.split(" at ").nth(1).unwrap().split(' ').next().unwrap();
    let client = redis::Client::open(format!("redis://{address}/")).unwrap();
    client.get_connection_with_timeout(SOON).unwrap()
}

#[test]
fn clients_are_told_the_parameters_of_the_present_filter() {
    let server = Crawl::new().server;
    let file = server.folder().join("filter.toml");
    let write = |filter: &str| fs::write(&file, format!("[filter]\n{filter}\n")).unwrap();
    let settings = ["serve.keys=seen", "serve.listen=127.0.0.1:0"].map(str::to_owned);
    let crawl = Crawl { server, settings: settings.to_vec(), user: None };
    let config = ["--config", file.to_str().unwrap()];
    write("kind = \"redisbloom\"\nexpansion = 3");
    let mut daemon = crawl.run(&config).start();
    let mut client = client(&mut daemon);
    let mut expansion = || -> [Option<u32>; 1] {
        cmd("BF.INFO").arg("seen").arg("expansion").query(&mut client).unwrap()
    };
    assert_eq!(expansion(), [Some(3)]);
    write("kind = \"redisbloom\"\nexpansion = 5");
    rotate(&crawl, &config);
    assert_eq!(expansion(), [Some(5)]);
    write("kind = \"native\"");
    rotate(&crawl, &config);
    assert_eq!(expansion(), [None]);
}

#[test]
fn clients_of_the_daemon_stay_connected() {
    for source in ["source.kind=list", "source.kind=none"] {
        let crawl = Crawl::new().set(source).set("serve.keys=seen");
        let crawl = crawl.set("serve.listen=127.0.0.1:0");
        let mut daemon = crawl.run(&[]).start();
        let mut client = client(&mut daemon);
        let mut add =
            |url: &str| -> usize { cmd("SADD").arg("seen").arg(url).query(&mut client).unwrap() };
        for _ in 0..3 {
            assert_eq!((add("http://a/"), add("http://a/")), (1, 0), "{source}");
            rotate(&crawl, &[]);
        }
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.wait(SOON).code(), Some(0));
    }
}
