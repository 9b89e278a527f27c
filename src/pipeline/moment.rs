//! Points in time as written in JSON: RFC 3339, to the millisecond. For `#[serde(with)]`.

use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&humantime::format_rfc3339_millis(*time))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
    let text = String::deserialize(from)?;
    humantime::parse_rfc3339(&text).map_err(serde::de::Error::custom)
}

/// Optional points in time: RFC 3339, to the millisecond, or null.
pub(super) mod optional {
    use super::{Deserialize, Deserializer, Serializer, SystemTime};

    #[expect(clippy::ref_option, reason = "serde passes this type")]
    pub(in super::super) fn serialize<S: Serializer>(
        time: &Option<SystemTime>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => super::serialize(time, to),
            None => to.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<SystemTime>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| humantime::parse_rfc3339(&text).map_err(serde::de::Error::custom))
            .transpose()
    }
}
