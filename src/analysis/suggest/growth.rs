//! Growth of a group of URLs in the course of a crawl.

use super::param::ParameterValues;

/// Minimum number of URLs of a group that is limited.
const LEAST: usize = 100;
/// Maximum number of examples of a group.
const EXAMPLES: usize = 3;

/// URLs of a group, such as those with one pattern of paths, in the order in which a crawl met
/// them.
#[derive(Debug, Default)]
pub(super) struct SiteGrowth {
    /// Number of the link, among all links, with which each URL came first.
    links: Vec<u32>,
    /// Numbers at each place of the texts; `None` if the texts have different numbers of places.
    numbers: Option<Vec<ParameterValues>>,
    /// The last URLs, as examples.
    pub(super) examples: [String; EXAMPLES],
}

impl SiteGrowth {
    /// Adds a URL that the crawl met first with this link. `text` is the part of the URL that
    /// differs in the group.
    pub(super) fn add(&mut self, link: u64, url: &str, text: &str) {
        let numbers = text.split(|it: char| !it.is_ascii_digit()).filter(|it| !it.is_empty());
        let numbers: Vec<_> = numbers.collect();
        if self.links.is_empty() {
            self.numbers = Some(numbers.iter().map(|_| ParameterValues::default()).collect());
        }
        if self.numbers.as_ref().is_some_and(|known| known.len() != numbers.len()) {
            self.numbers = None;
        }
        for (values, number) in self.numbers.iter_mut().flatten().zip(numbers) {
            values.add(number);
        }
        self.links.push(u32::try_from(link).unwrap_or(u32::MAX));
        url.clone_into(&mut self.examples[self.links.len() % EXAMPLES]);
    }

    /// Returns the number of URLs.
    pub(super) fn urls(&self) -> u64 {
        self.links.len() as u64
    }

    /// Returns true if the URLs seem to have no end: they count something, such as pages or days,
    /// and after all links of the crawl they still come at least half as often as on average. The
    /// pages of a site that has an end become rare when most of them are known.
    pub(super) fn is_endless(&self, links: u64) -> bool {
        let last_quarter = links - links / 4;
        let late = self.links.iter().rev().take_while(|&&link| u64::from(link) > last_quarter);
        let are_counted =
            self.numbers.as_ref().is_some_and(|all| all.iter().all(ParameterValues::are_counted));
        self.links.len() >= LEAST && are_counted && 8 * late.count() >= self.links.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_endless(links: impl Iterator<Item = u64>) -> bool {
        let mut growth = SiteGrowth::default();
        let text = |day: usize| format!("/{}/{}", 2000 + day / 12, day % 12);
        links.enumerate().for_each(|(day, link)| growth.add(link, "u", &text(day)));
        growth.is_endless(10_000)
    }

    #[test]
    fn urls_that_come_to_the_end_have_no_end_and_others_have() {
        assert!(is_endless((0..10_000).step_by(50)), "always as many");
        assert!(is_endless((0..10_000).filter(|it| it % 20 == 0 && it % 7 < 6)));
        assert!(!is_endless((0..10_000).step_by(200)), "too few");
        assert!(!is_endless(0..7_400), "an end after three quarters");
        assert!(!is_endless((0..7_400).chain((7_400..10_000).step_by(20))), "few at the end");
    }

    #[test]
    fn ids_that_count_nothing_are_no_reason_for_a_limit() {
        for (texts, expected) in [
            (["1", "2", "3"], true),
            (["2026-11", "2026-12", "2027-01"], true),
            (["1573", "160000", "24"], false),
            (["a1", "a1b2", "3"], false),
        ] {
            let mut growth = SiteGrowth::default();
            for link in 0..10_000 {
                let text = texts[usize::try_from(link).unwrap() % 3];
                growth.add(link, "u", text);
            }
            assert_eq!(growth.is_endless(10_000), expected, "{texts:?}");
        }
    }
}
