//! Imports and exports of filters as files.

use std::fs;

use redis::Commands;
use rustix::process::Signal;
use urlseen_filter::redisbloom::{Filter, Reservation, dump};

use super::{DUMPS, Dump, Place, done, file_of, item, refused};
use crate::util::binary::{Run, urlseen};
use crate::util::redis::RedisServer;
use crate::util::wait::SOON;

#[test]
fn an_imported_filter_gives_the_same_answers_and_is_exported_byte_for_byte() {
    for dump in DUMPS.iter() {
        let place = Place::new();
        let file = place.write("in", &file_of(&dump.chunks()));
        done(&place.import("storage", &file));
        let others = format!("other-{}", dump.name);
        let lines: String = (0..20_000).map(|n| item(&others, n) + "\n").collect();
        let checked = place.command("check", "storage", &["-"]).stdin(lines).output();
        let seen = |line: &str| line.starts_with("seen\t");
        let seen: Vec<_> =
            (0..).zip(checked.text().lines()).filter(|(_, line)| seen(line)).collect();
        assert_eq!(seen.len(), dump.others_seen.len(), "{}", dump.name);
        assert!(seen.iter().all(|(n, _)| dump.others_seen.contains(n)), "{}", dump.name);
        done(&place.export("storage", &place.path("out")));
        assert!(fs::read(place.path("out")).unwrap() == fs::read(file).unwrap(), "{}", dump.name);
    }
}

/// Prepares a command of a crawl whose filter has the same parameters as the dump.
fn crawl(server: &RedisServer, place: &Place, dump: &Dump, command: &str) -> Run {
    let own = [
        format!("redis.url={}", server.url()),
        format!("storage.dir={}", place.path("storage").display()),
        "filter.kind=redisbloom".to_owned(),
        "source.batch=50".to_owned(),
        "storage.snapshot_bytes=4096".to_owned(),
    ];
    let all = own.into_iter().chain(dump.settings());
    all.fold(urlseen([command]), |run, setting| run.arg("--set").arg(setting))
}

/// The daemon and `BF.ADD` make equal filters from the same fingerprints, even if the daemon is
/// killed in the middle.
#[test]
fn a_crawl_and_the_server_fill_equal_filters() {
    for dump in DUMPS.iter() {
        let (place, server) = (Place::new(), RedisServer::start());
        let mut connection = server.connection();
        let items = dump.items();
        let (first, second) = items.split_at(items.len() / 2);
        let () = connection.rpush("demo:discovered", first).unwrap();
        let mut daemon = crawl(&server, &place, dump, "run").start();
        daemon.wait_for_line("this daemon has taken the lease", SOON);
        daemon.signal(Signal::KILL);
        daemon.wait(SOON);
        let () = connection.rpush("demo:discovered", second).unwrap();
        done(&crawl(&server, &place, dump, "run").arg("--drain").output());
        let out = place.path("out");
        done(&crawl(&server, &place, dump, "export").arg("--redisbloom-file").arg(&out).output());
        assert!(fs::read(out).unwrap() == file_of(&dump.chunks()), "{}", dump.name);
    }
}

#[test]
fn an_imported_filter_takes_further_items_like_redisbloom() {
    let dump = Dump::named("scaled");
    let place = Place::new();
    let file = place.write("in", &file_of(&dump.chunks()));
    done(&place.import("storage", &file));
    let mut model = dump.filter();
    let lines: Vec<String> = (0..3000).map(|n| item("more", n)).collect();
    let passed = place.command("filter", "storage", &[]).stdin(lines.join("\n") + "\n").output();
    done(&passed);
    for line in &lines {
        model.add(line.as_bytes()).unwrap();
    }
    let old =
        place.command("filter", "storage", &[]).stdin(dump.items().join("\n") + "\n").output();
    assert_eq!(old.text(), "", "all of them have been seen");
    done(&place.export("storage", &place.path("out")));
    let mut expected = Vec::new();
    dump::write(&model, &mut expected).unwrap();
    assert!(fs::read(place.path("out")).unwrap() == expected);
}

#[test]
fn urlseen_filter_makes_the_same_filters_as_redisbloom() {
    let place = Place::new();
    let made = ["--kind", "redisbloom", "--capacity", "100", "--error-rate", "0.01"];
    let lines: String = (0..1000).map(|n| item("piped", n) + "\n").collect();
    done(&place.command("filter", "storage", &made).stdin(lines.clone()).output());
    // The command needs no settings for an existing filter.
    let again = place.command("filter", "storage", &[]).stdin(lines).output();
    assert_eq!(again.text(), "");
    let other = place.command("filter", "storage", &["--kind", "native"]).stdin("").output();
    refused(&other, 2, "filter.kind is native, and the storage folder was made for redisbloom");
    done(&place.export("storage", &place.path("out")));
    let reservation = Reservation {
        capacity: "100".parse().unwrap(),
        error_rate: "0.01".parse().unwrap(),
        expansion: 2,
    };
    let mut model = Filter::reserve(reservation, 1 << 20).unwrap();
    (0..1000).for_each(|n| assert!(model.add(item("piped", n).as_bytes()).is_ok()));
    let mut expected = Vec::new();
    dump::write(&model, &mut expected).unwrap();
    assert!(fs::read(place.path("out")).unwrap() == expected);
}
