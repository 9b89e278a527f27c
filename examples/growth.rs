//! Lets a small filter grow, forgets a URL, and compares the stored hashes with the URLs.
//!
//! ```text
//! cargo run --release --example growth
//! ```

use std::collections::HashSet;

use urlseen::{Error, FilterExt, FilterSpec, Kind, LocalFilter};

/// Number of URLs that the program adds.
const URLS: u32 = 100_000;

fn main() -> Result<(), Error> {
    let filter = small()?;
    show(&filter);
    filter.extend((0..URLS).map(url))?;
    show(&filter);

    filter.forget(url(7))?;
    println!("after one URL was forgotten: {} URLs", filter.len());

    let missing: Vec<String> = missing(&filter, (0..URLS).map(url));
    println!("not in the filter: {}", missing.join(", "));
    Ok(())
}

/// Creates a filter that begins with a thousand URLs, and keeps its error rate up to a million.
fn small() -> Result<LocalFilter, Error> {
    let spec = FilterSpec::new(Kind::TWO_CHOICE).capacity(1000).grow_to(1_000_000);
    LocalFilter::new(&spec.error_rate(1e-6))
}

fn url(number: u32) -> String {
    format!("https://example.com/{number}")
}

fn show(filter: &LocalFilter) {
    let (keys, capacity, error_rate) = (filter.len(), filter.capacity(), filter.error_rate());
    println!("{keys} URLs, room for {capacity}, error rate {error_rate:.1e}");
}

/// Returns the URLs whose hashes the filter does not have.
fn missing(filter: &LocalFilter, urls: impl Iterator<Item = String>) -> Vec<String> {
    let stored = filter.key_hashes().expect("the kind two-choice stores keys");
    let stored: HashSet<u128> = stored.collect();
    urls.filter(|url| !stored.contains(&filter.key_hash(url.as_str()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_grows_and_lacks_only_the_forgotten_url() -> Result<(), Error> {
        let filter = small()?;
        let before = filter.capacity();
        assert!(before < 10_000);
        let is_new = filter.extend((0..URLS).map(url))?;
        // An unseen URL is reported as seen with a chance of at most one in ten million.
        assert!(is_new.iter().filter(|is_new| !**is_new).count() < 3);
        assert!(filter.capacity() >= filter.len() && filter.error_rate() <= 1e-7);

        assert!(filter.forget(url(7))? && !filter.contains(url(7))?);
        assert_eq!(missing(&filter, (0..URLS).map(url)), [url(7)]);
        Ok(())
    }
}
