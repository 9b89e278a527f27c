//! Passwords that no message ever shows.

use std::fmt;

use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;

/// Minimum length of a token, in characters.
const SHORTEST_TOKEN: usize = 16;

/// Password that no message shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes the password of a server, or the token that requests to `admin` have in a header.
    /// Returns `None` for an empty text: in a Compose file, a variable without a value is empty.
    ///
    /// # Errors
    /// A token is so short that it can be guessed, or a header cannot have it. The error does not
    /// show the text.
    pub(super) fn of(server: &str, text: String) -> Result<Option<Self>, String> {
        let is_good =
            || text.len() >= SHORTEST_TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || server != "admin" || is_good() {
            return Ok(Some(Self(text)).filter(|secret| !secret.0.is_empty()));
        }
        Err(format!(
            "is not a valid token; allowed: {SHORTEST_TOKEN} or more ASCII characters without \
             spaces, such as the output of: openssl rand -hex 16"
        ))
    }

    /// Returns the text of the password, for a server that requires the password.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Checks a guess. The comparison of two digests takes constant time. So an attacker cannot
    /// learn from the time how much of the guess was right, or how long the password is.
    pub fn is(&self, guess: &[u8]) -> bool {
        let digest = |text: &[u8]| <[u8; 20]>::from(Sha1::digest(text));
        digest(self.0.as_bytes()).ct_eq(&digest(guess)).into()
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
    fn a_secret_matches_only_itself_and_is_not_shown() {
        let secret = Secret("hunter2".to_owned());
        assert!(secret.is(b"hunter2"));
        assert!(!secret.is(b"") && !Secret(String::new()).is(b"hunter2"));
        assert!(!secret.is(b"hunter") && !secret.is(b"hunter22") && !secret.is(b"hunter3"));
        assert!(!format!("{secret:?}").contains("hunter"));
    }
}
