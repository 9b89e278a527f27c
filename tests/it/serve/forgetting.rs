//! Forgotten fingerprints: by `SREM`, by the list `forget.key`, and by `urlseen forget`.

use redis::Commands;
use rustix::process::Signal;

use super::{Served, urls};
use crate::util::binary::Output;
use crate::util::wait::SOON;

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
