//! Text of an explanation, for people.

use std::io::{self, Write};

use urlseen_analysis::{Explained, LimitShown, Pair, RequestShown, StepShown};

use super::super::rows::{COMPARED, Rows};
use super::ExplainReport;
use crate::admin::printable::printable;

/// Prints a report on each item. If there are two items, prints their comparison first.
pub(super) fn print(
    reports: &[ExplainReport],
    between: Option<&Pair>,
    items: &[Vec<u8>],
    out: impl Write,
) -> io::Result<()> {
    let mut rows = Rows::new(out, COMPARED);
    if let Some(pair) = between {
        compared(&mut rows, reports[0].explained.algorithm, pair)?;
    }
    for (number, (report, item)) in reports.iter().zip(items).enumerate() {
        if number > 0 || between.is_some() {
            rows.gap()?;
        }
        self::report(&mut rows, report, item)?;
    }
    Ok(())
}

fn compared(rows: &mut Rows<impl Write>, algorithm: &str, pair: &Pair) -> io::Result<()> {
    let Pair { same, difference, rules } = pair;
    let shown = |side: &Option<String>| match side {
        Some(text) => format!("`{text}`"),
        None => "nothing".to_owned(),
    };
    let word = match same {
        Some(true) => "the same request",
        Some(false) => "different requests",
        None => "unknown: one of them has no fingerprint",
    };
    rows.row("the two are", format!("{algorithm:<13} {word}   (in use)"))?;
    let difference = difference.as_ref().map(|difference| {
        let (one, other) = (shown(&difference.one), shown(&difference.other));
        format!("   {}: {one} and {other}", difference.what)
    });
    rows.each("", difference)?;
    rows.each("rules", rules.iter().map(|rule| format!("{}: {}", rule.rule, rule.words)))
}

fn report(rows: &mut Rows<impl Write>, report: &ExplainReport, item: &[u8]) -> io::Result<()> {
    let ExplainReport { explained, answer, .. } = report;
    rows.row("item", printable(item, None))?;
    self::explained(rows, explained)?;
    if let Some(answer) = answer {
        let how_sure = Some(answer.how_sure.clone()).filter(|words| !words.is_empty());
        let said = format!("{}: {}", answer.verdict, answer.says);
        rows.each("seen", [said].into_iter().chain(how_sure))?;
    }
    Ok(())
}

fn explained(rows: &mut Rows<impl Write>, explained: &Explained) -> io::Result<()> {
    let Explained { form, request, unreadable, passes, steps, canonical, .. } = explained;
    rows.each("form", form)?;
    if let Some(RequestShown { method, url, body_bytes, verbatim_url }) = request {
        let body = match body_bytes {
            0 => "no body".to_owned(),
            bytes => format!("a body of {bytes} bytes"),
        };
        let verbatim = if *verbatim_url { ", meta.verbatim_url" } else { "" };
        rows.row("request", format!("{method} {url}, {body}{verbatim}"))?;
    }
    rows.each("steps", self::steps(steps))?;
    if let Some(canonical) = canonical {
        let words = if steps.is_empty() { ", unchanged" } else { "" };
        rows.row("canonical", format!("{canonical}{words}"))?;
    }
    rows.each("rules", self::steps(&explained.merged))?;
    rows.each("hashed", &explained.hashed)?;
    if let Some(given) = &explained.given {
        rows.row("given", format!("{given}: the item contains its fingerprint"))?;
    }
    let computed = explained.fingerprint.as_ref().filter(|_| explained.given.is_none());
    let computed = computed.map(|it| format!("{:<13} {it}   (in use)", explained.algorithm));
    rows.each("fingerprints", computed)?;
    let passes = passes.as_ref().map(|why| format!("unchecked and unrecorded: {why}"));
    rows.each("passes", passes)?;
    let dropped =
        explained.dropped_by.as_ref().map(|it| format!("the rule {it:?} ([[drop]]) fits"));
    rows.each("dropped", dropped)?;
    let limits = explained.limits.iter().map(|LimitShown { limit, group, max }| {
        format!("at most {max} of {group}, by the rule {limit:?}")
    });
    rows.each("limits", limits)?;
    rows.each("rejected", unreadable)
}

/// Returns the lines of changes to a URL.
fn steps(steps: &[StepShown]) -> impl Iterator<Item = String> {
    (1..).zip(steps).flat_map(|(number, step)| {
        let by = if step.by.is_empty() { String::new() } else { format!(" ({})", step.by) };
        [
            format!("{number}. {}: {}{by}", step.rule, step.words),
            format!("   - {}", step.before),
            format!("   + {}", step.after),
        ]
    })
}
