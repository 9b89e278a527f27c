//! Names of parameters: those of a rule, and the lists of parameters that only track a visitor.
//!
//! A list has parameters with which advertisers, mailings and analytics follow readers.
//!
//! A server answers with the same page whatever value these parameters have. A list never changes
//! after its release, because the fingerprints in filters depend on it. A longer list gets a new
//! name, which is its month.
//!
//! Sources of the lists: the pages in which the makers of the parameters document them, and the
//! lists by which browsers remove them: the query string filter of Brave
//! (<https://github.com/brave/brave-browser/wiki/Query-String-Filter>), the query parameter
//! stripping of Firefox, and the filter list "URL Tracking" of `AdGuard`
//! (<https://github.com/AdguardTeam/AdguardFilters>). Parameters that some sites use for content,
//! such as `ref` and `cid`, are on no list.

use std::borrow::Cow;

use regex::RegexBuilder;

use crate::canonical::decoded;
use crate::choice::choices;
use crate::rule_pages::{LARGEST, Pattern};

/// Maximum number of names in a list.
const MOST: usize = 200;
/// Maximum length of a name in bytes, in a list and in a URL. A longer name in a URL fits no list.
const LONGEST: usize = 200;

/// List of names. A `*` in a name stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names(Pattern);

impl Names {
    /// Compiles a list. Returns `None` for an empty list.
    ///
    /// # Errors
    /// Returns the reason why the list is refused.
    pub(super) fn new(texts: &[impl AsRef<str>]) -> Result<Option<Self>, String> {
        if texts.is_empty() {
            return Ok(None);
        }
        if texts.len() > MOST {
            return Err(format!("has {} names; allowed: {MOST} at most", texts.len()));
        }
        let mut lengths = texts.iter().map(|it| it.as_ref().len());
        if let Some(length) = lengths.find(|length| !(1..=LONGEST).contains(length)) {
            return Err(format!("has a name of {length} bytes; allowed: 1 to {LONGEST}"));
        }
        let glob = |it: &str| regex::escape(it).replace(r"\*", ".*");
        let globs: Vec<_> = texts.iter().map(|it| glob(it.as_ref())).collect();
        let pattern = format!("(?s)^(?:{})$", globs.join("|"));
        let fits = RegexBuilder::new(&pattern).size_limit(LARGEST).dfa_size_limit(LARGEST).build();
        let fits = fits.map_err(|_| "is too large; name fewer parameters".to_owned())?;
        Ok(Some(Self(Pattern(fits))))
    }

    /// Returns true if a field of a canonical query has one of the names.
    pub(super) fn have(&self, field: &str) -> bool {
        let name = param_name(field);
        name.len() <= LONGEST && self.0.0.is_match(&name)
    }
}

/// Returns the decoded name of a field of a canonical query, as rules name it.
pub fn param_name(field: &str) -> Cow<'_, str> {
    let name = field.split('=').next().unwrap_or_default();
    if !name.contains(['%', '+']) {
        return name.into();
    }
    let bytes: Vec<u8> = decoded(&name.replace('+', " ")).collect();
    String::from_utf8_lossy(&bytes).into_owned().into()
}

choices! {
    /// List of tracking parameters, by its name.
    #[derive(Default)]
    TrackingList {
        /// No list: tracking parameters are like any others.
        #[default]
        None = "none",
        /// List of November 2026.
        November2026 = "2026-11",
    }
}

impl TrackingList {
    /// Returns the names of the parameters. A `*` stands for any characters.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::November2026 => NOVEMBER_2026,
        }
    }
}

const NOVEMBER_2026: &[&str] = &[
    // Google: Analytics, Ads, Campaign Manager, Merchant Center.
    "utm_*",
    "_ga",
    "_gl",
    "gclid",
    "gclsrc",
    "gbraid",
    "wbraid",
    "dclid",
    "gad_source",
    "gad_campaignid",
    "srsltid",
    // Meta: Facebook, Instagram.
    "fbclid",
    "fb_action_ids",
    "fb_action_types",
    "fb_source",
    "igshid",
    "igsh",
    // Microsoft Advertising, Yandex.
    "msclkid",
    "yclid",
    "ysclid",
    "_openstat",
    // TikTok, X, LinkedIn, Reddit, Snapchat, Pinterest, Taboola, Outbrain, Teads.
    "ttclid",
    "twclid",
    "li_fat_id",
    "rdt_cid",
    "ScCid",
    "epik",
    "tblci",
    "dicbo",
    "auctid",
    // Affiliate networks: Impact, CJ, Awin, Partnerize.
    "irclickid",
    "irgwc",
    "cjevent",
    "awc",
    "clickref",
    // Mailings: Mailchimp, MailerLite, Marketo, HubSpot, Klaviyo, Drip, Vero, Omeda, dotdigital,
    // Listrak, Blueshift.
    "mc_cid",
    "mc_eid",
    "ml_subscriber",
    "ml_subscriber_hash",
    "mkt_tok",
    "_hsenc",
    "_hsmi",
    "__hssc",
    "__hstc",
    "__hsfp",
    "hsCtaTracking",
    "_kx",
    "__s",
    "vero_id",
    "vero_conv",
    "oly_anon_id",
    "oly_enc_id",
    "dm_i",
    "trk_contact",
    "trk_msg",
    "trk_module",
    "trk_sid",
    "bsft_*",
    // Analytics: Matomo, Adobe, Branch, Yahoo.
    "mtm_*",
    "matomo_*",
    "pk_*",
    "piwik_*",
    "s_kwcid",
    "ef_id",
    "_branch_match_id",
    "_branch_referrer",
    "guccounter",
    "guce_referrer",
    "guce_referrer_sig",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Result<Option<Names>, String> {
        Names::new(texts)
    }

    #[test]
    fn a_name_fits_as_it_stands_or_as_a_glob() {
        let names = names(&["sid", "utm_*", "*_ref_*", "sort[]", "a.b", "ä b"]).unwrap().unwrap();
        for field in ["sid=1", "sid", "utm_=", "utm_a%5B%5D=", "x_ref_=2", "sort%5B%5D=", "a.b="] {
            assert!(names.have(field), "{field}");
        }
        assert!(names.have("%C3%A4+b=1"));
        for field in ["sid2=", "SID=", "xsid=", "utm=", "_ref=", "sort=", "acb=", "", "=sid"] {
            assert!(!names.have(field), "{field}");
        }
        assert!(!names.have(&format!("utm_{}=", "a".repeat(LONGEST))));
    }

    #[test]
    fn a_list_has_bounds() {
        assert_eq!(names(&[]), Ok(None));
        let long = "a".repeat(LONGEST + 1);
        for (texts, reason) in [
            (vec!["a"; MOST + 1], "201 names"),
            (vec!["a", ""], "a name of 0 bytes"),
            (vec![&long], "a name of 201 bytes"),
        ] {
            assert!(names(&texts).unwrap_err().contains(reason), "{reason}");
        }
        let globs = vec!["*ä*ä*ä*ä*ä*ä*ä*ä*ä*ä*ä*ä*ä*ä*ä*ä*ä*ä*ä*ä*"; MOST];
        assert!(names(&globs).is_ok_and(|it| it.is_some_and(|it| !it.have("a"))));
    }

    #[test]
    fn a_released_list_never_changes() {
        let names = TrackingList::November2026.names();
        let crc = crc32c::crc32c(names.join("\n").as_bytes());
        assert_eq!((names.len(), crc), (69, 0xffeb_b7e6));
    }
}
