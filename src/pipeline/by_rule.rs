//! Numbers of items by the rule that decided about them.

use serde::{Deserialize, Serialize};

use super::by_group::{self, GroupCount};
use urlseen_engine::config::{Config, NamedRule};

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
    pub(super) fn new(config: &Config) -> Self {
        let none = |name: &str| RuleCount { rule: name.to_owned(), items: 0 };
        let named = |rules: &[NamedRule]| rules.iter().map(|rule| none(&rule.name)).collect();
        Self {
            passed: named(config.pass),
            dropped: named(config.drop),
            over_limit: config.limits.iter().map(|rule| none(&rule.name)).collect(),
            over_limit_by_group: Vec::new(),
        }
    }

    /// Adds the numbers of another partition, which has the same rules.
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
            over_limit_by_group: by_group::added(
                self.over_limit_by_group,
                other.over_limit_by_group,
            ),
        }
    }
}
