//! Configurations that do not fit a crawl with several partitions (rule C6).

use redis::Commands;

use super::Crawl;

/// Runs the daemon with these settings, and returns its refusal.
#[track_caller]
fn refused(crawl: &Crawl, settings: &[&str], status: i32) -> String {
    let set = settings.iter().flat_map(|&setting| ["--set", setting]);
    let arguments: Vec<_> = ["run", "--drain"].into_iter().chain(set).collect();
    let ran = crawl.urlseen(&arguments).output();
    assert_eq!(ran.code(), Some(status), "{settings:?}: {}", ran.stderr);
    ran.stderr
}

#[test]
fn another_number_of_partitions_or_another_filter_is_refused_while_the_crawl_exists() {
    let crawl = Crawl::new();
    assert_eq!(crawl.urlseen(&["run", "--drain"]).output().code(), Some(0));
    for (setting, found, wanted) in [
        ("partitions.count=8", "partitions 4", "has 8"),
        ("partitions.count=2", "partitions 4", "has 2"),
        ("partitions.count=1", "partitions 4", "has 1"),
        ("filter.kind=exact", "kind two-choice", "has exact"),
        ("fingerprint.algorithm=scrapy-redis", "algorithm scrapy", "has scrapy-redis"),
    ] {
        let said = refused(&crawl, &[setting], 3);
        assert!(said.contains(found) && said.contains(wanted), "{setting}: {said}");
    }
    let mut connection = crawl.connection();
    connection.hset::<_, _, _, ()>("urlseen:{demo:discovered}:crawl", "protocol", "99").unwrap();
    let said = refused(&crawl, &[], 3);
    assert!(said.contains("has protocol \"99\""), "{said}");
}

#[test]
fn a_crawl_with_one_partition_cannot_get_more() {
    let crawl = Crawl::new();
    let one = ["run", "--drain", "--set", "partitions.count=1"];
    assert_eq!(crawl.urlseen(&one).output().code(), Some(0));
    let said = refused(&crawl, &[], 3);
    assert!(said.contains("has partitions 1, and this configuration has 4"), "{said}");
}

#[test]
fn settings_that_several_partitions_cannot_have_are_refused_together() {
    let crawl = Crawl::new();
    let settings =
        ["source.key={demo}:discovered", "serve.listen=127.0.0.1:6390", "partitions.run=2-4"];
    let said = refused(&crawl, &settings, 2);
    for part in [
        "source.key is \"{demo}:discovered\", and partitions.count is 4",
        "serve.listen is \"127.0.0.1:6390\", and partitions.count is 4",
        "partitions.run names 4, and partitions.count is 4",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said = refused(&crawl, &["partitions.count=3"], 2);
    assert!(said.contains("allowed: a power of two from 1 to 256"), "{said}");
    let ran = crawl.urlseen(&["run", "--drain", "--partition", "4"]).output();
    assert_eq!(ran.code(), Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("the partitions have the numbers 0 to 3"), "{}", ran.stderr);
}
