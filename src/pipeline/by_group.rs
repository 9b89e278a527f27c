//! Numbers of dropped items by group of a limit.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tracing::info;

use super::by_rule::RuleCount;
use urlseen_engine::item::OverLimit;

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
pub(super) struct ByGroup(HashMap<(u16, Box<str>), u64>);

impl ByGroup {
    /// Counts a dropped item. Logs the first one of each group. `rules` has the names of the rules.
    pub(super) fn add(&mut self, OverLimit { rule, group, .. }: &OverLimit, rules: &[RuleCount]) {
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
    pub(super) fn fullest(&self, rules: &[RuleCount]) -> Vec<GroupCount> {
        let counts = self.0.iter().map(|((rule, group), items)| GroupCount {
            rule: rules[usize::from(*rule)].rule.clone(),
            group: group.to_string(),
            items: *items,
        });
        fullest(counts.collect())
    }
}

/// Adds the numbers of another partition, which has the same rules.
pub(super) fn added(mut own: Vec<GroupCount>, other: Vec<GroupCount>) -> Vec<GroupCount> {
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
    use urlseen_core::fingerprint::Fingerprint;

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
        let both = added(shown.clone(), shown);
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
