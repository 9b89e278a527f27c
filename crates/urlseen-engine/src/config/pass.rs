//! Rules of `[[pass]]`, which let items of some pages pass unchecked.

use super::layers::Layers;
use super::pages::Pages;
use super::rules::Table;

/// Maximum length of a rule's name in bytes.
const LONGEST_NAME: usize = 100;

/// Rule that lets items of some pages pass unchecked and unrecorded, like items with
/// `dont_filter`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassRule {
    /// Name that metrics and status show for the rule.
    pub name: String,
    /// Pages whose items pass.
    pub(crate) pages: Pages,
}

impl PassRule {
    /// Adds the rule of a table `[[pass]]` to the layers.
    pub(super) fn add(layers: &mut Layers, table: Table, pages: Pages) {
        let name = table.text("name").unwrap_or_default();
        if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
            let reason = format!("has no name of 1 to {LONGEST_NAME} bytes, as in name = \"x\"");
            layers.refuse_rule("pass", table.origin, &reason);
        } else if layers.pass.iter().any(|other| other.name == name) {
            let reason = format!("has the name {name:?}, as another rule has; give each its own");
            layers.refuse_rule("pass", table.origin, &reason);
        } else {
            layers.pass.push(Self { name: name.to_owned(), pages });
        }
    }
}
