//! Draft of a change to the configuration, and its forms: for the file, and for a fingerprinter.

use serde::Serialize;
use serde_json::{Value, json};
use urlseen_fingerprint::FingerprintSpec;
use urlseen_fingerprint::rule_pages::escape;
use urlseen_fingerprint::same::{SessionList, TrackingList};

use super::site::Endless;

/// Draft of a change to the configuration.
#[derive(Debug)]
pub(super) enum RuleDraft {
    /// The list of tracking parameters.
    Tracking(TrackingList),
    /// Rule by which URLs are the same.
    Same(DraftedRule),
    /// Limit of a group of URLs.
    Limit(DraftedRule),
}

/// Rule for a site, as the configuration file has it. Keys without a value are left out.
#[derive(Debug, Default, Serialize)]
pub(super) struct DraftedRule {
    name: Option<String>,
    host: String,
    path: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    drop_params: Vec<String>,
    drop_sessions: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fold: Vec<&'static str>,
    by: Option<&'static str>,
    parameter: Option<String>,
    max: Option<u64>,
}

/// Maximum length in bytes of the name of a rule.
const LONGEST_NAME: usize = 100;

/// Pattern of what a `*` stands for in a pattern of paths.
const STAR: &str = "[0-9A-Fa-f._:-]+";

impl DraftedRule {
    /// Returns the keys of the rule as TOML.
    fn keys(&self) -> String {
        toml::to_string(self).expect("a rule has a form in TOML")
    }
}

impl RuleDraft {
    /// Makes the rule by which URLs of a site are the same.
    pub(super) fn same(
        site: &str,
        drop_params: Vec<String>,
        drop_sessions: Option<SessionList>,
        fold: Vec<&'static str>,
    ) -> Self {
        let drop_sessions = drop_sessions.map(SessionList::name);
        Self::Same(DraftedRule {
            host: host(site),
            drop_params,
            drop_sessions,
            fold,
            ..DraftedRule::default()
        })
    }

    /// Makes the rule by which URLs of one path of a site are the same.
    pub(super) fn same_page(site: &str, path: &str, drop_params: Vec<String>) -> Self {
        let path = Some(format!("^{}$", escape(path)));
        Self::Same(DraftedRule { host: host(site), path, drop_params, ..DraftedRule::default() })
    }

    /// Makes the limit of a group of URLs.
    pub(super) fn limit(site: &str, group: &Endless, max: u64) -> Self {
        let Endless { pattern, parameter } = group;
        let of = parameter.as_ref().map(|name| format!("?{name}")).unwrap_or_default();
        let mut name = format!("{site}{pattern}{of}");
        name.truncate(name.floor_char_boundary(LONGEST_NAME));
        Self::Limit(DraftedRule {
            name: Some(name),
            host: host(site),
            path: Some(format!("^{}$", escape(pattern).replace(r"\*", STAR))),
            by: Some(if parameter.is_some() { "parameter" } else { "pattern" }),
            parameter: parameter.clone(),
            max: Some(max),
            ..DraftedRule::default()
        })
    }

    /// Returns the text for the configuration file.
    pub(super) fn toml(&self) -> String {
        let (kind, rule) = match self {
            Self::Tracking(list) => return format!("[fingerprint]\ndrop_tracking = \"{list}\"\n"),
            Self::Same(rule) => ("same", rule),
            Self::Limit(rule) => ("limit", rule),
        };
        format!("[[{kind}]]\n{}", rule.keys())
    }

    /// Returns the spec of fingerprints with this change alone.
    pub(super) fn spec(&self) -> FingerprintSpec {
        let spec = FingerprintSpec::default();
        match self {
            Self::Limit(_) => spec,
            Self::Tracking(list) => FingerprintSpec { drop_tracking: *list, ..spec },
            Self::Same(rule) => {
                let rule: Value = toml::from_str(&rule.keys()).expect("it was made as TOML");
                // A rule can be too large, for example with a very long path.
                let same = json!([rule]).to_string().parse().unwrap_or_default();
                FingerprintSpec { same, ..spec }
            }
        }
    }
}

/// Returns the pattern of a site's host.
fn host(site: &str) -> String {
    format!(r"^(www\.)?{}$", escape(site))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_for_the_urls_of_its_group() {
        let limit = |parameter: Option<&str>| {
            let parameter = parameter.map(str::to_owned);
            let group = Endless { pattern: "/a.b/*/*".to_owned(), parameter };
            RuleDraft::limit("h.x", &group, 7).toml()
        };
        let pages = format!("host = '^(www\\.)?h\\.x$'\npath = '^/a\\.b/{STAR}/{STAR}$'\n");
        let named = |name| format!("[[limit]]\nname = \"h.x/a.b/*/*{name}\"\n{pages}");
        let by_pattern = format!("{}by = \"pattern\"\nmax = 7\n", named(""));
        assert_eq!(limit(None), by_pattern);
        let by = "by = \"parameter\"\nparameter = \"p\"";
        assert_eq!(limit(Some("p")), format!("{}{by}\nmax = 7\n", named("?p")));
    }

    #[test]
    fn a_draft_says_the_same_in_both_forms() {
        let drop_params = vec!["sort[]".to_owned(), "b".to_owned()];
        let draft = RuleDraft::same_page("a.x", "/l'été", drop_params);
        assert_eq!(
            draft.toml(),
            "[[same]]\nhost = '^(www\\.)?a\\.x$'\npath = \"^/l'été$\"\n\
             drop_params = [\"sort[]\", \"b\"]\n"
        );
        let same = draft.spec().same.to_string();
        let list = r#""drop_params":["sort[]","b"]"#;
        assert_eq!(same, format!(r#"[{{"host":"^(www\\.)?a\\.x$","path":"^/l'été$",{list}}}]"#));
        let draft =
            RuleDraft::same("a.x", Vec::new(), Some(SessionList::December2026), vec!["www"]);
        assert_eq!(
            draft.toml(),
            "[[same]]\nhost = '^(www\\.)?a\\.x$'\ndrop_sessions = \"2026-12\"\n\
             fold = [\"www\"]\n"
        );
        let rest = r#""drop_sessions":"2026-12","fold":["www"]"#;
        let same = draft.spec().same.to_string();
        assert_eq!(same, format!(r#"[{{"host":"^(www\\.)?a\\.x$",{rest}}}]"#));
        let draft = RuleDraft::Tracking(TrackingList::November2026);
        assert_eq!(draft.toml(), "[fingerprint]\ndrop_tracking = \"2026-11\"\n");
        assert_eq!(draft.spec().drop_tracking, TrackingList::November2026);
    }
}
