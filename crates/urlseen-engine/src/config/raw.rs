//! Values as they are found, before anybody knows what they mean.

use toml::de::DeValue;

/// A value as a layer has it. May hold a password, so it is never formatted but by the rule of
/// its key.
pub(super) enum Raw {
    /// From the environment or `--set`: the key's type decides how it is read.
    Text(String),
    /// A string of a TOML file.
    String(String),
    /// An integer or a float of a TOML file, in decimal.
    Number(String),
    /// A boolean of a TOML file.
    Bool(bool),
    /// An array of strings of a TOML file.
    List(Vec<String>),
    /// Something that no key takes, by what it is.
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

    /// What type this is, to say that it is the wrong one.
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

    /// The value on one line, shortened.
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

    /// The text of a key that takes one.
    pub(super) fn text(&self) -> Result<&str, ValueError> {
        match self {
            Self::Text(text) | Self::String(text) => Ok(text),
            _ => Err(ValueError::Type),
        }
    }

    /// The digits of a key that takes a number.
    pub(super) fn number(&self) -> Result<&str, ValueError> {
        match self {
            Self::Text(text) | Self::Number(text) => Ok(text),
            _ => Err(ValueError::Type),
        }
    }
}

/// Why a value is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ValueError {
    /// It has another type.
    Type,
    /// It has the right type, but makes no sense.
    Value,
    /// As `Value`, for this reason, which also says what to write instead.
    Because(String),
    /// A later version will know it.
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
