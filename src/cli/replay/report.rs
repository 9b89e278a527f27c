//! Report of a replay, for people and as JSON, and its plot.

use std::io::{self, Write};

use crate::admin::printable::{json_text, printable, stdout};
use serde_json::{Value, json};
use urlseen_analysis::{Axis, Plot, Scale, Series, Stroke};
use urlseen_analysis::{Ending, KeyRead, LaneReport, Point, Reason, Report, Tally};
use urlseen_engine::config::{Config, FilterPlace};

use super::super::start;
use urlseen_analysis::{DAEMON_BYTES, grouped, size};

/// Most characters of a rejected item that are shown.
const SHOWN: usize = 60;

/// Bytes that a fingerprint takes which a daemon remembers of a filter in Redis.
const RECENT_BYTES: u64 = 8;

/// Error rates at or below this are not drawn.
const LEAST: f64 = 1e-13;

/// Memory of a crawl with such a filter.
struct Memory {
    /// Bytes that the daemon takes.
    daemon: u64,
    /// Of Redis, the least and the most, where the filter is there.
    redis: Option<[u64; 2]>,
}

impl Memory {
    fn of(lane: &LaneReport, config: &Config) -> Self {
        // Below 2^53, and positive.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let beside = DAEMON_BYTES as u64;
        let remembered = config.filter.recent as u64 * RECENT_BYTES;
        // The configured place, where the kind can be in both.
        let is_shared = lane.kind.is_in(FilterPlace::Redis)
            && (config.filter.place == FilterPlace::Redis || !lane.kind.is_in(FilterPlace::Local));
        if is_shared {
            return Self { daemon: remembered + beside, redis: Some(lane.bytes) };
        }
        Self { daemon: lane.bytes[1] + beside, redis: None }
    }
}

/// Prints it on standard output.
pub(super) fn print(as_json: bool, report: &Report, config: &Config) -> anyhow::Result<()> {
    let mut out = stdout();
    if as_json {
        let text = serde_json::to_string(&to_json(report, config)?)?;
        writeln!(out, "{}", json_text(&text))?;
    } else {
        table(report, config, &mut out)?;
    }
    Ok(())
}

fn to_json(report: &Report, config: &Config) -> serde_json::Result<Value> {
    let Report { tally, kinds, keys, exact_keys, exact_bytes, seconds, ending } = report;
    let reject = |(reason, found): (&String, &Reason)| {
        let Reason { items, place, item } = found;
        let item = printable(item, Some(SHOWN));
        json!({ "reason": reason, "items": items, "place": place, "item": item })
    };
    let mut lanes = Vec::new();
    for lane in kinds {
        let Memory { daemon, redis } = Memory::of(lane, config);
        let mut value = serde_json::to_value(lane)?;
        value["error_rate"] = json!(lane.error_rate());
        value["filter_bytes"] = json!(lane.bytes[0]);
        value["daemon_bytes"] = json!(daemon);
        value["redis_bytes"] = json!(redis);
        lanes.push(value);
    }
    let Tally { items, forms, unfiltered, passed, again, new, rejected, without, .. } = tally;
    Ok(json!({
        "items": items,
        "forms": forms,
        "new": new,
        "again": again,
        "unfiltered": unfiltered,
        "passed": start::passed(config.pass, passed),
        "rejected": rejected,
        "rejects": tally.rejects.iter().map(reject).collect::<Vec<_>>(),
        "without_field": without,
        "given": tally.given,
        "given_bad": tally.given_bad,
        "keys": keys,
        "kinds": lanes,
        "exact_keys": exact_keys,
        "exact_bytes": exact_bytes,
        "seconds": seconds,
        "ending": match ending {
            Ending::Whole => "whole",
            Ending::Stopped => "stopped",
            Ending::OutOfMemory => "out-of-memory",
            Ending::Failed(_) => "failed",
        },
    }))
}

fn table(report: &Report, config: &Config, out: &mut impl Write) -> io::Result<()> {
    let Report { tally, kinds, keys, exact_keys, exact_bytes, seconds, .. } = report;
    for KeyRead { key, kind, before, after, read } in keys {
        let key = printable(key.as_bytes(), None);
        write!(out, "{key}, a {kind}: {} read of {}", grouped(*read), grouped(*before))?;
        match after {
            Some(after) if after != before => writeln!(
                out,
                "; it moved meanwhile and has {} now: some items may be missing, or have come \
                 twice",
                grouped(*after)
            )?,
            _ => writeln!(out)?,
        }
    }
    items(tally, *seconds, config, out)?;
    writeln!(
        out,
        "\n{:<38} {:>13} {:>13} {:>11} {:>11} {:>11}",
        "kind", "would pass", "would drop", "wrong drops", "computed", "error rate"
    )?;
    for lane in kinds {
        writeln!(
            out,
            "{:<38} {:>13} {:>13} {:>11} {:>11} {:>11}",
            lane.kind,
            grouped(lane.unseen + tally.unfiltered),
            grouped(lane.seen),
            grouped(lane.wrong),
            expected(lane.wrong_computed),
            rate(lane.error_rate()),
        )?;
    }
    writeln!(
        out,
        "\n{:<38} {:>13} {:>13} {:>11} {:>11} {:>11}",
        "kind", "fingerprints", "of capacity", "rate now", "the daemon", "in Redis"
    )?;
    for lane in kinds {
        let Memory { daemon, redis } = Memory::of(lane, config);
        let share = |capacity| format!("{:.1} %", 100.0 * lane.keys as f64 / capacity as f64);
        let redis = redis.map_or_else(|| "-".to_owned(), |[least, _]| size(least as f64));
        writeln!(
            out,
            "{:<38} {:>13} {:>13} {:>11} {:>11} {:>11}",
            lane.kind,
            grouped(lane.keys),
            lane.capacity.map_or_else(|| "-".to_owned(), share),
            rate(lane.error_rate_now),
            size(daemon as f64),
            redis,
        )?;
    }
    for lane in kinds {
        notes(lane, out)?;
    }
    writeln!(
        out,
        "\nwrong drops are those of fingerprints that never came before, by an exact set of {} \
         that took {} here",
        grouped(*exact_keys),
        size(*exact_bytes as f64)
    )
}

fn items(tally: &Tally, seconds: f64, config: &Config, out: &mut impl Write) -> io::Result<()> {
    let Tally { items, unfiltered, again, new, rejected, without, given, given_bad, .. } = tally;
    let mut row = |name: &str, count: u64, words: &str| {
        writeln!(out, "{name:<12} {:>15}   {words}", grouped(count))
    };
    let pace = *items as f64 / seconds.max(1e-9);
    row("items", *items, &format!("{seconds:.2} s, {pace:.0} a second"))?;
    for (form, &count) in &tally.forms {
        row("", count, form)?;
    }
    if given + given_bad > 0 {
        row("given", *given, "count as seen from the start")?;
    }
    if *given_bad > 0 {
        row("", *given_bad, "were to, and are no fingerprints")?;
    }
    row("new", *new, "never came before")?;
    row("again", *again, "came before")?;
    row("unchecked", *unfiltered, "would pass in any case")?;
    for passed in start::passed(config.pass, &tally.passed) {
        row("", passed.items, &printable(format!("by the rule {}", passed.rule).as_bytes(), None))?;
    }
    row("rejected", *rejected, "")?;
    for (reason, Reason { items, place, item }) in &tally.rejects {
        let reason = printable(reason.as_bytes(), None);
        let place = printable(place.as_bytes(), None);
        let item = printable(item, Some(SHOWN));
        row("", *items, &format!("{reason}; the first is {place}: {item}"))?;
    }
    if *without > 0 {
        row("without", *without, "entries of a stream that lack the field (--field)")?;
    }
    Ok(())
}

/// Prints notes about a kind.
fn notes(lane: &LaneReport, out: &mut impl Write) -> io::Result<()> {
    let LaneReport { kind, no_place, stopped, full_after, items, warning, .. } = lane;
    if let Some(full_after) = full_after {
        let after = grouped(*full_after);
        writeln!(out, "{kind}: holds what it is made for after {after} items")?;
    }
    if *no_place > 0 {
        let count = grouped(*no_place);
        writeln!(out, "{kind}: would reject {count} more, which it has no place for")?;
    }
    if let Some(warning) = warning {
        writeln!(out, "{kind}: {warning}")?;
    }
    if let Some(why) = stopped {
        let items = grouped(*items);
        writeln!(out, "{kind}: judged {items} items, where a daemon would have ended: {why}")?;
    }
    Ok(())
}

fn rate(rate: f64) -> String {
    if rate == 0.0 { "0".to_owned() } else { format!("{rate:.2e}") }
}

/// A number of drops that need not be whole.
fn expected(drops: f64) -> String {
    if drops >= 100.0 { format!("{drops:.0}") } else { format!("{drops:.2}") }
}

/// The error rates over the items: as counted, and as computed.
pub(super) fn plot(report: &Report, config: &Config) -> Plot {
    let mut series = Vec::new();
    for (colour, lane) in report.kinds.iter().enumerate() {
        let line = |words: &str, stroke, of: fn(&Point) -> f64| {
            let name = lane.kind.short();
            let points = lane.curve.iter().map(|point| (point.items as f64, of(point)));
            Series { name: format!("{name}, {words}"), colour, stroke, points: points.collect() }
        };
        series.push(line("counted", Stroke::Bold, Point::measured));
        series.push(line("computed", Stroke::Thin, Point::computed));
    }
    Plot {
        title: format!("{}: wrong drops as a share of what never came before", config.crawl.name),
        x: Axis { label: "items".to_owned(), scale: Scale::Linear },
        y: Axis { label: "error rate so far".to_owned(), scale: Scale::Log { least: LEAST } },
        series,
    }
}
