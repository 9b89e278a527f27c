//! What the command prints, whole.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    plan: Plan,
}

fn printed(arguments: &[&str]) -> String {
    let command = Command::try_parse_from([&["plan"], arguments].concat()).unwrap();
    let mut out = Vec::new();
    print(&command.plan, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_tables_line_up_and_mark_what_is_chosen() {
    let printed = printed(&["--capacity", "1e9", "--error-rate", "1e-8"]);
    assert_eq!(printed, include_str!("../../../tests/vectors/plan-1e9-1e-8.txt"));
}

#[test]
fn json_says_the_same_and_holds_the_error_rate_at_capacity() {
    let printed = printed(&["--capacity", "100M", "--error-rate", "1e-6", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(json["capacity"], 100_000_000);
    let chosen: Vec<_> = json["layouts"].as_array().unwrap().iter().collect();
    let chosen: Vec<_> = chosen.into_iter().filter(|row| row["chosen"] == true).collect();
    assert_eq!(chosen.len(), 1);
    assert_eq!((&chosen[0]["lines"], &chosen[0]["k"]), (&2.into(), &18.into()));
    let full = json["growth"].as_array().unwrap().iter().find(|row| row["percent"] == 100);
    let rate = full.unwrap()["error_rate"].as_f64().unwrap();
    assert!((0.99e-6..=1e-6).contains(&rate), "{rate}");
}

#[test]
fn what_no_filter_can_hold_is_refused() {
    for (name, value) in [
        ("--capacity", "0"),
        ("--capacity", "1e13"),
        ("--capacity", "many"),
        ("--error-rate", "0.5"),
        ("--error-rate", "1e-13"),
    ] {
        let refused = Command::try_parse_from(["plan", name, value]).unwrap_err();
        assert_eq!(refused.kind(), clap::error::ErrorKind::ValueValidation, "{value}");
    }
}

#[test]
fn the_smallest_and_the_largest_are_planned() {
    assert!(printed(&["--capacity", "1"]).contains("32.0 KiB  <- chosen"));
    assert!(printed(&["--capacity", "1e12", "--error-rate", "1e-12"]).contains("TiB"));
}
const FILTER: [&str; 4] = ["--capacity", "10G", "--error-rate", "1e-8"];

/// Each command on the page stands above what it prints. `scripts/scale` writes it there.
#[test]
fn the_page_on_scale_shows_what_is_printed() {
    let page = include_str!("../../../docs/scale.md");
    let blocks: Vec<_> = page.split("\n    $ urlseen plan ").skip(1).collect();
    assert!(blocks.len() >= 3, "one, ten and a hundred thousand million URLs");
    for block in blocks {
        let mut lines = block.lines();
        let command = lines.next().unwrap();
        let shown = lines.map_while(|line| match line.strip_prefix("    ") {
            None => line.is_empty().then_some(""),
            line => line,
        });
        let shown = shown.collect::<Vec<_>>().join("\n");
        let printed = printed(&command.split_whitespace().collect::<Vec<_>>());
        assert_eq!(shown.trim_end(), printed.trim_end(), "run scripts/scale");
        assert_eq!(printed.matches("<- first limit").count(), 1);
    }
}

#[test]
fn json_has_the_needs_where_a_rate_is_given() {
    let json = |arguments: &[&str]| {
        let text = printed(&[&FILTER[..], arguments, &["--json"]].concat());
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    assert!(json(&[]).get("needs").is_none());
    let needs = json(&["--rate", "1M"])["needs"].take();
    assert_eq!(needs["full_after_seconds"], 100_000.0);
    let firsts = needs["resources"].as_array().unwrap().iter().filter(|row| row["first"] == true);
    assert_eq!(firsts.count(), 1);
}

#[test]
fn machines_are_added_until_every_resource_suffices() {
    let needs = |more: &[&str]| {
        let command = Command::try_parse_from([&["plan"], &FILTER[..], more].concat()).unwrap();
        command.plan.needs().unwrap()
    };
    // 10 thousand million at 1e-8 take 51 GiB.
    let small = needs(&["--memory", "16", "--rate", "1k"]);
    assert_eq!((small.daemons, small.redis_servers), (4, 1));
    assert!(small.resources[0].first);
    let large = needs(&["--memory", "64", "--rate", "1k"]);
    assert_eq!((large.daemons, large.redis_servers), (1, 1));
    // Each server has a source of its own, and so a daemon.
    let fast = needs(&["--rate", "20M", "--item", "tab"]);
    assert!(fast.redis_servers > 1 && fast.daemons >= fast.redis_servers);
    // What is seen is not pushed on, popped, or written down.
    let seen = needs(&["--unseen", "0", "--rate", "1M"]);
    assert!(seen.full_after_seconds.is_infinite() && seen.written_bytes_per_second == 0.0);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (name, value) in [
        ("--rate", "0"),
        ("--rate", "many"),
        ("--unseen", "1.5"),
        ("--item", "json"),
        ("--cores", "-1"),
    ] {
        let rate: &[&str] = if name == "--rate" { &[] } else { &["--rate", "1k"] };
        let option = format!("{name}={value}");
        let words = [&["plan"], rate, &[&option]].concat();
        let refused = Command::try_parse_from(words).unwrap_err();
        assert!(refused.to_string().contains(name), "{refused}");
    }
    assert!(Command::try_parse_from(["plan", "--cores", "8"]).is_err(), "cores of what?");
}
