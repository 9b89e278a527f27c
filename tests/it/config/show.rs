//! `urlseen config show`.

use std::fs;

use crate::util::binary::urlseen;

#[test]
fn every_value_shows_with_its_origin_and_without_passwords() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.toml"), "[crawl]\nname = 'news'\n[[drop]]\nhost = 'x'")
        .unwrap();
    let show = |arguments: &[&str]| {
        let arguments = ["config", "show", "--config", "a.toml"].iter().chain(arguments);
        let output = urlseen(arguments)
            .dir(folder.path())
            .env("URLSEEN_REDIS__URL", "redis://ann@localhost")
            .env("URLSEEN_REDIS_PASSWORD", "hunter2")
            .output();
        assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{output:?}");
        assert!(!output.text().contains("hunter2"), "{}", output.text());
        output.text().to_owned()
    };
    let rows = show(&["--changed", "--set", "filter.capacity=1e9"]);
    let rows: Vec<Vec<_>> = rows.lines().map(|row| row.split("  ").collect()).collect();
    let rows: Vec<Vec<_>> = rows
        .into_iter()
        .map(|row| row.into_iter().map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(
        rows,
        [
            ["crawl.name", "\"news\"", "a.toml:2:8"],
            ["redis.url", "\"redis://ann@localhost:6379/0\"", "environment URLSEEN_REDIS__URL"],
            ["filter.capacity", "1000000000", "--set filter.capacity"],
            ["[[drop]]", "host = \"x\"", "a.toml:3:1"],
            ["redis password", "***", "environment URLSEEN_REDIS_PASSWORD"],
        ]
    );
    let json: serde_json::Value = serde_json::from_str(&show(&["--json"])).unwrap();
    assert_eq!(json["values"]["source.key"]["value"], "news:discovered");
    assert_eq!(json["values"]["source.key"]["from"], "default");
    assert_eq!(json["passwords"]["redis"]["from"], "environment URLSEEN_REDIS_PASSWORD");

    // The output is a configuration with the same values.
    fs::write(folder.path().join("b.toml"), show(&["--toml"])).unwrap();
    let again = urlseen(["config", "show", "--config", "b.toml", "--toml"])
        .dir(folder.path())
        .env("URLSEEN_REDIS_PASSWORD", "hunter2")
        .output();
    let without_comments = |text: &str| {
        text.lines().map(|line| line.split("  #").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(without_comments(again.text()), without_comments(&show(&["--toml"])));
}
