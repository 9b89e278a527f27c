//! Kind and error rate of a filter whose configuration does not set them.

use serde_json::Value;

use super::{Crawl, stop, urls};
use crate::util::redis::RedisServer;

/// Makes a crawl without settings, on this server.
fn crawl(server: RedisServer) -> Crawl {
    Crawl { server, settings: Vec::new(), user: None }
}

/// Returns the value and the origin of a key, as `urlseen config show` prints them.
fn shown(crawl: &Crawl, key: &str) -> [String; 2] {
    let output = crawl.command("config show", &["--json"]).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = &json["values"][key];
    [row["value"].to_string(), row["from"].as_str().unwrap().to_owned()]
}

#[test]
fn a_new_filter_grows_and_an_existing_folder_keeps_its_kind_and_error_rate() {
    let made = ["filter.kind=native", "filter.error_rate=1e-9", "filter.capacity=1000"];
    let made = made.into_iter().fold(crawl(RedisServer::start()), Crawl::set);
    made.push(&urls(0, 100));
    assert_eq!(made.drain().counts(), (100, [100, 0, 0, 0]));

    let kept = crawl(made.server).set("filter.capacity=1000");
    let folder = format!("storage folder {}", kept.storage_dir().display());
    let text = |value: &str, origin: &str| [value.to_owned(), origin.to_owned()];
    assert_eq!(shown(&kept, "filter.kind"), text("\"native\"", &folder));
    assert_eq!(shown(&kept, "filter.error_rate"), text("1e-9", &folder));
    kept.push(&urls(50, 100));
    assert_eq!(kept.drain().counts(), (100, [50, 50, 0, 0]));
    let other = kept.run(&["--drain", "--set", "filter.error_rate=1e-7"]).output();
    assert_eq!(other.code(), Some(2), "{other:?}");
    assert!(other.stderr.contains("made for 1e-9"), "{other:?}");

    let reset = |more: &[&str]| {
        let output = kept.command("storage reset", &[&["--yes"], more].concat()).output();
        assert_eq!(output.code(), Some(0), "{output:?}");
    };
    reset(&[]);
    assert_eq!(shown(&kept, "filter.kind"), text("\"native\"", &folder));
    reset(&["--set", "filter.kind=two-choice"]);
    kept.push(&urls(0, 3000));
    assert_eq!(kept.drain().counts(), (3000, [3000, 0, 0, 0]));
    assert_eq!(shown(&kept, "filter.kind"), text("\"two-choice\"", &folder));
    assert_eq!(shown(&kept, "filter.error_rate"), text("1e-7", &folder));
    let daemon = kept.start();
    let status = kept.command("status", &["--json"]).output();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["filter"]["limit"], 1_000_000_000);
    stop(daemon);
}

/// Each partition has a folder of its own, in the folder that the configuration names.
#[test]
fn the_folders_of_partitions_keep_their_kind() {
    let made = crawl(RedisServer::start()).set("partitions.count=2").set("filter.kind=exact");
    let drained = made.run(&["--drain"]).output();
    assert_eq!(drained.code(), Some(0), "{drained:?}");
    let kept = crawl(made.server).set("partitions.count=2");
    let folder = kept.storage_dir().join("0");
    let folder = format!("storage folder {}", folder.display());
    assert_eq!(shown(&kept, "filter.kind"), ["\"exact\"".to_owned(), folder]);
    let drained = kept.run(&["--drain"]).output();
    assert_eq!(drained.code(), Some(0), "{drained:?}");
}

/// Only in the memory of the daemon can a filter grow.
#[test]
fn a_filter_in_redis_is_native() {
    let crawl = crawl(RedisServer::start()).set("filter.place=redis").set("filter.capacity=1000");
    let text = |value: &str| [value.to_owned(), "default".to_owned()];
    assert_eq!(shown(&crawl, "filter.kind"), text("\"native\""));
    assert_eq!(shown(&crawl, "filter.error_rate"), text("1e-6"));
    crawl.push(&urls(0, 10));
    assert_eq!(crawl.drain().counts(), (10, [10, 0, 0, 0]));
}
