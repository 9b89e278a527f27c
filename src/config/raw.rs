//! Values as found in the file, in the environment or in `--set`, before they are converted to a
//! type.

use super::secret::masked;
use toml::Spanned;
use toml::de::DeValue;

/// Value as found. It may be a password, so only the code that knows the key may show it.
pub(super) struct Raw {
    /// Type of the value in words, for a message about a wrong type.
    pub(super) kind: &'static str,
    /// Text, number or boolean; empty for a value of another type.
    text: String,
    /// Texts of an array of strings.
    texts: Option<Vec<String>>,
}

/// Kind of a text from the environment or from `--set`. The rule of the key decides how to read it.
const TEXT: &str = "a text";
/// Kinds of values of a TOML file. A number is an integer or a float, in decimal.
pub(super) const STRING: &str = "a string";
pub(super) const NUMBER: &str = "a number";
pub(super) const BOOLEAN: &str = "a boolean";

impl Raw {
    /// Makes a value from the environment or from `--set`.
    pub(super) fn new(text: String) -> Self {
        Self { kind: TEXT, text, texts: None }
    }

    pub(super) fn from_toml(value: &DeValue<'_>) -> Self {
        let mut texts = None;
        let (kind, text) = match value {
            DeValue::String(text) => (STRING, text.to_string()),
            DeValue::Integer(integer) => {
                let value = u64::from_str_radix(integer.as_str(), integer.radix());
                (NUMBER, value.map_or_else(|_| integer.to_string(), |value| value.to_string()))
            }
            DeValue::Float(float) => (NUMBER, float.as_str().to_owned()),
            DeValue::Boolean(value) => (BOOLEAN, value.to_string()),
            DeValue::Datetime(_) => ("a date", String::new()),
            DeValue::Array(array) => {
                let text =
                    |value: &Spanned<DeValue<'_>>| value.get_ref().as_str().map(str::to_owned);
                texts = array.iter().map(text).collect();
                ("an array", String::new())
            }
            DeValue::Table(_) => ("a table", String::new()),
        };
        Self { kind, text, texts }
    }

    /// Returns the value as text on one line, shortened if the text is long.
    pub(super) fn shown(&self) -> String {
        const LONGEST: usize = 80;
        let start: String = self.text.chars().take(LONGEST).collect();
        match self.kind {
            TEXT | STRING if start.len() < self.text.len() => format!("{start:?}…"),
            TEXT | STRING => format!("{start:?}"),
            NUMBER | BOOLEAN => start,
            other => other.to_owned(),
        }
    }

    /// Returns the value like [`Self::shown`], without any password that is part of an address.
    pub(super) fn masked(&self) -> String {
        match self.text() {
            Ok(text) => Self::new(masked(text)).shown(),
            // A number may be a password, so only its type is shown.
            Err(_) => self.kind.to_owned(),
        }
    }

    /// Returns the text of the value, for a key that accepts text.
    pub(super) fn text(&self) -> Result<&str, ValueError> {
        self.of(STRING)
    }

    /// Returns the text of a value of this kind in the file, or of any text of another layer.
    pub(super) fn of(&self, kind: &str) -> Result<&str, ValueError> {
        if [TEXT, kind].contains(&self.kind) { Ok(&self.text) } else { Err(ValueError::Type) }
    }

    /// Returns the texts of an array of strings, or of a text separated by commas.
    pub(super) fn list(&self) -> Result<Vec<String>, ValueError> {
        let text = self.text.trim();
        if self.kind != TEXT {
            self.texts.clone().ok_or(ValueError::Type)
        } else if text.starts_with('[') {
            // The text is an array in the syntax of TOML.
            let array = DeValue::parse(text).map_err(|_| ValueError::Value)?;
            Self::from_toml(array.get_ref()).list()
        } else if text.is_empty() {
            Ok(Vec::new())
        } else {
            Ok(text.split(',').map(|text| text.trim().to_owned()).collect())
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shortened_and_stay_on_their_line() {
        let text = |text: &str| Raw::new(text.to_owned());
        assert_eq!(text("a\nb").shown(), r#""a\nb""#);
        assert_eq!(text(&"ä".repeat(81)).shown(), format!("\"{}\"…", "ä".repeat(80)));
    }
}
