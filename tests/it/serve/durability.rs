//! Additions that the daemon has answered survive any end of the daemon.

use redis::{Commands, cmd};
use rustix::process::Signal;

use super::{Running, Served, urls};
use crate::util::wait::SOON;

fn add(running: &Running, items: &[String]) -> Vec<bool> {
    let mut connection = running.connection();
    let mut madd = cmd("BF.MADD");
    madd.arg("demo").arg(items);
    madd.query(&mut connection).unwrap()
}

#[test]
fn additions_survive_every_end_with_every_sync_mode_and_kind() {
    for (kind, fsync) in [
        ("native", "interval"),
        ("native", "always"),
        ("redisbloom", "interval"),
        ("redisbloom", "never"),
    ] {
        let served = Served::new("demo")
            .set(&format!("filter.kind={kind}"))
            .set(&format!("storage.fsync={fsync}"))
            .set("storage.snapshot_bytes=4096");
        let items = urls(0..4000);
        for (round, part) in items.chunks(1000).enumerate() {
            let mut running = served.start();
            assert!(add(&running, part).iter().all(|&is_new| is_new), "{kind} {fsync}");
            let signal = if round % 2 == 0 { Signal::KILL } else { Signal::TERM };
            running.daemon.signal(signal);
            running.daemon.wait(SOON);
        }
        let running = served.start();
        assert!(add(&running, &items).iter().all(|&is_new| !is_new), "{kind} {fsync}");
        let count: u64 = running.connection().scard("demo").unwrap();
        assert_eq!(count, 4000);
    }
}
