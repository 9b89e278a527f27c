//! `urlseen fingerprint`: the fingerprints of requests, a line each.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use crate::admin::printable::{self, say};
use urlseen_core::fingerprint::canonical::CanonicalizeError;
use urlseen_core::fingerprint::request::Request;
use urlseen_core::fingerprint::{Algorithm, Fingerprint, Fingerprinter};
use urlseen_engine::flow::input;
use urlseen_engine::item::json::{self, JsonError, JsonRequest};
use urlseen_engine::item::{Unreadable, url};

use super::Outcome;

/// Print the fingerprint of each request: one line in, one fingerprint out.
///
/// A line is a URL, or, if its first character is `{`, a request in JSON: `url`, `method`, `body`
/// or `body_base64`, `meta.verbatim_url`, or a ready `fingerprint`. A line that has no fingerprint
/// prints `-`, and its reason on standard error.
#[derive(Debug, clap::Args)]
pub(super) struct FingerprintArgs {
    /// How fingerprints are computed
    #[arg(long, value_name = "NAME", default_value_t, value_parser = parse_algorithm())]
    algorithm: Algorithm,
    /// Take URLs that differ in their fragments only for different ones
    #[arg(long)]
    keep_fragments: bool,
    /// Add a tab and the canonical URL
    #[arg(long)]
    canonical: bool,
    /// Where requests are read from, plain, .gz or .zst; `-` is standard input, the default
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Offers the registry's names in the help and in messages.
pub(super) fn parse_algorithm() -> impl clap::builder::TypedValueParser<Value = Algorithm> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(Algorithm::all().iter().map(|algorithm| algorithm.name()))
        .try_map(|name| name.parse::<Algorithm>())
}

/// Why a line has no fingerprint.
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
        // Whoever typed the line, or feeds a pipe, waits for its answer.
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
    /// The row for a line, line feed included.
    fn make(&mut self, line: &[u8]) -> Result<&str, LineError> {
        if json::is_object(line) {
            let item = JsonRequest::parse(line)?;
            self.make_for(item.fingerprint(), item.request().as_ref())?;
        } else {
            self.make_for(None, Some(&Request::get(url::text(line)?)))?;
        }
        Ok(&self.row)
    }

    /// The row for a ready fingerprint, or else for the request's.
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
            // Beside a ready fingerprint, the URL may be missing or be none.
            let url = request.and_then(|request| self.fingerprinter.canonical(request).ok());
            self.row.push('\t');
            push_in_line(url.unwrap_or("-"), &mut self.row);
        }
        self.row.push('\n');
        Ok(())
    }
}

/// Appends text as it is, but for tabs and line ends, which get JSON's escapes: verbatim URLs and
/// ready fingerprints can hold them.
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
