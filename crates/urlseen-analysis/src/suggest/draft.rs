//! Draft of a rule `[[same]]`, and its forms: for the configuration file, and for a fingerprinter.

use serde::Serialize;
use serde_json::json;
use urlseen_core::fingerprint::FingerprintSpec;
use urlseen_core::fingerprint::pages::escape;
use urlseen_core::fingerprint::same::TrackingList;

use super::site::Endless;

/// Draft of a change to the configuration.
#[derive(Debug)]
pub(super) enum Draft {
    /// The list of tracking parameters.
    Tracking(TrackingList),
    /// Rule for a site, or for one path of the site.
    Same { site: String, path: Option<String>, drop_params: Vec<String>, fold: Vec<&'static str> },
    /// Limit of a group of URLs.
    Limit { site: String, group: Endless, max: u64 },
}

/// Maximum length in bytes of the name of a rule.
const LONGEST_NAME: usize = 100;

/// Pattern of what a `*` stands for in a pattern of paths.
const STAR: &str = "[0-9A-Fa-f._:-]+";

impl Draft {
    /// Returns the text for the configuration file.
    pub(super) fn toml(&self) -> String {
        let patterns = ["host", "path"].into_iter().zip(self.patterns());
        let patterns = patterns.filter_map(|(key, it)| Some(pattern(key, &it?)));
        let lines = match self {
            Self::Tracking(list) => {
                vec!["[fingerprint]".to_owned(), format!("drop_tracking = \"{list}\"")]
            }
            Self::Same { drop_params, fold, .. } => {
                let lists = [("drop_params", list(drop_params)), ("fold", list(fold))];
                let lists = lists.iter().filter(|(_, list)| list != "[]");
                let lists = lists.map(|(key, list)| format!("{key} = {list}"));
                std::iter::once("[[same]]".to_owned()).chain(patterns).chain(lists).collect()
            }
            Self::Limit { site, group: Endless { pattern: paths, parameter }, max } => {
                let name = match parameter {
                    None => format!("{site}{paths}"),
                    Some(parameter) => format!("{site}{paths}?{parameter}"),
                };
                let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
                let by = match parameter {
                    None => "by = \"pattern\"".to_owned(),
                    Some(name) => format!("by = \"parameter\"\nparameter = {}", json!(name)),
                };
                let lines = ["[[limit]]".to_owned(), format!("name = {}", json!(name))];
                let lines = lines.into_iter().chain(patterns);
                lines.chain([by, format!("max = {max}")]).collect()
            }
        };
        lines.join("\n") + "\n"
    }

    /// Returns the spec of fingerprints with this change alone.
    pub(super) fn spec(&self) -> FingerprintSpec {
        let spec = FingerprintSpec::default();
        match self {
            Self::Limit { .. } => spec,
            Self::Tracking(list) => FingerprintSpec { drop_tracking: *list, ..spec },
            Self::Same { drop_params, fold, .. } => {
                let [host, path] = self.patterns();
                let path = path.unwrap_or_default();
                let rule = json!([{
                    "host": host, "path": path, "drop_params": drop_params, "fold": fold,
                }]);
                // A rule can be too large, for example with a very long path.
                FingerprintSpec { same: rule.to_string().parse().unwrap_or_default(), ..spec }
            }
        }
    }

    /// Returns the patterns of host and path.
    fn patterns(&self) -> [Option<String>; 2] {
        match self {
            Self::Tracking(_) => [None, None],
            Self::Same { site, path, .. } => {
                [Some(host(site)), path.as_ref().map(|path| format!("^{}$", escape(path)))]
            }
            Self::Limit { site, group, .. } => {
                let path = escape(&group.pattern).replace(r"\*", STAR);
                [Some(host(site)), Some(format!("^{path}$"))]
            }
        }
    }
}

/// Returns the pattern of a site's host.
fn host(site: &str) -> String {
    format!(r"^(www\.)?{}$", escape(site))
}

/// Writes a line with a pattern. A literal string of TOML cannot have a quote.
fn pattern(key: &str, pattern: &str) -> String {
    if pattern.contains('\'') {
        format!("{key} = {}", json!(pattern))
    } else {
        format!("{key} = '{pattern}'")
    }
}

/// Writes an array of TOML.
fn list(texts: &[impl Serialize]) -> String {
    let texts: Vec<_> = texts.iter().map(|text| json!(text).to_string()).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_for_the_urls_of_its_group() {
        let limit = |parameter: Option<&str>| {
            let parameter = parameter.map(str::to_owned);
            let group = Endless { pattern: "/a.b/*/*".to_owned(), parameter };
            Draft::Limit { site: "h.x".to_owned(), group, max: 7 }.toml()
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
        let draft = Draft::Same {
            site: "a.x".to_owned(),
            path: Some("/l'été".to_owned()),
            drop_params: vec!["sort[]".to_owned(), "b".to_owned()],
            fold: vec!["www"],
        };
        assert_eq!(
            draft.toml(),
            "[[same]]\nhost = '^(www\\.)?a\\.x$'\npath = \"^/l'été$\"\n\
             drop_params = [\"sort[]\", \"b\"]\nfold = [\"www\"]\n"
        );
        let same = draft.spec().same.to_string();
        let lists = r#""drop_params":["sort[]","b"],"fold":["www"]"#;
        assert_eq!(same, format!(r#"[{{"host":"^(www\\.)?a\\.x$","path":"^/l'été$",{lists}}}]"#));
        let draft = Draft::Tracking(TrackingList::November2026);
        assert_eq!(draft.toml(), "[fingerprint]\ndrop_tracking = \"2026-11\"\n");
        assert_eq!(draft.spec().drop_tracking, TrackingList::November2026);
    }
}
