//! Rules in the file, for the members that clients ask about.

use redis::Commands;

use super::{Running, Served};

#[test]
fn a_member_that_a_rule_drops_counts_as_seen_and_one_that_passes_as_unseen() {
    let served = Served::new("demo");
    let file = served.folder.path().join("rules.toml");
    let rules = "[[drop]]\nscheme = '^mailto$'\n[[pass]]\npath = '^/list/'\n";
    std::fs::write(&file, rules).unwrap();
    let running = Running::of(served.run().arg("--config").arg(&file).start());
    let mut client = running.connection();
    let members = ["mailto:a", "http://a/1", "http://a/list/", "mailto:b", "http://a/2"];
    for new in [[false, true, true, false, true], [false, false, true, false, false]] {
        let seen: Vec<bool> = client.smismember("demo", &members).unwrap();
        assert_eq!(seen, new.map(|is_new| !is_new));
        let added: u64 = client.sadd("demo", &members).unwrap();
        assert_eq!(added, new.iter().map(|&it| u64::from(it)).sum::<u64>());
    }
}
