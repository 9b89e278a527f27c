//! What a filter was made for, as far as its bits depend on it.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

/// What a filter was made for: names, in the configuration where they are there, and values.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Form(BTreeMap<String, String>);

/// Names that not every place records: where one side lacks them, that is no difference.
const NOT_EVERYWHERE: [&str; 3] =
    ["fingerprint.algorithm", "fingerprint.keep_fragments", "the version of fingerprint.algorithm"];

impl Form {
    /// Notes what a filter was made for.
    pub fn set(&mut self, name: impl Into<String>, value: impl fmt::Display) {
        self.0.insert(name.into(), value.to_string());
    }

    /// A value by its name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All names and values, in order.
    pub fn fields(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Whether the bits of both mean the same.
    pub fn agrees_with(&self, other: &Self) -> bool {
        self.names(other).into_iter().all(|name| !self.differs(other, name))
    }

    fn differs(&self, other: &Self, name: &str) -> bool {
        let (one, other) = (self.get(name), other.get(name));
        let is_lacking = one.is_none() || other.is_none();
        one != other && !(is_lacking && NOT_EVERYWHERE.contains(&name))
    }

    fn names<'a>(&'a self, other: &'a Self) -> Vec<&'a str> {
        let mut names: Vec<&str> =
            self.0.keys().chain(other.0.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Both side by side, a line each; one that differs begins with `*`.
    pub fn side_by_side(&self, other: &Self) -> String {
        let shown = |form: &Self, name: &str| form.get(name).unwrap_or("-").to_owned();
        let names = self.names(other);
        let rows: Vec<(&str, String, String)> =
            names.into_iter().map(|name| (name, shown(self, name), shown(other, name))).collect();
        let width = |length: fn(&(&str, String, String)) -> usize| {
            rows.iter().map(length).max().unwrap_or(0)
        };
        let (names, ours) =
            (width(|row| row.0.chars().count()), width(|row| row.1.chars().count()).max(1));
        let mut text = format!("  {:<names$}  {:<ours$}  B\n", "", "A");
        for (name, one, second) in &rows {
            let mark = if self.differs(other, name) { '*' } else { ' ' };
            let _ = writeln!(text, "{mark} {name:<names$}  {one:<ours$}  {second}");
        }
        text.truncate(text.trim_end().len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> Form {
        let mut form = Form::default();
        for (name, value) in fields {
            form.set(*name, value);
        }
        form
    }

    #[test]
    fn what_one_place_does_not_record_is_no_difference() {
        let one = form(&[("filter.seed", "1"), ("fingerprint.algorithm", "scrapy")]);
        let other = form(&[("filter.seed", "1")]);
        assert!(one.agrees_with(&other) && other.agrees_with(&one));
        assert!(!one.agrees_with(&form(&[("fingerprint.algorithm", "scrapy")])));
        let third = form(&[("filter.seed", "1"), ("fingerprint.algorithm", "scrapy-2.6")]);
        assert!(!one.agrees_with(&third));
        assert_eq!(
            one.side_by_side(&third),
            "                         A       B\n  filter.seed            1       1\n* \
             fingerprint.algorithm  scrapy  scrapy-2.6"
        );
    }
}
