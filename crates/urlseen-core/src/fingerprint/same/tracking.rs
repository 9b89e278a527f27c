//! Lists of parameters with which advertisers, mailings and analytics follow readers.
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

use std::fmt;
use std::str::FromStr;

/// List of tracking parameters, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TrackingList {
    /// No list: tracking parameters are like any others.
    #[default]
    None,
    /// List of November 2026.
    November2026,
}

/// Error for a text that is not the name of a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not known; allowed: {}", TrackingList::ALL.map(|(name, _)| name).join(", "))]
pub struct UnknownListError {
    found: String,
}

impl TrackingList {
    /// All lists by their names in the configuration.
    pub const ALL: [(&'static str, Self); 2] =
        [("none", Self::None), ("2026-11", Self::November2026)];

    /// Returns the name in the configuration.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|&(_, list)| list == self).map_or("", |(name, _)| name)
    }

    /// Returns the names of the parameters. A `*` stands for any characters.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::November2026 => NOVEMBER_2026,
        }
    }
}

impl fmt::Display for TrackingList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TrackingList {
    type Err = UnknownListError;

    fn from_str(name: &str) -> Result<Self, UnknownListError> {
        let known = Self::ALL.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, list)| list).ok_or_else(|| UnknownListError { found: name.to_owned() })
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

    #[test]
    fn a_released_list_never_changes() {
        let names = TrackingList::November2026.names();
        let crc = crc32c::crc32c(names.join("\n").as_bytes());
        assert_eq!((names.len(), crc), (69, 0xffeb_b7e6));
    }
}
