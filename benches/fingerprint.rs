//! Time per URL: canonical form and fingerprint, beside merely parsing it with the `url` crate.
//!
//! The links are those of `tests/vectors`. Figures are for one thread whose buffers are warm.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flate2::read::GzDecoder;
use serde_json::Value;
use url::Url;
use urlseen::fingerprint::{Algorithm, Fingerprinter};
use urlseen::request::Request;

/// Links of docs.python.org, as a crawl finds them.
fn real_links() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/fingerprints.jsonl.gz");
    let file = File::open(path).expect("the vectors are in the repository");
    let mut lines = BufReader::new(GzDecoder::new(file))
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.expect("readable")).expect("JSON"));
    let header = lines.next().expect("a header");
    let count = header["real_links"].as_u64().and_then(|count| usize::try_from(count).ok());
    lines
        .take(count.expect("a number of links"))
        .map(|vector| vector["url"].as_str().expect("a URL").to_owned())
        .collect()
}

/// Links with three parameters that are not in order, and percent-escapes.
fn busy_links() -> Vec<String> {
    (0..1000)
        .map(|n| {
            format!(
                "https://www.example.com/caf%C3%A9/item-{n}.html?sort=price%2casc&page={n}&\
                 category=shoes%20and%20boots"
            )
        })
        .collect()
}

fn fingerprints(criterion: &mut Criterion) {
    for (name, links) in [("real", real_links()), ("busy", busy_links())] {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(links.len() as u64));
        for algorithm in Algorithm::all() {
            let mut fingerprinter = Fingerprinter::new(*algorithm, false);
            group.bench_function(algorithm.name(), |bencher| {
                bencher.iter(|| {
                    for link in &links {
                        let _ =
                            black_box(fingerprinter.fingerprint(&Request::get(black_box(link))));
                    }
                });
            });
        }
        let mut fingerprinter = Fingerprinter::new(Algorithm::Scrapy, false);
        group.bench_function("canonical", |bencher| {
            bencher.iter(|| {
                for link in &links {
                    let _ = black_box(fingerprinter.canonical(&Request::get(black_box(link))));
                }
            });
        });
        group.bench_function("url crate, parse", |bencher| {
            bencher.iter(|| {
                for link in &links {
                    let _ = black_box(Url::parse(black_box(link)));
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, fingerprints);
criterion_main!(benches);
