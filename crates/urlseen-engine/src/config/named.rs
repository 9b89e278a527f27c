//! Rules with a name: `[[pass]]` lets items of some pages pass unchecked, `[[drop]]` drops them.

use super::rules::Table;
use urlseen_core::fingerprint::pages::Pages;

/// Maximum length of a rule's name in bytes.
pub(super) const LONGEST_NAME: usize = 100;

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
        let name = name(table, &pages.to_string(), rules.iter().map(|rule| &rule.name[..]))?;
        rules.push(Self { name, pages });
        Ok(())
    }
}

/// Returns the name of a rule, or a text if the file gives it none.
///
/// # Errors
/// Returns the reason why the name is refused. `others` are the names of other rules.
pub(super) fn name<'a>(
    table: &Table,
    otherwise: &str,
    mut others: impl Iterator<Item = &'a str>,
) -> Result<String, String> {
    let name = table.text("name").unwrap_or(otherwise);
    if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(format!("has no name of 1 to {LONGEST_NAME} bytes, as in name = \"x\""));
    }
    if others.any(|other| other == name) {
        return Err(format!("has the name {name:?}, as another rule has; give each its own"));
    }
    Ok(name.to_owned())
}
