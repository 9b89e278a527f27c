//! `urlseen fingerprint`: prints the fingerprint of each request.

use crate::admin::printable;
use crate::cli::prelude::*;
use crate::cli::settings::Computing;
use urlseen_engine::item::json::{self, JsonError};
use urlseen_filter::choice::is_object;
use urlseen_fingerprint::Request;

/// Print the fingerprint of each request, one request a line.
///
/// A line is a URL. A line that begins with `{` is a request in JSON. The object must have `url` or
/// `fingerprint`. If the object has a `fingerprint`, the command prints this fingerprint. With
/// `url`, the object can also have `method`, `meta.verbatim_url`, and one of `body` and
/// `body_base64`. For an invalid line, the command prints `-` on standard output and an error on
/// standard error. If there was an invalid line, the exit status is 1.
///
/// Examples:
/// ```text
/// urlseen fingerprint urls.txt
/// urlseen fingerprint --canonical --algorithm scrapy-redis urls.txt
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct FingerprintArgs {
    #[command(flatten)]
    records: RecordOptions,
    #[command(flatten)]
    computing: Computing,
    /// Print a tab and the canonical URL after each fingerprint
    #[arg(long)]
    canonical: bool,
    /// Files of requests, plain or compressed (gzip, Zstandard, xz, bzip2). `-` is standard input.
    /// Default: standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(args: &FingerprintArgs) -> anyhow::Result<Outcome> {
    let spec = args.computing.changed(FingerprintSpec::default());
    let mut fingerprinter = Fingerprinter::new(spec);
    let mut output = BufWriter::with_capacity(1 << 16, printable::rows());
    let mut outcome = Outcome::Done;
    for page in input::records(args.files.clone(), args.records.records()).pages {
        let page = page?;
        for index in 0..page.items.len() {
            let row = page.items.key(index).map_err(anyhow::Error::from);
            let row = row.and_then(|key| row_of(&mut fingerprinter, key, args.canonical));
            let row = row.unwrap_or_else(|reason| {
                say(format_args!("urlseen: {}: {reason}", page.place(index)));
                outcome = Outcome::BadInput;
                (if args.canonical { "-\t-" } else { "-" }).to_owned()
            });
            writeln!(output, "{row}")?;
        }
        // A user at a terminal, or a program at a pipe, waits for this answer.
        output.flush()?;
    }
    Ok(outcome)
}

/// Returns the row for a line.
fn row_of(
    fingerprinter: &mut Fingerprinter,
    line: &[u8],
    canonical: bool,
) -> anyhow::Result<String> {
    let item = if is_object(line) { Some(json::read(line)?) } else { None };
    let request = match &item {
        Some(item) => item.request(),
        None => Some(Request::get(bare_url(line)?)),
    };
    let fingerprint = match (item.as_ref().and_then(|it| it.fingerprint.clone()), &request) {
        (Some(given), _) => given,
        (None, Some(request)) => fingerprinter.fingerprint(request)?,
        (None, None) => return Err(JsonError::NoIdentity.into()),
    };
    let mut row = in_line(fingerprint.to_string());
    if canonical {
        // If the line contains its fingerprint, the URL may be missing or invalid.
        let url = request.and_then(|request| fingerprinter.canonical(&request).ok());
        row = row + "\t" + &in_line(url.unwrap_or("-").to_owned());
    }
    Ok(row)
}

/// Replaces tabs and line ends by JSON's escapes, such as `\t`. These characters can occur in a URL
/// that has `meta.verbatim_url`, and in a fingerprint that a line contains.
fn in_line(text: String) -> String {
    if !text.contains(['\t', '\n', '\r']) {
        return text;
    }
    text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}
