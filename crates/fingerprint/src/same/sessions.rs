//! List of parameters that carry the id of a session, for clients that take no cookies.
//!
//! Like the lists of tracking parameters, a list never changes after its release. Its patterns fit
//! a field of a query, or a parameter of a path such as `;jsessionid=1`.
//!
//! Sources: the functions of the frameworks that write a session id into links (PHP's
//! `session.use_trans_sid`, `HttpServletResponse.encodeURL` of Java, `URLSessionFormat` of
//! `ColdFusion`), and the lists by which crawlers remove them: `StripSessionIDs` of Heritrix
//! (<https://github.com/internetarchive/heritrix3>) and `regex-normalize.xml` of Nutch
//! (<https://github.com/apache/nutch>). As in Heritrix, the parameter `sid` goes only if its value
//! looks generated, and so does `session_id`, because some sites name their pages by them.

use regex::RegexBuilder;

use crate::choice::choices;
use crate::rule_pages::{LARGEST, Pattern};

choices! {
    /// List of session parameters, by its name.
    #[derive(Default)]
    SessionList {
        /// No list: session parameters are like any others.
        #[default]
        None = "none",
        /// List of December 2026.
        December2026 = "2026-12",
    }
}

impl SessionList {
    /// Returns the pattern of the list's parameters; `None` if the list is empty.
    pub(super) fn pattern(self) -> Option<Pattern> {
        let pattern = match self {
            Self::None => return None,
            Self::December2026 => DECEMBER_2026.join("|"),
        };
        let mut pattern = RegexBuilder::new(&format!("^(?:{pattern})"));
        pattern.case_insensitive(true).size_limit(LARGEST).dfa_size_limit(LARGEST);
        Some(Pattern(pattern.build().expect("the lists are within the bounds")))
    }
}

/// Patterns of the fields, in any case.
const DECEMBER_2026: &[&str] = &[
    // PHP, Java, ASP, ColdFusion.
    "phpsessid=",
    "jsessionid=",
    "aspsessionid[a-z]{8}=",
    "cfid=",
    "cftoken=",
    // Shops: osCommerce, xt:Commerce, Zen Cart, Magento, BroadVision.
    "oscsid=",
    "xtcsid=",
    "zenid=",
    "___sid=",
    "bv_sessionid=",
    // Forums such as phpBB, and names that many sites have chosen.
    "_?sid=[0-9a-z]{20,}$",
    "sess(?:ion)?_?id=[0-9a-z]{20,}$",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_found_by_its_name_and_a_sid_by_its_value_too() {
        let list = SessionList::December2026.pattern().unwrap();
        for field in [
            "PHPSESSID=1",
            "phpsessid=",
            "jsessionid=0123456789ABCDEF.node1",
            "ASPSESSIONIDQABCDEFG=1",
            "CFID=12",
            "sid=9682993c8daa2c5497996114facdc805",
            "sessionId=9682993c8daa2c5497996114facdc805",
        ] {
            assert!(list.0.is_match(field), "{field}");
        }
        for field in [
            "sid=26/11/29/1234567890123456",
            "sid=12",
            "session_id=7",
            "xphpsessid=1",
            "id=cfid=",
            "",
        ] {
            assert!(!list.0.is_match(field), "{field}");
        }
        assert!(SessionList::None.pattern().is_none());
    }

    #[test]
    fn a_released_list_never_changes() {
        let crc = crc32c::crc32c(DECEMBER_2026.join("\n").as_bytes());
        assert_eq!((DECEMBER_2026.len(), crc), (12, 0x3004_4d05));
    }
}
