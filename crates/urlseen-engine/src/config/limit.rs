//! Rules of `[[limit]]`, which limit the unseen items of groups.

use std::ops::RangeInclusive;

use super::Config;
use super::check::Taker;
use super::named::name;
use super::rules::Table;
use urlseen_core::filter::choice::FilterPlace;
use urlseen_core::fingerprint::pages::Pages;
use urlseen_core::limit::{By, LimitRule};

/// Allowed values of `max`.
pub(super) const MAX: RangeInclusive<u64> = 1..=1_000_000_000_000;

/// Adds a rule to the rules of its kind. Without a name in the file, its name is the text of its
/// scope.
///
/// # Errors
/// Returns the reason why the rule is refused.
pub(super) fn add(rules: &mut Vec<LimitRule>, table: &Table, pages: Pages) -> Result<(), String> {
    let by = By::read(table.text("by"), table.text("parameter"))?;
    let Some(max) = table.number("max").filter(|max| MAX.contains(max)) else {
        let found = table.number("max").map_or("no max".to_owned(), |max| format!("max = {max}"));
        return Err(format!("has {found}; allowed: {} to {}", MAX.start(), MAX.end()));
    };
    let mut rule = LimitRule { name: String::new(), max, by, pages };
    if let Some(other) = rules.iter().find(|other| rule.overlaps(other)) {
        return Err(format!(
            "limits the same groups as the rule {:?}, {}; keep one of them, or give each pages of \
             its own",
            other.name, other.by
        ));
    }
    let scope = rule.scope();
    rule.name = name(table, scope.trim(), rules.iter().map(|rule| &rule.name[..]))?;
    rules.push(rule);
    Ok(())
}

impl Taker {
    /// Checks that the filter can have limits, if there are any.
    pub(super) fn check_limits(&mut self, config: &Config) {
        if config.limits.is_empty() {
            return;
        }
        let Config { filter, serve, .. } = config;
        if filter.place == FilterPlace::Redis {
            let fault = "filter.place is \"redis\", where other daemons may use the filter, and \
                         [[limit]] needs exact counts; set filter.place = \"local\", or leave \
                         [[limit]] out";
            self.refuse(&["filter.place"], fault.to_owned());
        }
        if let Some(listen) = &serve.listen {
            let fault = format!(
                "serve.listen is {:?}, and [[limit]] applies only to items of the source: clients \
                 would pass it by; leave out one of them",
                listen.to_string()
            );
            self.refuse(&["serve.listen"], fault);
        }
        if let Some(expire_after) = filter.expire_after {
            let fault = format!(
                "filter.expire_after is {:?}, and [[limit]] would count a page that passes again \
                 once more, until no page passes; leave out one of them",
                expire_after.to_string()
            );
            self.refuse(&["filter.expire_after"], fault);
        }
    }
}
