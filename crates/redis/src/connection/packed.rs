//! Commands in the form in which they are sent over the network.

/// Command that is written argument by argument, directly in the form in which it is sent. A
/// [`redis::Cmd`] stores the arguments first, and writes them again to send them. For commands with
/// many items, this type is cheaper.
///
/// <https://redis.io/docs/latest/develop/reference/protocol-spec/>
#[derive(Debug)]
pub struct Packed {
    bytes: Vec<u8>,
    /// Number of announced words that are not written yet.
    missing: usize,
}

/// Maximum number of bytes for a length: its type (`*` or `$`), 20 digits, and the end of the line.
const LENGTH: usize = 23;

impl Packed {
    /// Starts a command of `words` words, its name included, and about `bytes` bytes.
    pub(crate) fn new(words: usize, bytes: usize) -> Self {
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
    pub(crate) fn word(&mut self, word: &[u8]) {
        self.missing = self.missing.checked_sub(1).expect("no more words than announced");
        self.length(b'$', word.len());
        self.bytes.extend_from_slice(word);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Returns the bytes of the complete command.
    ///
    /// # Panics
    /// Panics if words are missing: Redis would read the next command as these words.
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
        fn a_packed_command_equals_that_of_the_redis_crate(
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
    fn a_command_with_missing_words_cannot_be_sent() {
        let mut packed = Packed::new(2, 0);
        packed.word(b"RPUSH");
        packed.bytes();
    }
}
