//! Text of an explanation, for people.

use std::io::{self, Write};

use urlseen_analysis::{Explained, Pair, RequestShown, Spelling};

use super::ExplainReport;
use super::places::PlaceShown;
use crate::admin::printable::printable;

pub(super) fn print(
    reports: &[ExplainReport],
    between: Option<&Pair>,
    items: &[Vec<u8>],
    out: &mut impl Write,
) -> io::Result<()> {
    let mut rows = ExplainRows { out };
    for (report, item) in reports.iter().zip(items) {
        rows.report(report, item)?;
        if between.is_some() {
            writeln!(rows.out)?;
        }
    }
    between.map_or(Ok(()), |pair| rows.pair(pair))
}

struct ExplainRows<'a, W> {
    out: &'a mut W,
}

impl<W: Write> ExplainRows<'_, W> {
    /// A name and what is said of it.
    fn row(&mut self, name: &str, text: &str) -> io::Result<()> {
        writeln!(self.out, "{name:<14} {}", printable(text.as_bytes(), None))
    }

    /// Another line below it.
    fn more(&mut self, text: &str) -> io::Result<()> {
        self.row("", text)
    }

    fn report(&mut self, report: &ExplainReport, item: &[u8]) -> io::Result<()> {
        writeln!(self.out, "{:<14} {}", "item", printable(item, None))?;
        let ExplainReport { explained, places, answer, .. } = report;
        self.explained(explained)?;
        for (index, place) in places.iter().enumerate() {
            self.place(if index == 0 { "places" } else { "" }, place)?;
        }
        if let Some(answer) = answer {
            self.row("seen", &format!("{}: {}", answer.verdict, answer.says))?;
            if !answer.how_sure.is_empty() {
                self.more(&answer.how_sure)?;
            }
        }
        for (index, ignored) in explained.ignored.iter().enumerate() {
            self.row(if index == 0 { "ignored" } else { "" }, ignored)?;
        }
        self.spellings("the same", &explained.same)?;
        self.spellings("others", &explained.others)
    }

    fn explained(&mut self, explained: &Explained) -> io::Result<()> {
        let Explained { form, request, unreadable, passes, steps, canonical, .. } = explained;
        if let Some(form) = form {
            self.row("form", form)?;
        }
        if let Some(RequestShown { method, url, body_bytes, verbatim_url }) = request {
            let body = match body_bytes {
                0 => "no body".to_owned(),
                bytes => format!("a body of {bytes} bytes"),
            };
            let verbatim = if *verbatim_url { ", meta.verbatim_url" } else { "" };
            self.row("request", &format!("{method} {url}, {body}{verbatim}"))?;
        }
        for (number, step) in (1..).zip(steps) {
            let name = if number == 1 { "steps" } else { "" };
            let words = format!("{number}. {}: {} ({})", step.rule, step.words, step.by);
            self.row(name, &words)?;
            self.more(&format!("   - {}", step.before))?;
            self.more(&format!("   + {}", step.after))?;
        }
        if let Some(canonical) = canonical {
            let words = if steps.is_empty() { ", as it came" } else { "" };
            self.row("canonical", &format!("{canonical}{words}"))?;
        }
        if let Some(given) = &explained.given {
            self.row("given", &format!("{given}: the item brings its fingerprint along"))?;
        }
        for (index, computed) in explained.fingerprints.iter().enumerate() {
            let is_used = computed.fingerprint.is_some()
                && computed.fingerprint == explained.fingerprint
                && explained.given.is_none();
            let text = match (&computed.fingerprint, &computed.refused) {
                (Some(fingerprint), _) => fingerprint.clone(),
                (None, reason) => format!("none: {}", reason.as_deref().unwrap_or_default()),
            };
            let mark = if is_used { "   what the filter is asked for" } else { "" };
            let name = if index == 0 { "fingerprints" } else { "" };
            self.row(name, &format!("{:<13} {text}{mark}", computed.algorithm))?;
        }
        if let Some(passes) = passes {
            self.row("passes", &format!("unchecked and unrecorded: {passes}"))?;
        }
        if let Some(reason) = unreadable {
            self.row("rejected", reason)?;
        }
        Ok(())
    }

    fn place(&mut self, name: &str, place: &PlaceShown) -> io::Result<()> {
        let PlaceShown { kind, is_used, shard, bits, note } = place;
        let mut parts = Vec::new();
        parts.extend(shard.as_ref().map(|shard| format!("shard {shard}")));
        for bits in bits {
            let numbers: Vec<String> = bits.numbers.iter().map(u64::to_string).collect();
            let place = match (&bits.key, bits.block) {
                (Some(key), _) => format!("{key} bits "),
                (None, Some(block)) => format!("block {block} bits "),
                (None, None) => "bits ".to_owned(),
            };
            parts.push(place + &numbers.join(" "));
        }
        parts.extend(note.clone());
        let mark = if *is_used { "   (the filter's)" } else { "" };
        self.row(name, &format!("{kind}{mark}"))?;
        parts.iter().try_for_each(|part| self.more(&format!("   {part}")))
    }

    fn spellings(&mut self, name: &str, spellings: &[Spelling]) -> io::Result<()> {
        for (index, Spelling { item, differs }) in spellings.iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            self.row(name, &format!("{item}   ({differs})"))?;
        }
        Ok(())
    }

    fn pair(&mut self, pair: &Pair) -> io::Result<()> {
        for (index, verdict) in pair.verdicts.iter().enumerate() {
            let word = match verdict.same {
                Some(true) => "the same request",
                Some(false) => "different requests",
                None => "not known: one of them has no fingerprint",
            };
            let used = if verdict.is_used { "   (in use)" } else { "" };
            let name = if index == 0 { "the two are" } else { "" };
            self.row(name, &format!("{:<13} {word}{used}", verdict.algorithm))?;
            if let Some(difference) = &verdict.difference {
                let shown = |side: &Option<String>| match side {
                    Some(text) => format!("`{text}`"),
                    None => "nothing".to_owned(),
                };
                let (one, other) = (shown(&difference.one), shown(&difference.other));
                self.more(&format!("   {}: {one} and {other}", difference.what))?;
            }
        }
        for (index, rule) in pair.rules.iter().enumerate() {
            let name = if index == 0 { "rules" } else { "" };
            self.row(name, &format!("{}: {}", rule.rule, rule.words))?;
        }
        for (index, also) in pair.also.iter().enumerate() {
            self.row(if index == 0 { "ignored" } else { "" }, also)?;
        }
        Ok(())
    }
}
