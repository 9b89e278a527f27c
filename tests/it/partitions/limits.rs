//! Limits of a crawl with several partitions.

use redis::Commands;

use super::{Crawl, fingerprints, key, partition_of};

/// Drains the crawl of a host that has the limit `max`. Returns the lengths of the sinks.
fn drain(crawl: &Crawl, max: usize) -> Vec<usize> {
    let rules = format!("[[limit]]\nname = 'hosts'\nby = 'host'\nmax = {max}\n");
    std::fs::write(crawl.folder.path().join("config.toml"), rules).unwrap();
    let mut connection = crawl.connection();
    for fingerprint in fingerprints(400) {
        let source = key("demo:discovered", partition_of(&fingerprint));
        let item = format!(r#"{{"url": "http://a.x/", "fingerprint": "{fingerprint}"}}"#);
        connection.rpush::<_, _, ()>(source, item).unwrap();
    }
    let output = crawl.urlseen(&["run", "--drain", "--json"]).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    crawl.sinks().iter().map(Vec::len).collect()
}

#[test]
fn each_partition_lets_its_share_of_a_limit_through() {
    let crawl = Crawl::new();
    assert_eq!(drain(&crawl, 100), [25; 4]);
    assert_eq!(drain(&crawl, 200), [50; 4], "dropped items pass when they come again");
}
