//! `urlseen fingerprint`: the fingerprints of requests, a line each.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use crate::admin::printable::{self, say};
use urlseen_core::fingerprint::canonical::CanonicalizeError;
use urlseen_core::fingerprint::request::Request;
use urlseen_core::fingerprint::{Algorithm, Fingerprint, Fingerprinter};
use urlseen_engine::flow::input;
use urlseen_engine::item::json::{self, JsonError};
use urlseen_engine::item::{Unreadable, url};

use super::Outcome;

/// Print the fingerprint of each request: one line in, one fingerprint out.
///
/// A line is a URL. A line that begins with `{` is a request in JSON: `url`, `method`, `body` or
/// `body_base64`, `meta.verbatim_url`, or a ready `fingerprint`. For a line without a fingerprint
/// the command prints `-`, and the reason on standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen fingerprint urls.txt
  urlseen fingerprint --canonical --algorithm scrapy-redis urls.txt")]
pub(super) struct FingerprintArgs {
    /// Algorithm of the fingerprints
    #[arg(long, value_name = "NAME", default_value_t, value_parser = parse_algorithm())]
    algorithm: Algorithm,
    /// Treat URLs that differ only in their fragments as different
    #[arg(long)]
    keep_fragments: bool,
    /// Add a tab and the canonical URL
    #[arg(long)]
    canonical: bool,
    /// Files of requests, plain, .gz or .zst; `-` is standard input, the default
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Offers the registry's names in the help and in messages.
pub(super) fn parse_algorithm() -> impl clap::builder::TypedValueParser<Value = Algorithm> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(Algorithm::all().iter().map(|algorithm| algorithm.name()))
        .try_map(|name| name.parse::<Algorithm>())
}

/// Reason why a line has no fingerprint.
#[derive(Debug, thiserror::Error)]
enum LineError {
    #[error(transparent)]
    Item(#[from] Unreadable),
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error(transparent)]
    Url(#[from] CanonicalizeError),
}

pub(super) fn run(args: &FingerprintArgs) -> anyhow::Result<Outcome> {
    let mut rows = FingerprintRows {
        fingerprinter: Fingerprinter::new(args.algorithm, args.keep_fragments),
        canonical: args.canonical,
        row: String::new(),
    };
    let mut output = BufWriter::with_capacity(1 << 16, printable::rows());
    let mut outcome = Outcome::Done;
    for page in input::lines(args.files.clone()).pages {
        let page = page?;
        for (index, line) in page.items.iter().enumerate() {
            let row = rows.make(line).unwrap_or_else(|reason| {
                say(format_args!("urlseen: {}: {reason}", page.place(index)));
                outcome = Outcome::BadInput;
                if args.canonical { "-\t-\n" } else { "-\n" }
            });
            output.write_all(row.as_bytes())?;
        }
        // The person or the pipe that sent the line waits for its answer.
        output.flush()?;
    }
    Ok(outcome)
}

/// Makes the output's rows, one at a time.
struct FingerprintRows {
    fingerprinter: Fingerprinter,
    canonical: bool,
    row: String,
}

impl FingerprintRows {
    /// Makes the row for a line, with its line feed.
    fn make(&mut self, line: &[u8]) -> Result<&str, LineError> {
        if json::is_object(line) {
            let item = json::read(line)?;
            self.make_for(item.fingerprint.clone(), item.request().as_ref())?;
        } else {
            self.make_for(None, Some(&Request::get(url::text(line)?)))?;
        }
        Ok(&self.row)
    }

    /// Makes the row for the ready fingerprint, or for that of the request.
    fn make_for(
        &mut self,
        ready: Option<Fingerprint>,
        request: Option<&Request<'_>>,
    ) -> Result<(), LineError> {
        let fingerprint = match (ready, request) {
            (Some(ready), _) => ready,
            (None, Some(request)) => self.fingerprinter.fingerprint(request)?,
            (None, None) => return Err(JsonError::NoIdentity.into()),
        };
        self.row.clear();
        push_in_line(&fingerprint.to_string(), &mut self.row);
        if self.canonical {
            // With a ready fingerprint, the URL may be missing or invalid.
            let url = request.and_then(|request| self.fingerprinter.canonical(request).ok());
            self.row.push('\t');
            push_in_line(url.unwrap_or("-"), &mut self.row);
        }
        self.row.push('\n');
        Ok(())
    }
}

/// Appends text with JSON's escapes for tabs and line ends. Verbatim URLs and ready fingerprints
/// can hold them.
fn push_in_line(text: &str, row: &mut String) {
    for part in text.split_inclusive(['\t', '\n', '\r']) {
        let plain = part.trim_end_matches(['\t', '\n', '\r']);
        row.push_str(plain);
        row.push_str(match &part[plain.len()..] {
            "\t" => "\\t",
            "\n" => "\\n",
            "\r" => "\\r",
            _ => "",
        });
    }
}
