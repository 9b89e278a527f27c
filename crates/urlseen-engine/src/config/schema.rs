//! JSON schema of the configuration file, made from the tables that read the file.

use serde_json::{Map, Value as Json, json};

use super::layers::Layers;
use super::rule_kinds::{KINDS, MOST, RuleKind};
use super::sections::descriptions;
use super::{Config, Taker};

/// Description of a section for the schema.
pub(super) struct SectionDescription {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) keys: Vec<KeyDescription>,
}

/// Description of a key for the schema.
pub(super) struct KeyDescription {
    pub(super) name: &'static str,
    pub(super) text: String,
    /// Description of the allowed values.
    pub(super) allowed: String,
    /// JSON schema of the values.
    pub(super) schema: Json,
}

/// Version of JSON schema.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Returns the JSON schema of the configuration file.
///
/// The schema knows the names, types, words and ranges. It does not know which values fit together,
/// and accepts some texts that urlseen refuses, such as an invalid address.
pub fn schema() -> Json {
    // The defaults of some keys contain the name of the crawl.
    let defaults = Config::default().values();
    let mut layers = Layers::default();
    layers.add_set(&["crawl.name=<crawl.name>".to_owned()]);
    let derived = Config::take(&mut Taker::new(layers)).values();
    let mut defaults = defaults.into_iter().zip(derived).map(|((_, value), (key, derived))| {
        let is_derived = value != derived && key != "crawl.name";
        Default { is_derived, value: if is_derived { derived } else { value } }
    });
    let mut properties = Map::new();
    for SectionDescription { name, text, keys } in descriptions() {
        let keys = keys.into_iter().zip(defaults.by_ref());
        let keys = keys.map(|(key, default)| (key.name.to_owned(), property(key, &default)));
        let section = object(text.trim(), keys.collect());
        properties.insert(name.to_owned(), section);
    }
    properties.extend(KINDS.map(|kind| (kind.name.to_owned(), rules(kind))));
    let mut schema = object("Configuration of urlseen", properties);
    schema["$schema"] = DIALECT.into();
    schema["title"] = "urlseen".into();
    schema
}

/// Default value of a key in an empty file.
struct Default {
    value: Json,
    /// True if the default contains the name of the crawl.
    is_derived: bool,
}

/// Returns the schema of a table with these properties and no others.
fn object(text: &str, properties: Map<String, Json>) -> Json {
    json!({
        "description": text,
        "type": "object",
        "properties": Json::Object(properties),
        "additionalProperties": false,
    })
}

fn property(key: KeyDescription, default: &Default) -> Json {
    let KeyDescription { text, allowed, mut schema, .. } = key;
    let mut text = format!("{} Allowed: {allowed}.", text.trim());
    if default.is_derived {
        text = format!("{text} Default: {}.", default.value);
    } else {
        schema["default"] = default.value.clone();
    }
    schema["description"] = text.into();
    schema
}

fn rules(kind: RuleKind) -> Json {
    let keys = kind.all_keys().map(|key| {
        let mut schema = key.form.schema();
        schema["description"] = format!("{}.", key.text).into();
        (key.name.to_owned(), schema)
    });
    let rule = object(&format!("{}.", kind.text), keys.collect());
    json!({ "type": "array", "items": rule, "maxItems": MOST })
}
