//! Common behaviour of all commands: exit status, and search for the configuration.
//!
//! An unreadable configuration file is wrong usage (status 2), not a failed file (status 3). Its
//! error is shown together with all other errors of the configuration, before the command starts.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::util::binary::{Output, urlseen};
use crate::util::redis::RedisServer;

/// Returns the lines of standard error.
fn said(output: &Output) -> Vec<&str> {
    output.stderr.lines().collect()
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file in a folder of ours");
    }
    folder
}

#[test]
fn wrong_use_is_explained_with_status_2() {
    for (arguments, reason) in [
        (&[][..], "Usage: urlseen <COMMAND>"),
        (&["rum"], "unrecognized subcommand 'rum'"),
        (&["run", "--drian"], "unexpected argument '--drian' found"),
        (&["run", "config.toml"], "unexpected argument 'config.toml' found"),
        (&["run", "--set"], "a value is required for '--set <KEY=VALUE>'"),
        (&["fingerprint", "--algorithm", "md5"], "possible values: scrapy, scrapy-2.6"),
    ] {
        let output = urlseen(arguments).output();
        assert_eq!(output.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(reason), "{arguments:?}: {}", output.stderr);
        assert_eq!(output.text(), "", "{arguments:?}");
    }
}

#[test]
fn help_goes_to_standard_output_and_ends_with_statuses_and_examples() {
    for arguments in [&["--help"][..], &["help"], &["run", "--help"], &["fingerprint", "-h"]] {
        let output = urlseen(arguments).output();
        assert_eq!((output.code(), output.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        let (_, foot) = output.text().split_once("Exit status:\n").expect("a foot");
        let (statuses, examples) = foot.split_once("\n\nExamples:\n").expect("examples");
        let statuses = statuses.lines().map(|line| line.trim_start().split(' ').next().unwrap());
        assert_eq!(statuses.collect::<Vec<_>>(), ["0", "1", "2", "3"], "{arguments:?}");
        assert!(examples.lines().all(|line| line.starts_with("  urlseen ")), "{examples}");
    }
}

#[test]
fn all_errors_of_a_configuration_are_shown_at_once_with_status_2() {
    let folder = folder(&[(
        "bad.toml",
        "[filter]\ncapacity = 0\ncapasity = 1\n[redis]\nurl = 'redis://ann:hunter2@host#insecure'",
    )]);
    let output = urlseen(["run", "--config", "bad.toml", "--set", "sink.emit=all"])
        .env("URLSEEN_LOG__LEVEL", "loud")
        .dir(folder.path())
        .output();
    assert_eq!((output.code(), output.text()), (Some(2), ""), "{output:?}");
    let starts = [
        "bad.toml:2:12: filter.capacity is 0; allowed: a whole number from 1 to",
        "bad.toml:3:1: there is no key filter.capasity; did you mean filter.capacity?",
        "bad.toml:5:7: redis.url is \"redis://***@host#insecure\": nothing may follow a #;",
        "environment URLSEEN_LOG__LEVEL: log.level is \"loud\"; allowed: error, warn,",
        "--set sink.emit: sink.emit is \"all\"; allowed: item, url, start-url",
        "5 problems in the configuration, nothing was started",
    ];
    let said = said(&output);
    assert_eq!(said.len(), starts.len(), "{}", output.stderr);
    for (line, start) in said.iter().zip(starts) {
        assert!(line.starts_with(start), "{line}\ndoes not begin with\n{start}");
    }
}

#[test]
fn a_configuration_that_cannot_be_read_is_wrong_use() {
    let folder = folder(&[("config.toml", "")]);
    for (file, reason) in [
        ("absent.toml", "absent.toml: cannot be read: No such file or directory"),
        (".", ".: cannot be read: Is a directory"),
    ] {
        let output = urlseen(["run", "--config", file]).dir(folder.path()).output();
        assert_eq!(output.code(), Some(2), "{output:?}");
        assert!(output.stderr.starts_with(reason), "{}", output.stderr);
        assert!(output.stderr.contains("\n1 problem in the configuration"), "{}", output.stderr);
    }
    fs::remove_file(folder.path().join("config.toml")).unwrap();
    fs::create_dir(folder.path().join("config.toml")).unwrap();
    let output = urlseen(["run"]).dir(folder.path()).output();
    assert_eq!(output.code(), Some(2), "{output:?}");
    assert!(output.stderr.starts_with("config.toml: cannot be read"), "{}", output.stderr);
}

/// Runs the daemon in `folder` until the source is empty.
fn drain(folder: &Path, arguments: &[&str], server: &RedisServer) -> Output {
    urlseen(["run", "--drain"].iter().chain(arguments))
        .env("URLSEEN_REDIS__URL", server.url())
        .env("URLSEEN_FILTER__CAPACITY", "1000")
        .dir(folder)
        .output()
}

#[test]
fn config_toml_is_read_if_it_exists_and_no_other_file_is_named() {
    let server = RedisServer::start();
    for name in ["demo", "near", "named"] {
        server.cli(&["RPUSH", &format!("{name}:discovered"), "https://example.com/"]);
    }
    let crawled = || {
        let unseen = |name: &&str| server.cli(&["LLEN", &format!("{name}:unseen")]) == "1";
        ["demo", "near", "named"].into_iter().filter(unseen).collect::<Vec<_>>()
    };
    let empty = folder(&[]);
    let full = folder(&[
        ("config.toml", "[crawl]\nname = 'near'"),
        ("other.toml", "[crawl]\nname = 'named'"),
    ]);
    for (folder, arguments, expected) in [
        (&empty, &[][..], &["demo"][..]),
        (&full, &["--config", "other.toml"], &["demo", "named"]),
        (&full, &[], &["demo", "near", "named"]),
    ] {
        let output = drain(folder.path(), arguments, &server);
        assert_eq!(output.code(), Some(0), "{output:?}");
        assert_eq!(crawled(), expected);
    }
}

#[test]
fn a_refusal_of_the_server_is_status_3() {
    let server = RedisServer::start_with(&["--requirepass", "hunter2"]);
    let empty = folder(&[]);
    let output = drain(empty.path(), &[], &server);
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.contains("URLSEEN_REDIS_PASSWORD"), "{}", output.stderr);
    let wrong = server.url_as("default", "wr0ng");
    let run = |url: &str| urlseen(["run", "--drain"]).env("URLSEEN_REDIS__URL", url);
    let output = run(&wrong).output();
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(!output.stderr.contains("wr0ng"), "{}", output.stderr);
    // The password from the environment replaces the wrong one.
    let output = run(&wrong).env("URLSEEN_REDIS_PASSWORD", "hunter2").output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
}

#[test]
fn bad_input_is_status_1_and_an_unreadable_file_is_status_3() {
    let output = urlseen(["fingerprint"]).stdin("https://example.com/\nno-scheme\n").output();
    assert_eq!(output.code(), Some(1), "{output:?}");
    assert_eq!(output.text().lines().nth(1), Some("-"));
    assert_eq!(said(&output).len(), 1, "{}", output.stderr);
    let output = urlseen(["fingerprint", "absent.txt"]).output();
    assert_eq!(output.code(), Some(3), "{output:?}");
    assert!(output.stderr.starts_with("urlseen: cannot open absent.txt: "), "{}", output.stderr);
}
