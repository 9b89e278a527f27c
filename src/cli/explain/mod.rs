//! `urlseen explain`: explains the fingerprint and the verdict of an item.

mod answer;
mod passing;

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;

use crate::analysis::{Explained, LimitShown, Pair, RequestShown, StepShown, explain, pair};
use answer::AnswerShown;

use crate::cli::prelude::*;

/// Explain the fingerprint of an item and the verdict of the filter.
///
/// The command prints the form of the item, each step to its canonical URL, its fingerprint, and
/// the verdict with its certainty. With two items, it first prints whether and why they are the
/// same request.
///
/// For the verdict, the command asks the daemon, the storage folder or Redis, as `urlseen check`
/// does. It does not change the filter. If there is no filter, the verdict is `unknown`.
///
/// Examples:
/// ```text
/// urlseen explain https://example.com/a                            # one item
/// urlseen explain https://example.com/a https://EXAMPLE.com/a#top  # two items
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    folder: FolderOptions,
    /// Print the explanation as JSON
    #[arg(long)]
    json: bool,
    /// An item in the form of the source. `-` stands for standard input without its last line feed
    #[arg(value_name = "ITEM")]
    item: OsString,
    /// A second item, to compare with the first
    #[arg(value_name = "ITEM2")]
    other: Option<OsString>,
}

/// Explanation of an item, as `--json` prints it.
#[derive(Debug, Serialize)]
struct ExplainReport {
    item: ItemText,
    #[serde(skip)]
    bytes: Vec<u8>,
    #[serde(flatten)]
    explained: Explained,
    answer: Option<AnswerShown>,
}

/// Configuration and storage that the explanation of an item uses.
struct Subject {
    config: Config,
    /// Header of the storage folder, if it has one.
    header: Option<Header>,
    options: Options,
}

impl Subject {
    fn new(folder: &FolderOptions) -> anyhow::Result<Self> {
        let mut config = folder.locate()?;
        let header = folder_of(&config).map(urlseen_storage::header_of).transpose()?.flatten();
        if let Some(header) = &header {
            // Computes the fingerprint in the same way as those in the folder.
            config.computed_by(header.spec.filter.fingerprint.clone());
        }
        let options = Options { form: start::lenient_form(&config), ..start::items(&config) };
        Ok(Self { config, header, options })
    }

    fn report(&self, item: Vec<u8>) -> anyhow::Result<ExplainReport> {
        let mut report = ExplainReport::of(item, &self.options);
        if let Some(key) = &report.explained.key {
            report.answer = Some(AnswerShown::of(&report.bytes, key, self)?);
        }
        Ok(report)
    }
}

impl ExplainReport {
    /// Explains an item, without the verdict of a filter.
    fn of(bytes: Vec<u8>, options: &Options) -> Self {
        let (item, explained) = (ItemText::of(&bytes), explain(&bytes, options));
        Self { item, bytes, explained, answer: None }
    }
}

pub(super) fn run(args: &ExplainArgs) -> anyhow::Result<Outcome> {
    let subject = Subject::new(&args.folder)?;
    let items = std::iter::once(&args.item).chain(&args.other);
    let reports = items.map(|item| subject.report(bytes(item)?));
    let reports = reports.collect::<Result<Vec<_>, _>>()?;
    let between = between(&reports, &subject.options);
    let json = args.json.then(|| match &between {
        None => serde_json::to_string_pretty(&reports[0]),
        Some(pair) => serde_json::to_string_pretty(&json!({ "items": reports, "between": pair })),
    });
    answer(json.transpose()?, |out| print(&reports, between.as_ref(), out))?;
    let is_bad = |report: &ExplainReport| report.explained.unreadable.is_some();
    let is_unknown =
        |report: &ExplainReport| report.answer.as_ref().is_some_and(|answer| answer.has_failed);
    Ok(if reports.iter().any(is_bad) {
        Outcome::BadInput
    } else if reports.iter().any(is_unknown) {
        Outcome::Failed
    } else {
        Outcome::Done
    })
}

/// Prints the explanation of one or two items, without the verdict of a filter.
pub(super) fn print_explained(
    items: Vec<Vec<u8>>,
    options: &Options,
    out: impl Write,
) -> io::Result<()> {
    let reports = items.into_iter().map(|item| ExplainReport::of(item, options));
    let reports: Vec<_> = reports.collect();
    print(&reports, between(&reports, options).as_ref(), out)
}

/// Compares the items of two reports. Returns `None` for a single one.
fn between(reports: &[ExplainReport], options: &Options) -> Option<Pair> {
    let [one, other] = reports else { return None };
    Some(pair(&one.explained, &other.explained, options))
}

fn bytes(item: &OsString) -> io::Result<Vec<u8>> {
    if item != "-" {
        return Ok(item.clone().into_vec());
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes)?;
    // A pickle begins with 0x80, and a line feed at its end can belong to it.
    if bytes.last() == Some(&b'\n') && bytes.first() != Some(&0x80) {
        bytes.pop();
    }
    Ok(bytes)
}

/// Prints a report on each item. If there are two items, prints their comparison first.
fn print(reports: &[ExplainReport], between: Option<&Pair>, out: impl Write) -> io::Result<()> {
    let mut rows = Rows::new(out, COMPARED);
    if let Some(pair) = between {
        compared(&mut rows, reports[0].explained.algorithm, pair)?;
    }
    for (number, report) in reports.iter().enumerate() {
        if number > 0 || between.is_some() {
            rows.gap()?;
        }
        self::report(&mut rows, report)?;
    }
    Ok(())
}

fn compared(rows: &mut Rows<impl Write>, algorithm: &str, pair: &Pair) -> io::Result<()> {
    let Pair { same, other_form, difference, rules } = pair;
    let shown = |side: &Option<String>| match side {
        Some(text) => format!("`{text}`"),
        None => "nothing".to_owned(),
    };
    let word = |same| match same {
        Some(true) => "the same request",
        Some(false) => "different requests",
        None => "unknown: one of them has no fingerprint",
    };
    rows.row("the two are", format!("{algorithm:<13} {}   (in use)", word(*same)))?;
    let other = other_form.as_ref().map(|it| format!("{:<13} {}", it.form, word(it.same)));
    rows.each("", other)?;
    let difference = difference.as_ref().map(|difference| {
        let (one, other) = (shown(&difference.one), shown(&difference.other));
        format!("   {}: {one} and {other}", difference.what)
    });
    rows.each("", difference)?;
    rows.each("rules", rules.iter().map(|rule| format!("{}: {}", rule.rule, rule.words)))
}

fn report(rows: &mut Rows<impl Write>, report: &ExplainReport) -> io::Result<()> {
    let ExplainReport { bytes, explained, answer, .. } = report;
    rows.row("item", printable(bytes, None))?;
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
