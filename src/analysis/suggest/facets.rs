//! Facets: a page whose parameters can be combined freely, such as the filters of a shop.

use std::collections::{BTreeMap, BTreeSet};

use urlseen_fingerprint::same::param_name;

use super::Trial;
use super::param::ParameterValues;

/// Maximum number of queries of a page that are looked at.
const MOST_QUERIES: usize = 20_000;
/// Minimum number of parameters that are combined.
const LEAST_PARAMS: usize = 3;
/// Maximum number of values of a facet.
const MOST_VALUES: usize = 50;
/// Minimum number of combinations for each value of a facet.
const COMBINATIONS: usize = 20;

/// Queries of a page with several parameters.
#[derive(Debug, Default)]
pub(super) struct Facets {
    queries: Vec<String>,
}

impl Facets {
    /// Returns true if a query has enough parameters for facets.
    pub(super) fn may_have(query: &str) -> bool {
        query.split('&').count() >= LEAST_PARAMS
    }

    /// Adds a query of a page.
    pub(super) fn add(&mut self, query: &str) {
        if self.queries.len() < MOST_QUERIES {
            self.queries.push(query.to_owned());
        }
    }

    /// Returns the names of the facets, if the page has facets, and the trial of its URLs without
    /// them. `page` is the URL of the page. The parameters in `useless` are ignored.
    pub(super) fn found(&self, page: &str, useless: &[&str]) -> Option<(Vec<String>, Trial)> {
        let keeps = |field: &&str| !useless.contains(&name(field));
        let queries = self.queries.iter().map(|it| it.split('&').filter(keeps).collect::<Vec<_>>());
        let queries: BTreeSet<_> = queries.collect();
        let mut params: BTreeMap<&str, ParameterValues> = BTreeMap::new();
        for &field in queries.iter().flatten() {
            let (name, value) = name_and_value(field);
            params.entry(name).or_default().add(value);
        }
        params.retain(|_, values| values.len() <= MOST_VALUES && !values.are_counted());
        let values: usize = params.values().map(ParameterValues::len).sum();
        if params.len() < LEAST_PARAMS || queries.len() < COMBINATIONS * values {
            return None;
        }
        let mut trial = Trial::default();
        for query in queries {
            let url = with_query(page, &query);
            let kept = query.into_iter().filter(|field| !params.contains_key(name(field)));
            trial.add(&url, &url, &with_query(page, &kept.collect::<Vec<_>>()));
        }
        let names = params.into_keys().map(|name| param_name(name).into_owned()).collect();
        trial.is_useful().then_some((names, trial))
    }
}

/// Returns the name of a field.
pub(super) fn name(field: &str) -> &str {
    name_and_value(field).0
}

/// Returns the URL of a page with these fields in its query.
pub(super) fn with_query(page: &str, fields: &[&str]) -> String {
    if fields.is_empty() { page.to_owned() } else { format!("{page}?{}", fields.join("&")) }
}

fn name_and_value(field: &str) -> (&str, &str) {
    field.split_once('=').unwrap_or((field, ""))
}

/// Iterates over the names and values of a query.
pub(super) fn fields(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').filter(|field| !field.is_empty()).map(name_and_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(queries: impl Iterator<Item = String>) -> Option<Vec<String>> {
        let mut facets = Facets::default();
        queries.for_each(|query| facets.add(&query));
        facets.found("http://h/list", &["sid"]).map(|(names, _)| names)
    }

    #[test]
    fn parameters_that_are_combined_freely_are_facets_and_page_numbers_are_not() {
        let letters = |number: usize| char::from(b'a' + u8::try_from(number % 8).unwrap());
        let combined = (0..512).map(|number| {
            let [one, two, three] = [number, number / 8, number / 64].map(letters);
            format!("color={one}&page={}&sid=s{number}&size={two}&sort={three}", number % 30 + 1)
        });
        assert_eq!(found(combined), Some(["color", "size", "sort"].map(str::to_owned).to_vec()));
        let articles = (0..2000).map(|number| format!("id={number}&lang={}&v=x", letters(number)));
        assert_eq!(found(articles), None, "each article has one page for each language");
        let few = (0..50).map(|number| format!("a={}&b=1&c=x", letters(number)));
        assert_eq!(found(few), None);
    }
}
