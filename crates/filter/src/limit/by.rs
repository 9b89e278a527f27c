//! Property that the items of a group have in common.

use std::fmt;
use std::net::Ipv4Addr;

use urlseen_fingerprint::rule_pages::Page;
use urlseen_fingerprint::same::param_name;

use super::pattern;

/// Property that the items of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// The host, without port.
    Host,
    /// The registrable domain of the host, by the public suffix list. A host without one is a
    /// domain of its own.
    Domain,
    /// The host and the [pattern](pattern()) of the path.
    Pattern,
    /// As for `Pattern`, and a parameter with this name. Its values count instead of the items.
    Parameter(String),
}

impl By {
    /// Names in the configuration.
    pub(crate) const NAMES: [&'static str; 4] = ["host", "domain", "pattern", "parameter"];

    /// Reads the values of the keys `by` and `parameter` of a rule.
    ///
    /// # Errors
    /// Returns the reason why the values are refused.
    pub fn read(by: Option<&str>, parameter: Option<&str>) -> Result<Self, String> {
        match (by, parameter) {
            (Some("host"), None) => Ok(Self::Host),
            (Some("domain"), None) => Ok(Self::Domain),
            (Some("pattern"), None) => Ok(Self::Pattern),
            (Some("parameter"), Some(name)) if !name.is_empty() => {
                Ok(Self::Parameter(name.to_owned()))
            }
            (Some("parameter"), _) => {
                let reason =
                    "has no name as in parameter = \"page\", which by = \"parameter\" needs";
                Err(reason.to_owned())
            }
            (Some(by), Some(_)) if Self::NAMES.contains(&by) => {
                Err("has a parameter, which only by = \"parameter\" takes".to_owned())
            }
            (found, _) => {
                let found = found.map_or_else(|| "no by".to_owned(), |it| format!("by = {it:?}"));
                let allowed = Self::NAMES.map(|it| format!("{it:?}")).join(", ");
                Err(format!("has {found}; allowed: {allowed}"))
            }
        }
    }

    /// Returns the text of the group of a page, and the values of the parameter if they count.
    /// `None` if the page belongs to no group.
    pub(super) fn group(&self, url: &str, page: &Page<'_>) -> Option<(String, Option<String>)> {
        let host = page.host();
        let with_path = || format!("{host}{}", pattern(page.path()));
        Some(match self {
            _ if host.is_empty() => return None,
            Self::Host => (host.to_owned(), None),
            Self::Domain => (domain(host).to_owned(), None),
            Self::Pattern => (with_path(), None),
            Self::Parameter(name) => {
                let values = values(url, name)?;
                (format!("{}?{name}", with_path()), Some(values))
            }
        })
    }
}

/// Returns the registrable domain of a host.
fn domain(host: &str) -> &str {
    let is_address = host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok();
    if is_address { host } else { psl::domain_str(host).unwrap_or(host) }
}

/// Returns the values of all parameters with a name; `None` if there is none.
fn values(url: &str, name: &str) -> Option<String> {
    let url = url.split('#').next().unwrap_or_default();
    let (_, query) = url.split_once('?')?;
    let fields: Vec<_> = query.split('&').filter(|field| param_name(field) == name).collect();
    (!fields.is_empty()).then(|| fields.join("&"))
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Host => "host",
            Self::Domain => "domain",
            Self::Pattern => "pattern",
            Self::Parameter(name) => return write!(f, "by = \"parameter\", parameter = {name:?}"),
        };
        write!(f, "by = {name:?}")
    }
}
