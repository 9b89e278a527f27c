//! Numbers of items by the rule that decided about them, and of dropped items by group of a limit.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::config::Config;
use serde::{Deserialize, Serialize};
use tracing::info;
use urlseen_engine::item::NamedRule;
use urlseen_engine::item::OverLimit;

/// Numbers of items by rule. A list is empty if there are no rules of its kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByRule {
    /// Items that rules of `[[pass]]` let pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<RuleCount>,
    /// Items that rules of `[[drop]]` dropped. `dropped` is the number of all of them.
    #[serde(rename = "dropped_by_rule", default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<RuleCount>,
    /// Items that are over limits of `[[limit]]`. `over_limit` is the number of all of them.
    #[serde(rename = "over_limit_by_rule", default, skip_serializing_if = "Vec::is_empty")]
    pub over_limit: Vec<RuleCount>,
    /// Groups of these rules with most items over their limits, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_limit_by_group: Vec<GroupCount>,
}

/// Rule, and the number of items that it decided about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCount {
    /// Name of the rule in the configuration.
    pub rule: String,
    /// Number of items since the start of the daemon.
    pub items: u64,
}

impl ByRule {
    /// Lists the configured rules, before any item.
    pub(crate) fn new(config: &Config) -> Self {
        let none = |name: &str| RuleCount { rule: name.to_owned(), items: 0 };
        let named = |rules: &[NamedRule]| rules.iter().map(|rule| none(&rule.name)).collect();
        Self {
            passed: named(&config.rules.pass),
            dropped: named(&config.rules.drop),
            over_limit: config.rules.limits.iter().map(|rule| none(&rule.name)).collect(),
            over_limit_by_group: Vec::new(),
        }
    }

    /// Adds the numbers of another run, which has the same rules.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        let added = |own: Vec<RuleCount>, other: Vec<RuleCount>| {
            let pairs = own.into_iter().zip(other);
            pairs.map(|(own, other)| RuleCount { items: own.items + other.items, ..own }).collect()
        };
        Self {
            passed: added(self.passed, other.passed),
            dropped: added(self.dropped, other.dropped),
            over_limit: added(self.over_limit, other.over_limit),
            over_limit_by_group: added_groups(self.over_limit_by_group, other.over_limit_by_group),
        }
    }
}

/// Maximum number of groups whose dropped items are counted.
const COUNTED: usize = 1000;

/// Maximum number of groups that the status shows.
const SHOWN: usize = 100;

/// Maximum length in bytes of the name of a group. The rest of a longer name is cut off.
const LONGEST: usize = 256;

/// Group of a limit, and the number of its items that were over the limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCount {
    /// Name of the rule in the configuration.
    pub rule: String,
    /// Host, domain or pattern that the items have in common.
    pub group: String,
    /// Number of items since the start of the daemon.
    pub items: u64,
}

/// Numbers of dropped items of the first groups that have any. A site can have groups without an
/// end, so further groups count only for their rule.
#[derive(Debug, Default)]
pub(crate) struct ByGroup(HashMap<(u16, Box<str>), u64>);

impl ByGroup {
    /// Counts a dropped item. Logs the first one of each group. `rules` has the names of the rules.
    pub(crate) fn add(&mut self, OverLimit { rule, group, .. }: &OverLimit, rules: &[RuleCount]) {
        let name = &group[..group.floor_char_boundary(LONGEST)];
        let key = (*rule, Box::from(name));
        if let Some(items) = self.0.get_mut(&key) {
            *items += 1;
        } else if self.0.len() < COUNTED {
            self.0.insert(key, 1);
            let rule = &rules[usize::from(*rule)].rule;
            info!(
                "the group {name:?} is full: the rule {rule:?} of [[limit]] drops its further \
                 unseen items, which are only counted (urlseen_over_limit_total)"
            );
            if self.0.len() == COUNTED {
                info!("{COUNTED} groups are full: further ones are neither logged nor counted");
            }
        }
    }

    /// Returns the groups with most dropped items, those with most items first.
    pub(crate) fn fullest(&self, rules: &[RuleCount]) -> Vec<GroupCount> {
        let counts = self.0.iter().map(|((rule, group), items)| GroupCount {
            rule: rules[usize::from(*rule)].rule.clone(),
            group: group.to_string(),
            items: *items,
        });
        fullest(counts.collect())
    }
}

/// Adds the numbers of another run, which has the same rules.
fn added_groups(mut own: Vec<GroupCount>, other: Vec<GroupCount>) -> Vec<GroupCount> {
    for it in other {
        match own.iter_mut().find(|own| (&own.rule, &own.group) == (&it.rule, &it.group)) {
            Some(own) => own.items += it.items,
            None => own.push(it),
        }
    }
    fullest(own)
}

/// Sorts groups by their numbers, and cuts the rest off.
fn fullest(mut counts: Vec<GroupCount>) -> Vec<GroupCount> {
    counts.sort_unstable_by(|a, b| {
        let order = |it: &GroupCount| Reverse(it.items);
        order(a).cmp(&order(b)).then_with(|| (&a.rule, &a.group).cmp(&(&b.rule, &b.group)))
    });
    counts.truncate(SHOWN);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use urlseen_fingerprint::Fingerprint;

    fn rules() -> Vec<RuleCount> {
        ["hosts", "lists"].map(|rule| RuleCount { rule: rule.to_owned(), items: 0 }).into()
    }

    fn over(rule: u16, group: &str) -> OverLimit {
        let fingerprint = Fingerprint::from(&[0; 20][..]);
        OverLimit { index: 0, fingerprint, rule, group: group.into() }
    }

    #[test]
    fn a_flood_of_groups_stays_bounded_and_the_fullest_are_shown() {
        let (mut groups, rules) = (ByGroup::default(), rules());
        for number in 0..5000 {
            groups.add(&over(0, &format!("h{number}")), &rules);
        }
        for _ in 0..3 {
            groups.add(&over(1, "h999"), &rules);
            groups.add(&over(0, "h999"), &rules);
            groups.add(&over(0, &"ü".repeat(10_000)), &rules);
        }
        assert_eq!(groups.0.len(), COUNTED);
        let shown = groups.fullest(&rules);
        assert_eq!(shown.len(), SHOWN);
        let first = GroupCount { rule: "hosts".to_owned(), group: "h999".to_owned(), items: 4 };
        assert_eq!(shown[0], first);
        let both = added_groups(shown.clone(), shown);
        assert_eq!((both.len(), &both[0]), (SHOWN, &GroupCount { items: 8, ..first }));
    }

    #[test]
    fn a_group_counts_for_its_rule_and_a_long_name_is_cut() {
        let (mut groups, rules) = (ByGroup::default(), rules());
        for (rule, group) in [(0, "a"), (1, "a"), (1, "a"), (0, &*"ü".repeat(300))] {
            groups.add(&over(rule, group), &rules);
        }
        let found = groups.fullest(&rules);
        let found: Vec<_> = found.iter().map(|it| (&*it.rule, &*it.group, it.items)).collect();
        let long = "ü".repeat(LONGEST / 2);
        assert_eq!(found, [("lists", "a", 2), ("hosts", "a", 1), ("hosts", &*long, 1)]);
    }
}
