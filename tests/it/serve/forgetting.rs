//! Forgotten fingerprints: by `SREM`, by the list `forget.key`, and by `urlseen forget`.

use redis::{Commands, Connection};
use rustix::process::Signal;

use super::{Served, urls};
use crate::daemon::Crawl;
use crate::util::binary::Output;
use crate::util::wait::{SOON, wait_until};

#[test]
fn forgotten_urls_pass_once_more_also_after_a_kill() {
    for kind in ["native", "exact", "redisbloom"] {
        let served =
            Served::new("demo").set(&format!("filter.kind={kind}")).set("forget.max_len=60");
        let all = urls(0..200);
        let mut running = served.start();
        let mut client = running.connection();
        assert_eq!(client.sadd::<_, _, u64>("demo", &all).unwrap(), 200);
        assert_eq!(client.srem::<_, _, u64>("demo", &all[..50]).unwrap(), 50);
        assert_eq!(
            client.srem::<_, _, u64>("demo", &all[..50]).unwrap(),
            0,
            "all are forgotten already"
        );
        // A filter of the kind `exact` removes forgotten fingerprints, so it needs no list of them,
        // which would have a limit.
        if kind != "exact" {
            let full = client.srem::<_, _, u64>("demo", &all[50..100]).unwrap_err().to_string();
            assert!(full.contains("forget.max_len"), "{full}");
        }
        // A forgotten URL passes once, and then counts as seen again. Its place in the list becomes
        // free.
        assert_eq!(client.sadd::<_, _, u64>("demo", &all[..30]).unwrap(), 30);
        assert_eq!(client.sadd::<_, _, u64>("demo", &all[..30]).unwrap(), 0);
        assert_eq!(client.srem::<_, _, u64>("demo", &all[60..90]).unwrap(), 30);
        let verdicts = |output: &Output| {
            output.text().lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
        };
        let check = || served.command("check").arg(&all[40]).arg(&all[10]).output();
        let told: Vec<String> = verdicts(&check());
        assert_eq!(told, ["unseen", "seen"], "while it runs");
        running.daemon.signal(Signal::KILL);
        running.daemon.wait(SOON);

        let told: Vec<String> = verdicts(&check());
        assert_eq!(told, ["unseen", "seen"], "at rest");
        let running = served.start();
        let mut client = running.connection();
        let seen: Vec<bool> = client.smismember("demo", &all).unwrap();
        let unseen: Vec<usize> = (0..200).filter(|&number| !seen[number]).collect();
        assert_eq!(unseen, (30..50).chain(60..90).collect::<Vec<_>>(), "{kind}");
        assert_eq!(client.sadd::<_, _, u64>("demo", &all).unwrap(), 50);
        assert_eq!(client.sadd::<_, _, u64>("demo", &all).unwrap(), 0);
    }
}

#[test]
fn a_snapshot_has_the_forgotten_fingerprints() {
    let served = Served::new("demo")
        .set("storage.snapshot_bytes=4096")
        .set("filter.capacity=5000")
        .set("filter.threads=1");
    let all = urls(0..3000);
    let mut running = served.start();
    let mut client = running.connection();
    let _: u64 = client.sadd("demo", &all[..100]).unwrap();
    let _: u64 = client.srem("demo", &all[..100]).unwrap();
    let _: u64 = client.sadd("demo", &all[..50]).unwrap();
    // The additions below make the daemon take a snapshot, which covers all earlier changes.
    let has_snapshot = || {
        let files = std::fs::read_dir(served.storage_dir()).unwrap();
        files
            .filter(|file| {
                let name = file.as_ref().unwrap().file_name();
                name.to_string_lossy().starts_with("snapshot-")
                    && file.as_ref().unwrap().metadata().unwrap().len() > 20_000
            })
            .count()
            > 0
    };
    for part in all[100..].chunks(100) {
        let _: u64 = client.sadd("demo", part).unwrap();
    }
    wait_until(SOON, "snapshot", has_snapshot);
    running.daemon.signal(Signal::TERM);
    let status = running.daemon.wait(SOON);
    assert!(status.success(), "{}", running.daemon.stderr());
    drop(running);
    let running = served.start();
    let seen: Vec<bool> = running.connection().smismember("demo", &all).unwrap();
    let unseen: Vec<usize> = (0..3000).filter(|&number| !seen[number]).collect();
    assert_eq!(unseen, (50..100).collect::<Vec<_>>());
}

/// Forgets URLs by the list `forget.key` and by `urlseen forget`, with and without a running
/// daemon.
#[test]
fn urls_on_the_forget_list_pass_once_more() {
    let crawl = Crawl::new().set("forget.max_len=40");
    let all = urls(0..300);
    crawl.push(&all);
    crawl.drain();
    let mut redis = crawl.connection();
    let passed = |redis: &mut Connection| -> Vec<String> {
        let passed: Vec<String> = redis.lrange("demo:unseen", 0, -1).unwrap();
        let () = redis.del("demo:unseen").unwrap();
        passed
    };
    assert_eq!(passed(&mut redis), all);

    let () = redis.rpush("demo:forget", &[&all[7], "no:URL", &all[3], &all[7]]).unwrap();
    let said = crawl.command("forget", &[]).arg(&all[5]).arg("nothing at all").output();
    assert_eq!(
        (said.code(), said.text()),
        (Some(1), "1 items were pushed to the list demo:forget\n")
    );
    let daemon = crawl.start();
    let is_empty = |redis: &mut Connection| {
        let left: [usize; 2] = ["demo:forget", "urlseen:{demo:discovered}:forgetting"]
            .map(|list| redis.llen(list).unwrap());
        left == [0, 0]
    };
    wait_until(SOON, "empty list", || is_empty(&mut redis));
    let rejects: Vec<String> = redis.lrange("demo:rejected", 0, -1).unwrap();
    assert!(rejects.len() == 1 && rejects[0].contains("no:URL"), "{rejects:?}");
    crawl.push(&all);
    crawl.push(&all);
    wait_until(SOON, "commit", || redis.llen::<_, usize>("demo:unseen").unwrap() == 3);

    // There is room for only a part of these fingerprints, so the remaining ones wait in the list.
    let () = redis.rpush("demo:forget", &all[100..200]).unwrap();
    wait_until(SOON, "message", || daemon.stderr().contains("forget.max_len"));
    assert!(!is_empty(&mut redis));
    drop(daemon);
    assert_eq!(passed(&mut redis), [&all[3], &all[5], &all[7]].map(Clone::clone));
}

#[test]
fn a_start_processes_the_forget_list_before_the_first_item() {
    let crawl = Crawl::new();
    let all = urls(0..3000);
    crawl.push(&all);
    crawl.drain();
    let mut redis = crawl.connection();
    let () = redis.del("demo:unseen").unwrap();
    let () = redis.rpush("demo:forget", &all[..1500]).unwrap();
    crawl.push(&all);
    crawl.drain();
    let passed: Vec<String> = redis.lrange("demo:unseen", 0, -1).unwrap();
    assert_eq!(passed, &all[..1500]);
}
