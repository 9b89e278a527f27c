//! Choices: values that are one word of a short list.

/// Setting whose value is one of a few words.
pub trait Choice: Copy + 'static {
    /// All words and their meanings, in the order in which messages list them.
    const ALL: &'static [(&'static str, Self)];
}

/// Error: a word is not a choice. The text lists the allowed words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not known; allowed: {allowed}")]
pub struct ChoiceError {
    found: String,
    allowed: String,
}

/// Reads one of the words of `T`.
pub fn choose<T: Choice>(word: &str) -> Result<T, ChoiceError> {
    let found = T::ALL.iter().find(|(name, _)| *name == word);
    let error = || ChoiceError { found: word.to_owned(), allowed: allowed::<T>() };
    found.map(|&(_, choice)| choice).ok_or_else(error)
}

/// Lists the words of `T`, separated by commas.
pub fn allowed<T: Choice>() -> String {
    let words: Vec<_> = T::ALL.iter().map(|(name, _)| *name).collect();
    words.join(", ")
}

/// Declares enums. Each variant is one line, with the word that selects it in the configuration.
#[macro_export]
macro_rules! choices {
    ($(
        $(#[$attribute:meta])+
        $Name:ident {
            $( $(#[$choice_attribute:meta])+ $Variant:ident = $word:literal, )+
        }
    )+) => { $(
        $(#[$attribute])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $Name {
            $( $(#[$choice_attribute])+ $Variant, )+
        }

        impl $Name {
            /// Returns the word of this choice in the configuration.
            pub fn name(self) -> &'static str {
                match self { $( Self::$Variant => $word, )+ }
            }
        }

        impl $crate::choice::Choice for $Name {
            const ALL: &'static [(&'static str, Self)] = &[$( ($word, Self::$Variant), )+];
        }

        impl std::str::FromStr for $Name {
            type Err = $crate::choice::ChoiceError;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                $crate::choice::choose(word)
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    )+ };
}

pub(crate) use choices;
