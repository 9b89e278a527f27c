//! `urlseen config test`: compares examples of URLs with what the rules do.

use crate::analysis::{Explained, explain, pair};
use serde::Deserialize;
use toml::Spanned;

use crate::cli::explain::print_explained;
use crate::cli::prelude::*;
use crate::config::DEFAULT_FILE;

/// Check examples of URLs against the rules of the configuration.
///
/// An example is a table `[[test]]` in the configuration file, or in a file of its own. It has a
/// `url`, and at least one of these keys:
///
/// ```text
/// fate = "unseen"       its fate by an empty filter: unseen, unfiltered, dropped or rejected
/// rule = "archives"     a rule for it, by the name in `urlseen explain`
/// same_as = "URL"       another URL with the same fingerprint
/// differs_from = "URL"  another URL with another fingerprint
/// ```
///
/// The command needs neither Redis nor a filter. It prints all wrong examples, and explains the
/// first one. If there are any, the exit status is 1.
///
/// Examples:
/// ```text
/// urlseen config test
/// urlseen config test --config news.toml urls.toml  # with examples in a file of their own
/// ```
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ConfigTestArgs {
    #[command(flatten)]
    settings: Settings,
    /// Files with examples. Default: the configuration file
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Examples of a file. Other tables are those of the configuration.
#[derive(Deserialize)]
struct Examples {
    #[serde(default)]
    test: Vec<Spanned<Example>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    url: String,
    fate: Option<Fate>,
    rule: Option<String>,
    same_as: Option<String>,
    differs_from: Option<String>,
}

/// Fate of a URL that the filter has not seen, with the words of `urlseen tap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Fate {
    Unseen,
    Unfiltered,
    Dropped,
    Rejected,
}

impl Fate {
    fn of(explained: &Explained) -> Self {
        let Explained { dropped_by, unreadable, passes, .. } = explained;
        match (dropped_by, unreadable, passes) {
            (Some(_), ..) => Self::Dropped,
            (_, Some(_), _) => Self::Rejected,
            (.., Some(_)) => Self::Unfiltered,
            _ => Self::Unseen,
        }
    }
}

/// Example that is wrong: the reasons, and the items that explain it.
struct WrongExample {
    reasons: Vec<String>,
    items: Vec<Vec<u8>>,
}

impl Example {
    /// Compares the example with what the rules do. Returns `None` if it is right.
    fn check(&self, options: &Options) -> Option<WrongExample> {
        let Self { url, fate, rule, same_as, differs_from } = self;
        let explained = explain(url.as_bytes(), options);
        let mut wrong = WrongExample { reasons: Vec::new(), items: vec![url.clone().into_bytes()] };
        let found = Fate::of(&explained);
        if let Some(fate) = fate.filter(|&fate| fate != found) {
            wrong.reasons.push(format!("its fate is {found:?}, not {fate:?}").to_lowercase());
        }
        // A rule without a name has its number and, after a colon, its patterns.
        let is_named = |rule: &String, name: &str| {
            name.strip_prefix(&**rule).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        if let Some(rule) = rule.as_ref()
            && !explained.rules().any(|name| is_named(rule, name))
        {
            let rules: Vec<_> = explained.rules().collect();
            let rules = if rules.is_empty() { "none".to_owned() } else { rules.join(", ") };
            wrong.reasons.push(format!("the rule {rule:?} is not for it; its rules: {rules}"));
        }
        for (other, is_same) in [(same_as, true), (differs_from, false)] {
            let Some(other) = other else { continue };
            let between = pair(&explained, &explain(other.as_bytes(), options), options);
            if between.same != Some(is_same) {
                let words = match between.same {
                    Some(true) => "is the same as",
                    Some(false) => "differs from",
                    None => "cannot be compared with",
                };
                wrong.reasons.push(format!("it {words} {other}"));
                wrong.items.truncate(1);
                wrong.items.push(other.clone().into_bytes());
            }
        }
        (!wrong.reasons.is_empty()).then_some(wrong)
    }
}

pub(super) fn run(args: &ConfigTestArgs) -> anyhow::Result<Outcome> {
    let config = args.settings.load_crawl()?;
    let options = Options { form: start::lenient_form(&config), ..start::items(&config) };
    let mut files = args.files.clone();
    if files.is_empty() {
        let file = args.settings.layers.sources(&[]).file;
        files.push(file.unwrap_or_else(|| DEFAULT_FILE.into()));
    }
    let (mut count, mut all_wrong) = (0, Vec::new());
    for file in &files {
        let text = fs::read_to_string(file);
        let text = text.with_context(|| format!("{} cannot be read", file.display()))?;
        for (line, example) in examples(file, &text)? {
            count += 1;
            let place = format!("{}:{line}: {}", file.display(), example.url);
            all_wrong.extend(example.check(&options).map(|wrong| (place, wrong)));
        }
    }
    refuse_if!(count == 0, "there are no examples: write some as tables [[test]]");
    let mut out = stdout();
    for (place, WrongExample { reasons, .. }) in &all_wrong {
        let line = format!("{place}: {}", reasons.join(", and "));
        writeln!(out, "{}", printable(line.as_bytes(), None))?;
    }
    let wrong = HumanCount(all_wrong.len() as u64);
    writeln!(out, "examples: {}, wrong: {wrong}", HumanCount(count))?;
    let first = all_wrong.into_iter().next();
    let Some((_, WrongExample { items, .. })) = first else { return Ok(Outcome::Done) };
    writeln!(out)?;
    print_explained(items, &options, out)?;
    Ok(Outcome::BadInput)
}

/// Reads the examples of a file, each with the number of its line.
fn examples(file: &Path, text: &str) -> anyhow::Result<Vec<(usize, Example)>> {
    let refused = |line, why: &str| usage(format!("{}:{line}: [[test]] {why}", file.display()));
    let line_of = |byte: usize| text[..byte].matches('\n').count() + 1;
    let examples: Examples = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        refused(line_of(at), error.message())
    })?;
    let numbered = examples.test.into_iter().map(|example| {
        let line = line_of(example.span().start);
        let Example { fate, rule, same_as, differs_from, .. } = example.get_ref();
        let expected = [rule, same_as, differs_from];
        let expects_nothing = fate.is_none() && expected.iter().all(|it| it.is_none());
        if expects_nothing {
            let why = "expects nothing; give fate, rule, same_as or differs_from";
            return Err(refused(line, why));
        }
        Ok((line, example.into_inner()))
    });
    numbered.collect()
}
