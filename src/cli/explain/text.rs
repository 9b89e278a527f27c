//! Text of an explanation, for people.

use std::io::{self, Write};

use urlseen_analysis::{Computed, Explained, LimitShown, Pair, RequestShown, Spelling, StepShown};

use super::super::rows::{COMPARED, Rows};
use super::ExplainReport;
use crate::admin::printable::printable;

/// Prints a report on each item. If there are two items, prints their comparison first. A whole
/// report also has what is not in use, and other spellings.
pub(super) fn print(
    reports: &[ExplainReport],
    between: Option<&Pair>,
    items: &[Vec<u8>],
    is_whole: bool,
    out: impl Write,
) -> io::Result<()> {
    let mut rows = Rows::new(out, COMPARED);
    if let Some(pair) = between {
        compared(&mut rows, pair, is_whole)?;
    }
    for (number, (report, item)) in reports.iter().zip(items).enumerate() {
        if number > 0 || between.is_some() {
            rows.gap()?;
        }
        self::report(&mut rows, report, item, is_whole)?;
    }
    Ok(())
}

fn compared(rows: &mut Rows<impl Write>, pair: &Pair, is_whole: bool) -> io::Result<()> {
    let Pair { verdicts, rules, also, .. } = pair;
    let shown = |side: &Option<String>| match side {
        Some(text) => format!("`{text}`"),
        None => "nothing".to_owned(),
    };
    let verdicts = verdicts.iter().filter(|verdict| is_whole || verdict.is_used);
    let verdicts = verdicts.flat_map(|verdict| {
        let word = match verdict.same {
            Some(true) => "the same request",
            Some(false) => "different requests",
            None => "unknown: one of them has no fingerprint",
        };
        let used = if verdict.is_used { "   (in use)" } else { "" };
        let difference = verdict.difference.as_ref().map(|difference| {
            let (one, other) = (shown(&difference.one), shown(&difference.other));
            format!("   {}: {one} and {other}", difference.what)
        });
        [format!("{:<13} {word}{used}", verdict.algorithm)].into_iter().chain(difference)
    });
    rows.each("the two are", verdicts)?;
    rows.each("rules", rules.iter().map(|rule| format!("{}: {}", rule.rule, rule.words)))?;
    rows.each("ignored", also.iter().filter(|_| is_whole))
}

fn report(
    rows: &mut Rows<impl Write>,
    report: &ExplainReport,
    item: &[u8],
    is_whole: bool,
) -> io::Result<()> {
    let ExplainReport { explained, answer, .. } = report;
    rows.row("item", printable(item, None))?;
    self::explained(rows, explained, is_whole)?;
    if let Some(answer) = answer {
        let how_sure = Some(answer.how_sure.clone()).filter(|words| !words.is_empty());
        let said = format!("{}: {}", answer.verdict, answer.says);
        rows.each("seen", [said].into_iter().chain(how_sure))?;
    }
    if !is_whole {
        return Ok(());
    }
    rows.each("ignored", &explained.ignored)?;
    let spelling = |Spelling { item, differs }: &Spelling| format!("{item}   ({differs})");
    rows.each("the same", explained.same.iter().map(spelling))?;
    rows.each("others", explained.others.iter().map(spelling))
}

fn explained(rows: &mut Rows<impl Write>, explained: &Explained, is_whole: bool) -> io::Result<()> {
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
    let is_used = |computed: &Computed| {
        computed.fingerprint.is_some()
            && computed.fingerprint == explained.fingerprint
            && explained.given.is_none()
    };
    let computed = explained.fingerprints.iter().filter(|it| is_whole || is_used(it));
    let computed = computed.map(|computed| {
        let text = match (&computed.fingerprint, &computed.refused) {
            (Some(fingerprint), _) => fingerprint.clone(),
            (None, reason) => format!("none: {}", reason.as_deref().unwrap_or_default()),
        };
        let mark = if is_used(computed) { "   (in use)" } else { "" };
        format!("{:<13} {text}{mark}", computed.algorithm)
    });
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
