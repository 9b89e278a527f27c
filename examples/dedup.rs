//! Prints each line of a file that was not seen before. URLs are the same if Scrapy takes them for
//! the same request.
//!
//! ```text
//! cargo run --example dedup -- FILE            # the file alone
//! cargo run --example dedup -- FILE FOLDER     # and remembers, for the next file
//! ```

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

use urlseen::{Filter, Fingerprinter, LocalFilter, Request};

const CAPACITY: u64 = 10_000_000;
const ERROR_RATE: f64 = 1e-6;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, filter) = match arguments.as_slice() {
        [file] => (file, LocalFilter::new(CAPACITY, ERROR_RATE)?),
        [file, folder] => (file, LocalFilter::open(folder, CAPACITY, ERROR_RATE)?),
        _ => return Err("give a file, and a folder to remember in if there is to be one".into()),
    };
    let lines = BufReader::new(File::open(file).map_err(|error| format!("{file}: {error}"))?);
    dedup(lines, &filter, &mut io::stdout().lock())
}

/// Writes the lines that are new to the filter. A line that is not a URL is named, and counts as
/// new.
fn dedup(
    lines: impl BufRead,
    filter: &impl Filter,
    output: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let mut scrapy = Fingerprinter::default();
    for line in lines.lines() {
        let line = line?;
        let is_new = match scrapy.fingerprint(&Request::get(&line)) {
            Ok(fingerprint) => filter.add(fingerprint)?,
            Err(reason) => {
                eprintln!("{line:?}: {reason}");
                true
            }
        };
        if is_new {
            writeln!(output, "{line}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen::ExactFilter;

    #[test]
    fn a_request_is_printed_once() -> Result<(), Box<dyn Error>> {
        let (filter, mut printed) = (ExactFilter::new(), Vec::new());
        let lines = "http://a/?y&x\nhttp://A:80/?y&x\nno url\nhttp://A/?x=&y=#top\nhttp://b/\n";
        dedup(lines.as_bytes(), &filter, &mut printed)?;
        assert_eq!(printed, b"http://a/?y&x\nhttp://A:80/?y&x\nno url\nhttp://b/\n");
        Ok(())
    }
}
