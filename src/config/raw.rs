//! Values as found in the file, in the environment or in `--set`, before they are converted to a
//! type.

use serde_json::Value as Json;
use toml::de::DeValue;

/// Value as found. It may be a password, so only the code that knows the key may show it.
pub(super) enum Raw {
    /// Text from the environment or from `--set`. The rule of the key decides how to read the text.
    Text(String),
    /// String of a TOML file.
    String(String),
    /// Integer or float of a TOML file, in decimal.
    Number(String),
    /// Boolean of a TOML file.
    Bool(bool),
    /// Array of strings of a TOML file.
    List(Vec<String>),
    /// Value of a type that no key accepts, by the name of the type.
    Other(&'static str),
}

impl Raw {
    pub(super) fn from_toml(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::String(text.to_string()),
            DeValue::Integer(integer) => Self::Number(
                u64::from_str_radix(integer.as_str(), integer.radix())
                    .map_or_else(|_| integer.to_string(), |value| value.to_string()),
            ),
            DeValue::Float(float) => Self::Number(float.as_str().to_owned()),
            DeValue::Boolean(value) => Self::Bool(*value),
            DeValue::Datetime(_) => Self::Other("a date"),
            DeValue::Array(array) => {
                let texts = array.iter().map(|value| match value.get_ref() {
                    DeValue::String(text) => Some(text.to_string()),
                    _ => None,
                });
                texts.collect::<Option<_>>().map_or(Self::Other("an array"), Self::List)
            }
            DeValue::Table(_) => Self::Other("a table"),
        }
    }

    /// Returns the value in JSON.
    pub(super) fn to_json(&self) -> Json {
        match self {
            Self::Text(text) | Self::String(text) => text.as_str().into(),
            Self::Number(text) => match text.parse::<u64>() {
                Ok(number) => number.into(),
                Err(_) => text.parse::<f64>().ok().into(),
            },
            Self::Bool(value) => (*value).into(),
            Self::List(texts) => texts.as_slice().into(),
            Self::Other(_) => Json::Null,
        }
    }

    /// Returns the type of the value in words, for a message about a wrong type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::String(_) => "a string",
            Self::Number(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::List(_) => "an array",
            Self::Other(kind) => kind,
        }
    }

    /// Returns the value as text on one line, shortened if the text is long.
    pub(super) fn shown(&self) -> String {
        const LONGEST: usize = 80;
        match self {
            Self::Text(text) | Self::String(text) => match text.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{:?}…", &text[..end]),
                None => format!("{text:?}"),
            },
            Self::Number(text) => text.chars().take(LONGEST).collect(),
            Self::Bool(value) => value.to_string(),
            Self::List(_) => "an array".to_owned(),
            Self::Other(kind) => (*kind).to_owned(),
        }
    }

    /// Returns the text of the value, for a key that accepts text.
    pub(super) fn text(&self) -> Result<&str, ValueError> {
        match self {
            Self::Text(text) | Self::String(text) => Ok(text),
            _ => Err(ValueError::Type),
        }
    }

    /// Returns the texts of an array of strings.
    pub(super) fn list(&self) -> Option<&[String]> {
        match self {
            Self::List(texts) => Some(texts),
            _ => None,
        }
    }

    /// Returns the digits of the value, for a key that accepts a number.
    pub(super) fn number(&self) -> Result<&str, ValueError> {
        match self {
            Self::Text(text) | Self::Number(text) => Ok(text),
            _ => Err(ValueError::Type),
        }
    }
}

/// Reason why a value is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ValueError {
    /// Value of a type that the key does not accept.
    Type,
    /// Value of the right type that is not among the allowed values.
    Value,
    /// Value with a special reason for the refusal. The text also says what to do.
    Because(String),
    /// Value that only a later version will accept.
    NotYet,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shortened_and_stay_on_their_line() {
        let text = |text: &str| Raw::Text(text.to_owned());
        assert_eq!(text("a\nb").shown(), r#""a\nb""#);
        assert_eq!(text(&"ä".repeat(81)).shown(), format!("\"{}\"…", "ä".repeat(80)));
    }
}
