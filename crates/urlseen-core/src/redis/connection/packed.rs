//! Commands in the form that goes over the network.

/// Command that is written once, argument by argument. A [`redis::Cmd`] stores the arguments and
/// writes them again when it is sent. This form is cheaper for commands that carry items.
///
/// <https://redis.io/docs/latest/develop/reference/protocol-spec/>
#[derive(Debug)]
pub struct Packed {
    bytes: Vec<u8>,
    /// Announced arguments that are not written yet.
    missing: usize,
}

/// Maximum number of bytes of a length: a sign, 20 digits, and the end of a line.
const LENGTH: usize = 23;

impl Packed {
    /// Starts a command of `words` words, its name included, and about `bytes` bytes.
    pub fn new(words: usize, bytes: usize) -> Self {
        let mut packed =
            Self { bytes: Vec::with_capacity(LENGTH + words * LENGTH + bytes), missing: words };
        packed.length(b'*', words);
        packed
    }

    /// Appends the next word.
    ///
    /// # Panics
    /// Panics if all announced words are already there.
    #[inline]
    pub fn word(&mut self, word: &[u8]) {
        self.missing = self.missing.checked_sub(1).expect("no more words than announced");
        self.length(b'$', word.len());
        self.bytes.extend_from_slice(word);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Returns the bytes of the complete command.
    ///
    /// # Panics
    /// Panics if words are missing: Redis would take the next command for them.
    pub(super) fn bytes(&self) -> &[u8] {
        assert_eq!(self.missing, 0, "as many words as announced");
        &self.bytes
    }

    #[inline]
    fn length(&mut self, kind: u8, length: usize) {
        self.bytes.push(kind);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }
}

/// Builds a small command from its words.
impl<'a> FromIterator<&'a [u8]> for Packed {
    fn from_iter<Words: IntoIterator<Item = &'a [u8]>>(words: Words) -> Self {
        let words: Vec<_> = words.into_iter().collect();
        let mut packed = Self::new(words.len(), words.iter().map(|word| word.len()).sum());
        for word in words {
            packed.word(word);
        }
        packed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_equals_the_command_of_the_crate(
            words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20),
        ) {
            let packed: Packed = words.iter().map(Vec::as_slice).collect();
            let mut command = redis::Cmd::new();
            command.arg(&words);
            prop_assert_eq!(packed.bytes(), command.get_packed_command());
        }
    }

    #[test]
    #[should_panic(expected = "as many words as announced")]
    fn it_is_not_sent_before_it_is_complete() {
        let mut packed = Packed::new(2, 0);
        packed.word(b"RPUSH");
        packed.bytes();
    }
}
