//! Rules with a name: `[[pass]]` lets items of some pages pass unchecked, `[[drop]]` drops them.

use super::rules::Table;
use urlseen_core::fingerprint::pages::Pages;

/// Maximum length of a rule's name in bytes.
const LONGEST_NAME: usize = 100;

/// Rule of `[[pass]]` or `[[drop]]`. Its items are counted under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRule {
    /// Name that metrics and status show for the rule.
    pub name: String,
    /// Pages that the rule is for.
    pub(crate) pages: Pages,
}

impl NamedRule {
    /// Adds a rule to the rules of its kind. Without a name in the file, its name is the text of
    /// its patterns.
    ///
    /// # Errors
    /// Returns the reason why the rule is refused.
    pub(super) fn add(rules: &mut Vec<Self>, table: &Table, pages: Pages) -> Result<(), String> {
        let name = table.text("name").map_or_else(|| pages.to_string(), str::to_owned);
        if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
            return Err(format!("has no name of 1 to {LONGEST_NAME} bytes, as in name = \"x\""));
        }
        if rules.iter().any(|other| other.name == name) {
            return Err(format!("has the name {name:?}, as another rule has; give each its own"));
        }
        rules.push(Self { name, pages });
        Ok(())
    }
}
