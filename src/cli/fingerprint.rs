//! `urlseen fingerprint`: the fingerprints of requests, a line each.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::str::Utf8Error;

use urlseen::canonical::Refusal;
use urlseen::fingerprint::{Algorithm, Fingerprint, Fingerprinter};
use urlseen::item::json::{JsonError, JsonRequest};
use urlseen::request::Request;

use super::{Outcome, lines};

/// Print the fingerprint of each request: one line in, one fingerprint out.
///
/// A line is a URL, or, where it begins with `{`, a request in JSON: `url`, `method`, `body` or
/// `body_base64`, `meta.verbatim_url`, or a ready `fingerprint`. A line that has no fingerprint
/// prints `-`, and its reason on standard error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// How fingerprints are computed
    #[arg(long, value_name = "NAME", default_value_t, value_parser = parse_algorithm())]
    algorithm: Algorithm,
    /// Take URLs that differ in their fragments only for different ones
    #[arg(long)]
    keep_fragments: bool,
    /// Add a tab and the canonical URL
    #[arg(long)]
    canonical: bool,
    /// Where requests are read from, one after the other; `-` is standard input, the default
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Offers the registry's names in the help and in messages.
fn parse_algorithm() -> impl clap::builder::TypedValueParser<Value = Algorithm> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(Algorithm::all().iter().map(|algorithm| algorithm.name()))
        .try_map(|name| name.parse::<Algorithm>())
}

/// Why a line has no fingerprint.
#[derive(Debug, thiserror::Error)]
enum BadLine {
    #[error("not UTF-8: {0}")]
    Encoding(#[from] Utf8Error),
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error(transparent)]
    Url(#[from] Refusal),
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut printer = Printer {
        fingerprinter: Fingerprinter::new(args.algorithm, args.keep_fragments),
        canonical: args.canonical,
        output: BufWriter::with_capacity(1 << 16, io::stdout().lock()),
    };
    let mut outcome = Outcome::Done;
    lines::for_each(&args.files, |place, line| {
        if let Err(reason) = printer.line(line)? {
            eprintln!("urlseen: {place}: {reason}");
            outcome = Outcome::BadInput;
            printer.refused()?;
        }
        Ok(())
    })?;
    printer.output.flush()?;
    Ok(outcome)
}

struct Printer<W> {
    fingerprinter: Fingerprinter,
    canonical: bool,
    output: W,
}

impl<W: Write> Printer<W> {
    /// Prints what a line's request has for a fingerprint; nothing where it has none.
    fn line(&mut self, line: &[u8]) -> io::Result<Result<(), BadLine>> {
        let parsed;
        let (given, request) = if line.starts_with(b"{") {
            parsed = match JsonRequest::parse(line) {
                Ok(parsed) => parsed,
                Err(error) => return Ok(Err(error.into())),
            };
            (parsed.fingerprint(), parsed.request())
        } else {
            match std::str::from_utf8(line) {
                Ok(url) => (None, Some(Request::get(url))),
                Err(error) => return Ok(Err(error.into())),
            }
        };
        let fingerprint = match (given, &request) {
            (Some(given), _) => given,
            (None, Some(request)) => match self.fingerprinter.fingerprint(request) {
                Ok(computed) => computed,
                Err(refusal) => return Ok(Err(refusal.into())),
            },
            (None, None) => return Ok(Err(JsonError::NoIdentity.into())),
        };
        self.print(&fingerprint, request.as_ref()).map(Ok)
    }

    fn print(
        &mut self,
        fingerprint: &Fingerprint,
        request: Option<&Request<'_>>,
    ) -> io::Result<()> {
        write_in_line(&fingerprint.to_string(), &mut self.output)?;
        if self.canonical {
            self.output.write_all(b"\t")?;
            // Beside a ready fingerprint, the URL may be missing or be none.
            match request.map(|request| self.fingerprinter.canonical(request)) {
                Some(Ok(url)) => write_in_line(url, &mut self.output)?,
                Some(Err(_)) | None => self.output.write_all(b"-")?,
            }
        }
        self.output.write_all(b"\n")
    }

    fn refused(&mut self) -> io::Result<()> {
        self.output.write_all(if self.canonical { b"-\t-\n" } else { b"-\n" })
    }
}

/// Writes text as it is, but for tabs and line ends, which get JSON's escapes: verbatim URLs and
/// ready fingerprints can hold them.
fn write_in_line(text: &str, output: &mut impl Write) -> io::Result<()> {
    let mut rest = text.as_bytes();
    while let Some(at) = memchr::memchr3(b'\t', b'\n', b'\r', rest) {
        output.write_all(&rest[..at])?;
        output.write_all(match rest[at] {
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            _ => b"\\r",
        })?;
        rest = &rest[at + 1..];
    }
    output.write_all(rest)
}
