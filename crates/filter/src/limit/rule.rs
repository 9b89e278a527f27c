//! Rules of `[[limit]]`, and what an item claims by them.

use std::sync::Arc;

use urlseen_fingerprint::ByPages;
use urlseen_fingerprint::rule_pages::{Page, Pages};

use super::by::By;
use super::group::Group;

/// Rule that limits the number of unseen items of each of its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitRule {
    /// Name that metrics and status show for the rule.
    pub name: String,
    /// Maximum number of unseen items of a group, or of values if [`By::Parameter`] counts these.
    pub max: u64,
    /// Property that the items of a group have in common.
    pub by: By,
    /// Pages that the rule is for.
    pub pages: Pages,
}

/// All rules of a crawl that limit unseen items.
#[derive(Debug)]
pub struct Limits {
    rules: Arc<[LimitRule]>,
    /// Group that has all groups of a rule, for each rule.
    all: Vec<Group>,
    pages: ByPages,
}

/// Places that an unseen item takes of a group, if there is room in all of its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Number of the rule, in the order of the configuration.
    pub rule: usize,
    /// Name of the group for people: a host, a domain, or a pattern.
    pub name: String,
    /// Group whose count goes up.
    pub group: Group,
    /// Value of the parameter, if values count: a value that counts already takes no more room.
    pub value: Option<Group>,
}

impl LimitRule {
    /// Returns the text of what the rule counts. Two rules with the same text have the same groups.
    pub fn scope(&self) -> String {
        format!("{} {}", self.by, self.pages)
    }

    /// Returns true if this rule and another would both limit the same groups. The patterns of two
    /// rules are not compared, unless they are equal.
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_for_all = |rule: &Self| rule.pages == Pages::default();
        self.by == other.by && (self.pages == other.pages || is_for_all(self) || is_for_all(other))
    }
}

impl Limits {
    /// Prepares the search for the rules of a page.
    pub fn new(rules: Arc<[LimitRule]>) -> Self {
        let all = rules.iter().map(|rule| Group::of(&rule.scope())).collect();
        let pages = ByPages::new(rules.iter().map(|rule| &rule.pages));
        Self { rules, all, pages }
    }

    /// Returns the rules, in the order of the configuration.
    pub fn rules(&self) -> &[LimitRule] {
        &self.rules
    }

    /// Returns what an item with this canonical URL claims, in the order of the rules.
    pub fn claims(&mut self, url: &str) -> Vec<Claim> {
        if self.pages.is_foreign(url) {
            return Vec::new();
        }
        let page = Page::of(url);
        let Self { rules, all, pages } = self;
        let claims = pages.matching(&page).filter_map(|rule| {
            let (name, value) = rules[rule].by.group(url, &page)?;
            let group = all[rule].within(&name);
            let value = value.map(|value| group.within(&value));
            Some(Claim { rule, name, group, value })
        });
        claims.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_fingerprint::rule_pages::Pattern;

    fn rule(by: Option<&str>, parameter: Option<&str>, path: &str) -> LimitRule {
        let mut pages = Pages::default();
        if !path.is_empty() {
            *pages.pattern("path").unwrap() = Some(Pattern::new(path).unwrap());
        }
        LimitRule { name: String::new(), max: 10, by: By::read(by, parameter).unwrap(), pages }
    }

    fn limits(rules: Vec<LimitRule>) -> Limits {
        Limits::new(rules.into())
    }

    #[test]
    fn an_item_claims_its_group_of_each_rule_for_its_page() {
        let mut limits = limits(vec![
            rule(Some("host"), None, ""),
            rule(Some("domain"), None, "^/a"),
            rule(Some("pattern"), None, ""),
            rule(Some("parameter"), Some("page"), ""),
        ]);
        let mut names = |url: &str| {
            let claims = limits.claims(url).into_iter();
            claims.map(|it| (it.rule, it.name)).collect::<Vec<_>>()
        };
        let named = |all: &[(usize, &str)]| {
            all.iter().map(|&(rule, name)| (rule, name.to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(
            names("https://www.shop.co.uk/a/12?page=2&x=1"),
            named(&[
                (0, "www.shop.co.uk"),
                (1, "shop.co.uk"),
                (2, "www.shop.co.uk/a/*"),
                (3, "www.shop.co.uk/a/*?page"),
            ])
        );
        assert_eq!(names("http://h/b?pages=2"), named(&[(0, "h"), (2, "h/b")]));
        assert_eq!(names("http://[::1]/a"), named(&[(0, "[::1]"), (1, "[::1]"), (2, "[::1]/a")]));
        assert_eq!(names("http://10.1.2.3/a")[1], (1, "10.1.2.3".to_owned()), "an address");
        assert_eq!(names("data:,x"), [], "no host");
    }

    #[test]
    fn values_of_a_parameter_are_told_apart_and_groups_of_rules_as_well() {
        let page = || rule(Some("parameter"), Some("page"), "");
        let mut limits = limits(vec![page(), rule(Some("pattern"), None, ""), page()]);
        let mut claims = |url: &str| limits.claims(url);
        let (one, two) = (claims("http://h/1?page=1"), claims("http://h/2?page=2&page=1"));
        assert_eq!(one[0].group, two[0].group);
        assert_ne!(one[0].value, two[0].value);
        assert_eq!(one[0].value, claims("http://h/3?page=1&x=2")[0].value);
        assert_ne!(one[0].group, one[1].group);
        assert_eq!(one[0].group, one[2].group, "two rules with the same scope");
    }

    #[test]
    fn rules_overlap_if_both_limit_the_same_groups() {
        let [all, a, b] = ["", "^/a", "^/b"].map(|path| rule(Some("host"), None, path));
        assert!(all.overlaps(&a) && a.overlaps(&all) && a.overlaps(&a.clone()));
        assert!(!a.overlaps(&b));
        assert!(!all.overlaps(&rule(Some("domain"), None, "")));
        let by = |name| rule(Some("parameter"), Some(name), "");
        assert!(by("a").overlaps(&by("a")) && !by("a").overlaps(&by("b")));
    }
}
