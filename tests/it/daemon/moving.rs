//! Moving a native filter between a storage folder and Redis.

use std::path::Path;

use redis::Commands;

use super::{Crawl, LEASE, SINK, STATE, urls};

/// Options with which the filter of a crawl is in Redis instead of its folder.
const IN_REDIS: &[&str] = &["--set", "filter.place=redis"];

/// Makes a crawl with a native filter in its folder.
fn native() -> Crawl {
    Crawl::new().set("filter.kind=native")
}

fn drained(crawl: &Crawl, arguments: &[&str]) -> usize {
    let arguments = [&["--drain", "--json"][..], arguments].concat();
    super::Summary::of(crawl.run(&arguments).output()).count("unseen")
}

#[track_caller]
fn moved(crawl: &Crawl, command: &str, option: &str) -> String {
    let output = crawl.command(command, &[option]).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    output.text().to_owned()
}

/// Returns the strings of the filter in Redis, by shard.
fn strings(crawl: &Crawl) -> Vec<Vec<u8>> {
    let mut connection = crawl.connection();
    (0..256).map(|shard| connection.get(format!("demo:filter:{shard:02x}")).unwrap()).collect()
}

#[test]
fn a_filter_moves_to_redis_and_back_and_keeps_its_fingerprints() {
    let crawl = native();
    crawl.push(&urls(0, 1000));
    assert_eq!(drained(&crawl, &[]), 1000);
    let said = moved(&crawl, "export", "--to-redis");
    assert!(said.contains("1,000 fingerprints"), "{said}");

    // Some of these URLs are seen, and some are unseen.
    crawl.push(&urls(500, 1000));
    assert_eq!(drained(&crawl, IN_REDIS), 500);
    // The folder is older than Redis now, and the command reports that.
    crawl.push(&urls(0, 1));
    let behind = crawl.run(&["--drain"]).output();
    assert_eq!(behind.code(), Some(3), "{behind:?}");

    let occupied = crawl.command("import", &["--from-redis"]).output();
    assert_eq!(occupied.code(), Some(2), "{occupied:?}");
    assert!(occupied.stderr.contains("already holds a filter"), "{occupied:?}");
    std::fs::remove_dir_all(crawl.storage_dir()).unwrap();
    let said = moved(&crawl, "import", "--from-redis");
    assert!(said.contains("1,500 fingerprints"), "{said}");
    crawl.push(&urls(1000, 1000));
    assert_eq!(drained(&crawl, &[]), 500);
    let expected: Vec<_> = urls(0, 2000).into_iter().map(String::into_bytes).collect();
    assert_eq!(crawl.list(SINK), expected);
    assert!(!Path::new(&format!("{}.importing", crawl.storage_dir().display())).exists());
}

/// If two filters have the same seed, the same additions set the same bits in memory and in Redis.
#[test]
fn bits_are_the_same_in_both_places() {
    let here = native().set("filter.seed=7");
    here.push(&urls(0, 3000));
    here.drain();
    moved(&here, "export", "--to-redis");
    let there = native().set("filter.seed=7").set("filter.place=redis");
    there.push(&urls(0, 3000));
    there.drain();
    // A string in Redis ends with the last block that was set.
    for (shard, (here, there)) in strings(&here).iter().zip(strings(&there)).enumerate() {
        assert!(here.starts_with(&there), "shard {shard}");
        assert!(here[there.len()..].iter().all(|&byte| byte == 0), "shard {shard}");
    }
    let ones = |all: Vec<Vec<u8>>| all.concat().iter().map(|it| it.count_ones()).sum::<u32>();
    assert!(ones(strings(&here)) > 3000 * 10);
}

#[test]
fn an_interrupted_export_cannot_be_opened_and_is_repeated() {
    let crawl = native();
    crawl.push(&urls(0, 1000));
    crawl.drain();
    // This is the state after a kill in the middle of the export.
    let filter: String = crawl.connection().hget(STATE, "filter").unwrap();
    let definition = "urlseen:{demo:filter}:spec";
    let () = crawl.connection().hset(definition, "unfinished", &filter).unwrap();
    let () = crawl.connection().set("demo:filter:00", "some").unwrap();
    let half = crawl.run(&[&["--drain"], IN_REDIS].concat()).output();
    assert_eq!(half.code(), Some(3), "{half:?}");
    assert!(half.stderr.contains("is incomplete"), "{half:?}");
    moved(&crawl, "export", "--to-redis");
    crawl.push(&urls(0, 1001));
    assert_eq!(drained(&crawl, IN_REDIS), 1);
}

#[test]
fn an_existing_filter_is_not_overwritten() {
    let crawl = native();
    crawl.push(&urls(0, 10));
    crawl.drain();
    moved(&crawl, "export", "--to-redis");
    let before = crawl.dump();
    let again = crawl.command("export", &["--to-redis"]).output();
    assert_eq!(again.code(), Some(3), "{again:?}");
    assert!(again.stderr.contains("holds a filter demo:filter already"), "{again:?}");
    let () = crawl.connection().del(LEASE).unwrap();
    assert_eq!(crawl.dump(), before);
    let other = crawl.set("filter.kind=redisbloom");
    let refused = other.command("export", &["--to-redis"]).output();
    assert_eq!(refused.code(), Some(2), "{refused:?}");
}

#[test]
fn an_import_into_redis_is_refused_with_the_way_through_a_folder() {
    let crawl = native();
    let line = format!("{}\n", "5a".repeat(20));
    let refused = crawl.command("import", &["--set", "filter.place=redis"]).stdin(line.as_str());
    let refused = refused.output();
    assert_eq!(refused.code(), Some(2), "{refused:?}");
    assert!(refused.stderr.contains("export --to-redis"), "{refused:?}");
    assert!(!crawl.storage_dir().exists());
    let imported = crawl.command("import", &[]).stdin(line.as_str()).output();
    assert_eq!(imported.code(), Some(0), "{imported:?}");
    moved(&crawl, "export", "--to-redis");
    crawl.push(&["5a".repeat(20), "5b".repeat(20)]);
    assert_eq!(drained(&crawl, IN_REDIS), 1);
}

#[test]
fn a_set_is_printed_in_both_forms_and_imported_again() {
    let crawl = native().set("filter.place=redis").set("filter.kind=scrapy-redis");
    crawl.push(&urls(0, 5000));
    crawl.drain();
    let () = crawl.connection().sadd("demo:filter", "none").unwrap();
    let printed = |format: &str| {
        let arguments = ["--redis-set", "demo:filter", "--format", format];
        let output = crawl.command("export", &arguments).output();
        assert_eq!(output.code(), Some(1), "{}", output.stderr);
        assert!(
            output
                .stderr
                .contains("5,000 fingerprints of demo:filter; 1 members are not fingerprints")
        );
        output.stdout
    };
    let (hex, seen) = (printed("hex"), printed("requests-seen"));
    assert_eq!((hex.len(), seen.len()), (5000 * 41, 5000 * 22));
    for file in [hex, seen] {
        let other = native();
        let output = other.command("import", &["--json"]).stdin(file).output();
        assert_eq!(output.code(), Some(0), "{output:?}");
        other.push(&urls(0, 5001));
        assert_eq!(drained(&other, &[]), 1);
    }
    let none = crawl.command("export", &["--redis-set", "demo:unseen"]).output();
    assert_eq!(none.code(), Some(3), "{none:?}");
    assert!(none.stderr.contains("holds a list, and a set was expected"), "{none:?}");
}
