//! Values as they were found, before they have a type.

use toml::de::DeValue;

/// Value as found in a layer. It may hold a password, so only the rule of its key may format it.
pub(super) enum Raw {
    /// Text of the environment or of `--set`. The type of the key decides how it is read.
    Text(String),
    /// String of a TOML file.
    String(String),
    /// Integer or float of a TOML file, in decimal.
    Number(String),
    /// Boolean of a TOML file.
    Bool(bool),
    /// Array of strings of a TOML file.
    List(Vec<String>),
    /// Description of a value that no key accepts.
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

    /// Type of the value, for a message about a wrong type.
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

    /// Text of the value on one line, shortened.
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

    /// Text of the value, for a key that accepts text.
    pub(super) fn text(&self) -> Result<&str, ValueError> {
        match self {
            Self::Text(text) | Self::String(text) => Ok(text),
            _ => Err(ValueError::Type),
        }
    }

    /// Digits of the value, for a key that accepts a number.
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
    /// Value of another type.
    Type,
    /// Value of the right type that is not allowed.
    Value,
    /// Value that is refused for this reason. The reason also states the remedy.
    Because(String),
    /// Value that a later version will accept.
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
