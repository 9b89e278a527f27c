//! Servers with RedisBloom, or with a part of its commands.

use super::fake::{Fake, RunError};
use super::{DUMPS, Dump, Place, done, refused};
use crate::util::binary::{Output, Run, urlseen};
use crate::util::redis::RedisServer;

/// Runs `urlseen COMMAND --redisbloom KEY`.
fn run(place: &Place, url: &str, command: &str, key: &str) -> Output {
    let settings = [
        format!("redis.url={url}"),
        format!("storage.dir={}", place.path("storage").display()),
        "filter.kind=redisbloom".to_owned(),
    ];
    let run = urlseen([command, "--redisbloom", key]);
    settings.iter().fold(run, |run: Run, setting| run.arg("--set").arg(setting)).output()
}

#[test]
fn a_filter_is_imported_and_exported_chunk_by_chunk() {
    for dump in DUMPS.iter() {
        let (place, server) = (Place::new(), Fake::start());
        server.put("old", dump.chunks());
        done(&run(&place, &server.url(), "import", "old"));
        done(&run(&place, &server.url(), "export", "new"));
        assert!(server.chunks("new").unwrap() == dump.chunks(), "{}", dump.name);
        refused(&run(&place, &server.url(), "export", "new"), 3, "the key new already exists");
        assert!(server.chunks("new").unwrap() == dump.chunks(), "the filter stays unchanged");
    }
}

#[test]
fn a_configuration_for_a_filter_is_written_and_its_commands_import_the_filter() {
    let (place, server) = (Place::new(), Fake::start());
    server.put("news:seen", Dump::named("scaled").chunks());
    let run = |arguments: &[&str]| urlseen(arguments).dir(place.path("")).output();
    let output = run(&["config", "init", "--redis", &server.url()]);
    done(&output);
    assert!(output.text().contains("news:seen: a filter of RedisBloom"), "{}", output.text());
    let import = "  urlseen import --redisbloom news:seen\n";
    assert!(output.text().contains(import), "{}", output.text());
    done(&run(&["import", "--redisbloom", "news:seen"]));
    // The substitute has no other commands that a daemon needs.
    done(&run(&["config", "check", "--offline"]));
    let shown = run(&["storage", "show"]);
    assert!(shown.text().contains("redisbloom"), "{}", shown.text());
}

#[test]
fn an_incomplete_key_is_removed_after_a_failed_export() {
    let (place, server) = (Place::new(), Fake::start());
    server.put("old", Dump::named("scaled").chunks());
    done(&run(&place, &server.url(), "import", "old"));
    for (chunk, failure, words) in [
        (0, RunError::Error, "received bad data"),
        (0, RunError::Closed, "the key new may be incomplete"),
        (2, RunError::Error, "1384 of 26824 bytes of the filter had been loaded; the key new was"),
        (2, RunError::Closed, "the key new was removed again"),
        (4, RunError::Closed, "11464 of 26824 bytes"),
    ] {
        server.fail(chunk, failure);
        refused(&run(&place, &server.url(), "export", "new"), 3, words);
        assert_eq!(server.chunks("new"), None, "{words}");
    }
    done(&run(&place, &server.url(), "export", "new"));
}

#[test]
fn a_key_without_a_filter_or_with_a_changing_one_is_refused() {
    let (place, server) = (Place::new(), Fake::start());
    refused(&run(&place, &server.url(), "import", "none"), 3, "there is no key none at unix");
    refused(&run(&place, &server.url(), "import", "list"), 3, "the key list holds a list");
    refused(&run(&place, &server.url(), "export", "list"), 3, "so it holds no filter");
    let mut chunks = Dump::named("scaled").chunks();
    chunks[2].1.pop();
    server.put("old", chunks);
    refused(&run(&place, &server.url(), "import", "old"), 3, "the dump of old: chunk 2");
    server.put("old", Dump::named("scaled").chunks());
    server.be_busy();
    refused(&run(&place, &server.url(), "import", "old"), 3, "changed the filter");
}

#[test]
fn a_server_without_the_module_is_reported() {
    let (place, server) = (Place::new(), RedisServer::start());
    server.cli(&["set", "text", "x"]);
    refused(&run(&place, &server.url(), "import", "text"), 3, "the key text holds a string");
    let file = place.write("in", &super::file_of(&Dump::named("scaled").chunks()));
    done(&place.import("storage", &file));
    refused(&run(&place, &server.url(), "export", "new"), 3, "it has no RedisBloom");
    assert_eq!(server.cli(&["exists", "new"]), "0");
}
