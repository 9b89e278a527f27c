//! Limits of a crawl with several partitions.

use redis::Commands;

use super::{Crawl, fingerprints, key, partition_of};
use crate::util::wait::{SOON, wait_until};

#[test]
fn each_partition_lets_its_share_of_a_limit_through() {
    let crawl = Crawl::new();
    let rules = "[[limit]]\nname = 'hosts'\nby = 'host'\nmax = 100\n";
    std::fs::write(crawl.folder.path().join("config.toml"), rules).unwrap();
    let daemon = crawl.start(&[], &[0, 1, 2, 3]);
    let mut connection = crawl.connection();
    let mut pushed = [0; 4];
    for fingerprint in fingerprints(400) {
        pushed[partition_of(&fingerprint)] += 1;
        let source = key("demo:discovered", partition_of(&fingerprint));
        let item = format!(r#"{{"url": "http://a.x/", "fingerprint": "{fingerprint}"}}"#);
        connection.rpush::<_, _, ()>(source, item).unwrap();
    }
    let lengths = |connection: &mut redis::Connection, share: usize| {
        (0..4).all(|number| {
            let [sink, over] = ["demo:unseen", "demo:over-limit"].map(|name| key(name, number));
            let (passed, over): (usize, usize) =
                (connection.llen(sink).unwrap(), connection.hlen(over).unwrap());
            passed == share && over == pushed[number] - share
        })
    };
    wait_until(SOON, "a share of each partition", || lengths(&mut connection, 25));
    let raise = ["limits", "raise", "--limit", "hosts", "--group", "a.x", "--max", "200"];
    let raised = crawl.urlseen(&raise).output();
    assert_eq!(raised.code(), Some(0), "{raised:?}");
    let requeued = crawl.urlseen(&["limits", "requeue"]).output();
    assert_eq!(requeued.code(), Some(0), "{requeued:?}");
    assert_eq!(requeued.text().matches(" put back to").count(), 4);
    wait_until(SOON, "a larger share of each partition", || lengths(&mut connection, 50));
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.output(SOON).code(), Some(0));
}
