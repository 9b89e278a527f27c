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
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Text {
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
    keep_fragments: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fold: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl From<&SameRule> for Text {
    fn from(rule: &SameRule) -> Self {
        let [scheme, host, path, extension] =
            rule.pages.patterns().map(|it| it.map(ToString::to_string));
        let texts =
            |names: &Option<Names>| names.as_ref().map_or_else(Vec::new, |it| it.texts.clone());
        Self {
            scheme,
            host,
            path,
            extension,
            drop_params: texts(&rule.drop_params),
            keep_params: texts(&rule.keep_params),
            ignore_values: texts(&rule.ignore_values),
            drop_sessions: rule.sessions.as_ref().map(|_| rule.session_list.to_string()),
            keep_fragments: rule.keeps_fragments,
            fold: rule.folds.iter().map(|fold| fold.name().to_owned()).collect(),
        }
    }
}

impl TryFrom<Text> for SameRule {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        let mut pages = Pages::default();
        let patterns = [text.scheme, text.host, text.path, text.extension];
        for (key, text) in Pages::KEYS.into_iter().zip(patterns) {
            if let Some(pattern) = pages.pattern(key) {
                *pattern = text.map(|text| Pattern::new(&text)).transpose()?;
            }
        }
        let list = |key: &str, names| Names::new(names).map_err(|why| format!("{key} {why}"));
        let session_list = text.drop_sessions.map_or(Ok(SessionList::None), |it| it.parse());
        let session_list = session_list.map_err(|error| format!("drop_sessions: {error}"))?;
        let rule = Self {
            pages,
            drop_params: list("drop_params", text.drop_params)?,
            keep_params: list("keep_params", text.keep_params)?,
            ignore_values: list("ignore_values", text.ignore_values)?,
            session_list,
            sessions: session_list.pattern(),
            keeps_fragments: text.keep_fragments,
            folds: text.fold.iter().try_fold(Folds::default(), |folds, name| {
                let fold = name.parse::<Fold>();
                fold.map(|fold| folds.with(fold)).map_err(|error| format!("fold: {error}"))
            })?,
        };
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
    let texts: Vec<_> = rules.iter().map(Text::from).collect();
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
        serializer.collect_seq(self.0.iter().map(Text::from))
    }
}

/// Reads rules as [`SameRules`] shows them.
impl FromStr for SameRules {
    type Err = SameRulesError;

    fn from_str(text: &str) -> Result<Self, SameRulesError> {
        if text.len() > LONGEST {
            return Err(SameRulesError(format!("{} bytes; allowed: {LONGEST}", text.len())));
        }
        let texts = serde_json::from_str::<Vec<Text>>(text);
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
