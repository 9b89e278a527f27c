//! Report of a replay, for people and as JSON.

use crate::analysis::{
    KeyRead, LaneReport, ReplayReport, Ruled, Suggestion, Suggestions, Tally, grouped, size,
};
use urlseen_engine::flow::reasons::Reason;

use crate::cli::prelude::*;

/// Maximum width of a rejected item in the report, in columns.
const SHOWN: usize = 60;

/// Prints the report as tables.
pub(super) fn print(report: &ReplayReport, out: &mut impl Write) -> io::Result<()> {
    let ReplayReport { tally, kinds, keys, exact_keys, exact_bytes, seconds, .. } = report;
    for KeyRead { key, kind, before, after, read } in keys {
        let key = printable(key.as_bytes(), None);
        write!(out, "{key}, a {kind}: {} read of {}", grouped(*read), grouped(*before))?;
        match after {
            Some(after) if after != before => writeln!(
                out,
                "; its length changed to {} during the replay: some items may be missing or \
                 counted twice",
                grouped(*after)
            )?,
            _ => writeln!(out)?,
        }
    }
    items(tally, *seconds, out)?;
    let verdicts = ["would pass", "would drop", "wrong drops", "computed", "error rate"];
    columns(out, kinds, verdicts, |lane| {
        [
            grouped(lane.unseen + tally.unfiltered),
            grouped(lane.seen),
            grouped(lane.wrong),
            expected(lane.wrong_computed),
            rate(lane.error_rate),
        ]
    })?;
    let sizes = ["fingerprints", "of capacity", "rate now", "the daemon", "in Redis"];
    columns(out, kinds, sizes, |lane| {
        let share = |capacity| format!("{:.1} %", 100.0 * lane.keys as f64 / capacity as f64);
        [
            grouped(lane.keys),
            lane.capacity.map_or_else(|| "-".to_owned(), share),
            rate(lane.error_rate_now),
            size(lane.daemon_bytes as f64),
            lane.redis_bytes.map_or_else(|| "-".to_owned(), |[least, _]| size(least as f64)),
        ]
    })?;
    for lane in kinds {
        notes(lane, out)?;
    }
    writeln!(
        out,
        "\nwrong drops are drops of new fingerprints. An exact set of {} fingerprints found them, \
         and took {} of memory",
        grouped(*exact_keys),
        size(*exact_bytes as f64)
    )
}

/// Prints a table with a row for each kind.
fn columns(
    out: &mut impl Write,
    kinds: &[LaneReport],
    heads: [&str; 5],
    cells: impl Fn(&LaneReport) -> [String; 5],
) -> io::Result<()> {
    let head = ("kind", heads.map(str::to_owned));
    let rows = kinds.iter().map(|lane| (lane.kind.name(), cells(lane)));
    writeln!(out)?;
    for (kind, [a, b, c, d, e]) in std::iter::once(head).chain(rows) {
        writeln!(out, "{kind:<38} {a:>13} {b:>13} {c:>11} {d:>11} {e:>11}")?;
    }
    Ok(())
}

fn items(tally: &Tally, seconds: f64, out: &mut impl Write) -> io::Result<()> {
    let Tally { items, unfiltered, again, new, rejected, given, given_bad, .. } = tally;
    let mut rows = Rows::new(out, CRAWL);
    rows.count("items", *items, paced(*items, seconds))?;
    for (form, &count) in &tally.forms {
        rows.count("", count, form)?;
    }
    if given + given_bad > 0 {
        rows.count("given", *given, "count as seen from the start")?;
    }
    rows.some("", *given_bad, "were given and are not fingerprints")?;
    rows.count("new", *new, "first occurrences")?;
    rows.count("again", *again, "later occurrences")?;
    rows.count("unchecked", *unfiltered, "would pass without a test")?;
    rules(&mut rows, &tally.passed)?;
    if !tally.dropped_by_rule.is_empty() {
        rows.count("dropped", tally.dropped, "by rules")?;
    }
    rules(&mut rows, &tally.dropped_by_rule)?;
    if !tally.over_limit_by_rule.is_empty() {
        rows.count("over limit", tally.over_limit, "unseen, and would not pass")?;
    }
    rules(&mut rows, &tally.over_limit_by_rule)?;
    if let Some(links) = tally.merged {
        rows.count("merged", links, "seen only by rules [[same]]")?;
    }
    rules(&mut rows, &tally.merged_by_rule)?;
    rows.count("rejected", *rejected, "")?;
    for Reason { words, items, place, item } in tally.rejects.iter() {
        let item = printable(&ItemSummary::of(item).text, Some(SHOWN));
        rows.count("", *items, format!("{words}; the first is {place}: {item}"))?;
    }
    Ok(())
}

/// Prints the number of items of each rule, and examples.
fn rules(rows: &mut Rows<impl Write>, tallies: &[Ruled]) -> io::Result<()> {
    for ruled in tallies {
        let words = format!("of these by the rule {:?}", ruled.rule);
        rows.count("", ruled.items, words)?;
        for item in ruled.examples() {
            rows.number("", "", printable(&ItemSummary::of(item).text, Some(SHOWN)))?;
        }
    }
    Ok(())
}

/// Prints notes about a kind.
fn notes(lane: &LaneReport, out: &mut impl Write) -> io::Result<()> {
    let LaneReport { kind, no_place, stopped, full_after, items, warning, .. } = lane;
    let notes = [
        full_after.map(|items| format!("reaches its capacity after {} items", grouped(items))),
        (*no_place > 0).then(|| {
            let count = grouped(*no_place);
            format!("would reject {count} more items, because it cannot store their fingerprints")
        }),
        warning.clone(),
        stopped.as_ref().map(|why| {
            let items = grouped(*items);
            format!("tested only {items} items, because a daemon would end there: {why}")
        }),
    ];
    notes.into_iter().flatten().try_for_each(|note| writeln!(out, "{kind}: {note}"))
}

fn rate(rate: f64) -> String {
    if rate == 0.0 { "0".to_owned() } else { format!("{rate:.2e}") }
}

/// Formats an expected number of drops, which can be a fraction.
fn expected(drops: f64) -> String {
    if drops >= 100.0 { format!("{drops:.0}") } else { format!("{drops:.2}") }
}

/// Maximum number of examples of a rule that are printed for people.
const EXAMPLES: usize = 3;

/// Prints suggested rules.
pub(super) fn suggestions(
    Suggestions { links, urls, rules }: &Suggestions,
    mut out: impl Write,
) -> io::Result<()> {
    let mut rows = Rows::new(&mut out, [9, 14]);
    rows.count("links", *links, format!("{} different URLs", grouped(*urls as u64)))?;
    for Suggestion { why, changes, saves, examples, .. } in rules {
        rows.count("saves", *saves, format!("of {} URLs: {why}", grouped(*changes)))?;
        for urls in examples.iter().take(EXAMPLES) {
            rows.number("", "", urls.join(" = "))?;
        }
    }
    if rules.is_empty() {
        return writeln!(out, "\nno rule would save many requests");
    }
    writeln!(out, "\n# Look at the examples, and paste the rules that fit into config.toml:")?;
    for Suggestion { toml, .. } in rules {
        writeln!(out, "\n{}", toml.trim_end())?;
    }
    Ok(())
}
