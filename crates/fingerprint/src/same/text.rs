//! Text of the rules in files and in Redis: a JSON array, such as
//! `[{"host":"^h$","drop_params":["sid"],"fold":["www"]}]`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::fold::{Fold, Folds};
use super::names::Names;
use super::{SameRule, SameRules, SessionList};
use crate::rule_pages::{Pages, Pattern};

/// Maximum number of rules of a crawl.
pub(super) const MOST: usize = 100;
/// Maximum length of the text of all rules, in bytes.
const LONGEST: usize = 1 << 16;

/// Reason why rules are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SameRulesError(String);

/// Rule as text. Its fields are the keys of a rule in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RuleText {
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extension: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drop_params: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keep_params: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignore_values: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drop_sessions: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) keep_fragments: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fold: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl TryFrom<RuleText> for SameRule {
    type Error = String;

    fn try_from(mut text: RuleText) -> Result<Self, String> {
        let mut pages = Pages::default();
        let patterns = [&text.scheme, &text.host, &text.path, &text.extension];
        for (key, text) in Pages::KEYS.into_iter().zip(patterns) {
            if let Some(pattern) = pages.pattern(key) {
                *pattern = text.as_deref().map(Pattern::new).transpose()?;
            }
        }
        let list =
            |key: &str, names: &[String]| Names::new(names).map_err(|why| format!("{key} {why}"));
        let [drop_params, keep_params, ignore_values] = [
            list("drop_params", &text.drop_params)?,
            list("keep_params", &text.keep_params)?,
            list("ignore_values", &text.ignore_values)?,
        ];
        let sessions = text.drop_sessions.as_deref().map_or(Ok(SessionList::None), str::parse);
        let sessions = sessions.map_err(|error| format!("drop_sessions: {error}"))?.pattern();
        let folds = text.fold.iter().try_fold(Folds::default(), |folds, name| {
            let fold = name.parse::<Fold>();
            fold.map(|fold| folds.with(fold)).map_err(|error| format!("fold: {error}"))
        })?;
        // Rules with the same effect have the same text.
        text.fold = folds.iter().map(|fold| fold.name().to_owned()).collect();
        text.drop_sessions = text.drop_sessions.filter(|_| sessions.is_some());
        let rule = Self { text, pages, drop_params, keep_params, ignore_values, sessions, folds };
        if rule.does_nothing() {
            return Err("changes nothing; give drop_params, keep_params, ignore_values, \
                        drop_sessions, keep_fragments or fold"
                .to_owned());
        }
        Ok(rule)
    }
}

impl SameRules {
    /// Joins the rules of a crawl. Fails if there are too many, or if their text is too long.
    fn new(rules: Vec<SameRule>) -> Result<Self, SameRulesError> {
        let (count, length) = (rules.len(), text(&rules).len());
        if count > MOST {
            return Err(SameRulesError(format!("{count} rules; allowed: {MOST} at most")));
        }
        if length > LONGEST {
            let reason = format!("as JSON, all rules have {length} bytes; allowed: {LONGEST}");
            return Err(SameRulesError(reason));
        }
        Ok(Self(rules.into()))
    }

    /// Returns these rules and others.
    ///
    /// # Errors
    /// There are too many rules, or their text is too long.
    pub fn with(&self, others: &Self) -> Result<Self, SameRulesError> {
        Self::new(self.0.iter().chain(&*others.0).cloned().collect())
    }
}

fn text(rules: &[SameRule]) -> String {
    let texts: Vec<_> = rules.iter().map(|rule| &rule.text).collect();
    serde_json::to_string(&texts).expect("texts become JSON")
}

/// Shows the rules as JSON on one line.
impl fmt::Display for SameRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(&self.0))
    }
}

impl Serialize for SameRules {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|rule| &rule.text))
    }
}

/// Reads rules as [`SameRules`] shows them.
impl FromStr for SameRules {
    type Err = SameRulesError;

    fn from_str(text: &str) -> Result<Self, SameRulesError> {
        if text.len() > LONGEST {
            return Err(SameRulesError(format!("{} bytes; allowed: {LONGEST}", text.len())));
        }
        let texts = serde_json::from_str::<Vec<RuleText>>(text);
        let texts = texts.map_err(|error| SameRulesError(error.to_string()))?;
        let rules: Result<Vec<_>, _> = texts.into_iter().map(SameRule::try_from).collect();
        Self::new(rules.map_err(SameRulesError)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_shown() {
        for text in [
            "[]",
            r#"[{"host":"^h$","drop_params":["sid","utm_*"],"fold":["www","trailing-slash"]}]"#,
            r#"[{"keep_params":["id"]},{"scheme":"","path":"/\"","extension":"x","fold":["www"]}]"#,
        ] {
            let rules: SameRules = text.parse().unwrap();
            assert_eq!(rules.to_string(), text);
            assert_eq!(rules.is_empty(), text == "[]");
            assert_eq!(text.parse(), Ok(rules));
        }
    }

    #[test]
    fn wrong_rules_are_refused_with_the_reason() {
        let many = format!("[{}]", vec![r#"{"fold":["www"]}"#; MOST + 1].join(","));
        let long = format!(r#"[{{"path":"{}","fold":["www"]}}]"#, " ".repeat(LONGEST));
        for (text, reason) in [
            ("{}", "invalid type"),
            ("[{}]", "changes nothing"),
            (r#"[{"host":"("}]"#, "not a regular expression"),
            (r#"[{"fold":["slash"]}]"#, "fold: \"slash\" is not known"),
            (r#"[{"keep_params":[""]}]"#, "keep_params has a name of 0 bytes"),
            (r#"[{"hosts":"h"}]"#, "unknown field"),
            (&many, "101 rules"),
            (&long, "bytes; allowed: 65536"),
        ] {
            let refused = text.parse::<SameRules>().unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
