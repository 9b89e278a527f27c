//! Prints the lines of a file that it has not seen before. Two URLs count as the same line if
//! Scrapy treats them as the same request.
//!
//! ```text
//! cargo run --example dedup -- FILE                       # compares the lines of the file
//! cargo run --example dedup -- FILE FOLDER                # remembers the lines for the next file
//! cargo run --example dedup -- FILE redis://127.0.0.1/    # shares them with other machines
//! ```

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

use urlseen::{Filter, FilterExt, FilterSpec, Fingerprinter, LocalFilter, RedisFilter, Request};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, filter) = match arguments.as_slice() {
        [file] => (file, open(None)?),
        [file, place] => (file, open(Some(place))?),
        _ => return Err("give a file, and the folder or the Redis of the filter if any".into()),
    };
    let lines = BufReader::new(File::open(file).map_err(|error| format!("{file}: {error}"))?);
    dedup(lines, &*filter, &mut io::stdout().lock())
}

/// Opens a filter in memory, in a folder or in Redis.
fn open(place: Option<&str>) -> Result<Box<dyn Filter>, urlseen::Error> {
    let spec = FilterSpec::native(10_000_000, 1e-6);
    Ok(match place {
        None => Box::new(LocalFilter::new(&spec)?),
        Some(url) if url.starts_with("redis://") => {
            Box::new(RedisFilter::open(url, "dedup:filter", &spec)?)
        }
        Some(folder) => Box::new(LocalFilter::open(folder, &spec)?),
    })
}

/// Writes the lines that are new to the filter. A line that is not a URL is reported, and counts as
/// new.
fn dedup(
    lines: impl BufRead,
    filter: &dyn Filter,
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
