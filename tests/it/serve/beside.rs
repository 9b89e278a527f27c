//! Clients of `[serve]` and a queue in Redis that use the same filter.

use redis::Commands;
use rustix::process::Signal;

use super::{Running, urls};
use crate::daemon::Crawl;
use crate::util::wait::{SOON, wait_until};

const SINK: &str = "demo:unseen";

fn crawl() -> Crawl {
    Crawl::new().set("serve.listen=127.0.0.1:0").set("storage.fsync=always")
}

fn start(crawl: &Crawl) -> Running {
    let mut running = Running::of(crawl.run(&[]).start());
    running.daemon.wait_for_line("this daemon has taken the lease", SOON);
    running
}

/// The queue and clients send the same URLs at full speed. Each URL must be new exactly once.
#[test]
fn each_url_is_new_only_once_although_the_daemon_is_killed() {
    let crawl = crawl().set("source.batch=50");
    let all = urls(0..6000);
    let mut running = start(&crawl);
    let (mut given, mut unanswered) = (Vec::new(), Vec::new());
    crawl.push(&all);
    for (round, part) in all.rchunks(200).enumerate() {
        let mut clients = running.connection();
        for url in part {
            match clients.sadd::<_, _, bool>("demo", url) {
                Ok(true) => given.push(url.clone()),
                Ok(false) => {}
                Err(_) => unanswered.push(url.clone()),
            }
            if round % 8 == 5 && running.daemon.is_running() && url == &part[100] {
                running.daemon.signal(Signal::KILL);
                running.daemon.wait(SOON);
            }
        }
        if !running.daemon.is_running() {
            running = start(&crawl);
        }
    }
    let mut redis = crawl.connection();
    wait_until(SOON, "empty source", || {
        let left: usize = redis.llen("demo:discovered").unwrap();
        let processing: usize = redis.llen("urlseen:{demo:discovered}:processing").unwrap();
        left + processing == 0
    });
    let sink: Vec<String> = redis.lrange(SINK, 0, -1).unwrap();
    // A client without an answer does not know the result. All other URLs were new exactly once.
    let mut found: Vec<&String> = given.iter().chain(&sink).collect();
    let whole = found.len();
    found.sort();
    found.dedup();
    assert_eq!(found.len(), whole, "no URL is new twice");
    let missing = all.iter().filter(|url| found.binary_search(url).is_err());
    assert!(missing.clone().all(|url| unanswered.contains(url)), "{}", missing.count());
    assert!(!given.is_empty() && !sink.is_empty(), "both had a part");
}

#[test]
fn clients_get_answers_without_redis_and_after_a_rollback() {
    let mut crawl = crawl();
    let mut running = start(&crawl);
    let all = urls(0..300);
    crawl.push(&all[..100]);
    let mut redis = crawl.connection();
    wait_until(SOON, "commit", || redis.llen::<_, usize>(SINK).unwrap() == 100);
    let () = redis::cmd("SAVE").query(&mut redis).unwrap();
    crawl.push(&all[100..200]);
    // Without the answer to the commit, the daemon would assume that the commit never happened.
    wait_until(SOON, "the answer to the commit", || crawl.status()["counts"]["unseen"] == 200);
    crawl.server.kill();
    running.daemon.wait_for_line("Trying again in", SOON);
    let added: u64 = running.connection().sadd("demo", &all).unwrap();
    assert_eq!(added, 100, "what was committed is seen");
    crawl.server.restart();
    running.daemon.wait_for_line("Redis came back with older data", SOON);
    let test = || {
        let seen: Vec<bool> = running.connection().smismember("demo", &all).unwrap();
        seen.chunks(100).map(|part| part.iter().filter(|&&seen| seen).count()).collect::<Vec<_>>()
    };
    wait_until(SOON, "recovery", || test() == [100, 0, 100]);
}
