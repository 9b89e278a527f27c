//! What nobody gets to see.

use std::fmt;

/// A password: never formatted.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    /// The password, to be sent to whoever asks for it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether this is it. Takes as long for any of the same length, so that time says nothing of
    /// how much of a guess was right.
    pub fn is(&self, guess: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let differences = own.iter().zip(guess).fold(0, |all, (a, b)| all | (a ^ b));
        own.len() == guess.len() && differences == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_itself_and_is_not_shown() {
        let secret = Secret::new("hunter2".to_owned());
        assert!(secret.is(b"hunter2"));
        assert!(!secret.is(b"hunter") && !secret.is(b"hunter22") && !secret.is(b"hunter3"));
        assert!(!format!("{secret:?}").contains("hunter"));
    }
}
