//! Choices: settings that take one of a few words, and those words.

use crate::fingerprint::Algorithm;

/// What a key that takes one of a few words may be set to.
pub trait Choice: Copy + 'static {
    /// The words and what they mean, in the order in which messages list them.
    const ALL: &'static [(&'static str, Self)];
    /// Words that are spoken for and not understood yet.
    const LATER: &'static [&'static str];
}

/// Why a word is not a choice. Display lists the words that are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// The word means nothing here.
    #[error("{found:?} is not known; allowed: {allowed}")]
    Unknown {
        /// The word as given.
        found: String,
        /// All words that are allowed, separated by commas.
        allowed: String,
    },
    /// The word will mean something in a later version.
    #[error("{found:?} is not in this version yet; allowed now: {allowed}")]
    NotYet {
        /// The word as given.
        found: String,
        /// All words that are allowed, separated by commas.
        allowed: String,
    },
}

/// Reads one of the words of `T`.
pub fn choose<T: Choice>(word: &str) -> Result<T, ChoiceError> {
    if let Some((_, choice)) = T::ALL.iter().find(|(name, _)| *name == word) {
        return Ok(*choice);
    }
    let (found, allowed) = (word.to_owned(), allowed::<T>());
    Err(if T::LATER.contains(&word) {
        ChoiceError::NotYet { found, allowed }
    } else {
        ChoiceError::Unknown { found, allowed }
    })
}

/// The words of `T` as a sentence part.
pub fn allowed<T: Choice>() -> String {
    let words: Vec<_> = T::ALL.iter().map(|(name, _)| *name).collect();
    words.join(", ")
}

/// Declares enums whose variants have a word each; a new one is one line. What stands after
/// `later` is refused with a sentence of its own.
macro_rules! choices {
    ($(
        $(#[doc = $doc:literal])+
        $Name:ident {
            $( $(#[doc = $choice_doc:literal])+ $Variant:ident = $word:literal, )+
        } later [$($later:literal),*]
    )+) => { $(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $Name {
            $( $(#[doc = $choice_doc])+ $Variant, )+
        }

        impl $Name {
            /// The word for it in the configuration.
            pub fn name(self) -> &'static str {
                match self { $( Self::$Variant => $word, )+ }
            }
        }

        impl Choice for $Name {
            const ALL: &'static [(&'static str, Self)] = &[$( ($word, Self::$Variant), )+];
            const LATER: &'static [&'static str] = &[$( $later ),*];
        }

        impl std::str::FromStr for $Name {
            type Err = ChoiceError;

            fn from_str(word: &str) -> Result<Self, ChoiceError> {
                choose(word)
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    )+ };
}

#[cfg(feature = "link")]
pub(crate) use choices;

choices! {
    /// An end of a Redis list.
    End {
        /// The head: `LPUSH` and `LPOP`.
        Left = "left",
        /// The tail: `RPUSH` and `RPOP`.
        Right = "right",
    } later []

    /// Where discovered items come from.
    SourceKind {
        /// A Redis list.
        List = "list",
        /// A Redis stream.
        Stream = "stream",
        /// Nowhere: there are clients alone that ask. No Redis is needed.
        None = "none",
    } later []

    /// What becomes of the entries of a stream that are committed.
    AfterCommit {
        /// They stay.
        Keep = "keep",
        /// They are deleted, and no others.
        Delete = "delete",
        /// All entries up to them are removed.
        Trim = "trim",
    } later []

    /// What items of the source look like.
    ItemForm {
        /// Any of the others, told apart by their first bytes.
        Auto = "auto",
        /// A URL by itself.
        Url = "url",
        /// A request as a JSON object.
        Json = "json",
        /// A fingerprint by itself.
        Fingerprint = "fingerprint",
        /// A fingerprint, a tab, and a payload that nobody looks into.
        Tab = "tab",
        /// A request as scrapy-redis pickles it.
        Pickle = "pickle",
    } later []

    /// Where the filter's bits live.
    FilterPlace {
        /// In this process's memory, kept in the storage folder.
        Local = "local",
        /// In Redis, where others can share them.
        Redis = "redis",
    } later []

    /// What happens once the filter holds more than its capacity.
    WhenFull {
        /// Work goes on at a growing error rate, which is logged.
        Warn = "warn",
        /// Nothing more is taken from the source.
        Stop = "stop",
    } later ["grow"]

    /// What is pushed to the sink.
    Emit {
        /// The item, byte for byte as received.
        Item = "item",
        /// The item's URL alone.
        Url = "url",
        /// JSON with its URL, method and `meta`, as scrapy-redis's spiders read start URLs.
        StartUrl = "start-url",
    } later []

    /// What happens once the rejects list is at its longest.
    RejectsFull {
        /// Nothing more is taken from the source until somebody makes room.
        Wait = "wait",
        /// The oldest rejects make room; how many is counted.
        DropOldest = "drop-oldest",
    } later []

    /// When the storage folder's log is flushed to the disk. It is always written before the commit
    /// it belongs to, so only a crash of the whole machine can tell these apart.
    Fsync {
        /// Before every commit.
        Always = "always",
        /// Every second or so.
        Interval = "interval",
        /// When the operating system likes.
        Never = "never",
    } later []

    /// What happens where the filter cannot be brought to just what Redis knows: Redis went back
    /// further than the storage folder does, or the folder lacks batches that Redis has.
    Rollback {
        /// The daemon says so and ends.
        Stop = "stop",
        /// It goes on with what the filter has of what Redis knows; the rest is emitted again.
        EmitAgain = "emit-again",
    } later []

    /// The least severe events that are logged.
    Level {
        /// What stopped the work.
        Error = "error",
        /// And what somebody should look at.
        Warn = "warn",
        /// And what happens, at a rate that people can read.
        Info = "info",
        /// And what it takes to find a bug.
        Debug = "debug",
        /// And every batch.
        Trace = "trace",
    } later []

    /// What a log line looks like.
    LogFormat {
        /// A line for people.
        Text = "text",
        /// A JSON object.
        Json = "json",
    } later []
}

impl Choice for Algorithm {
    const ALL: &'static [(&'static str, Self)] = &[
        ("scrapy", Self::Scrapy),
        ("scrapy-2.6", Self::Scrapy26),
        ("scrapy-redis", Self::ScrapyRedis),
    ];
    const LATER: &'static [&'static str] = &[];
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn each_word_reads_back<T: Choice + PartialEq + std::fmt::Debug>() {
        for (word, choice) in T::ALL {
            assert_eq!(choose::<T>(word), Ok(*choice));
            assert!(choose::<T>(&word.to_uppercase()).is_err());
        }
        for word in T::LATER {
            assert!(matches!(choose::<T>(word), Err(ChoiceError::NotYet { .. })), "{word}");
        }
    }

    #[test]
    fn every_word_means_its_choice() {
        each_word_reads_back::<AfterCommit>();
        each_word_reads_back::<Algorithm>();
        each_word_reads_back::<Emit>();
        each_word_reads_back::<End>();
        each_word_reads_back::<Fsync>();
        each_word_reads_back::<ItemForm>();
        each_word_reads_back::<Kind>();
        each_word_reads_back::<Level>();
        each_word_reads_back::<LogFormat>();
        each_word_reads_back::<RejectsFull>();
        each_word_reads_back::<Rollback>();
        each_word_reads_back::<FilterPlace>();
        each_word_reads_back::<WhenFull>();
        assert_eq!(RejectsFull::DropOldest.to_string(), "drop-oldest");
    }

    #[test]
    fn a_wrong_word_gets_the_right_ones() {
        assert_eq!(
            "grow".parse::<WhenFull>().unwrap_err().to_string(),
            r#""grow" is not in this version yet; allowed now: warn, stop"#
        );
        assert_eq!(
            "top".parse::<End>().unwrap_err().to_string(),
            r#""top" is not known; allowed: left, right"#
        );
    }

    #[test]
    fn algorithms_read_the_same_from_either_side() {
        for (word, algorithm) in Algorithm::ALL {
            assert_eq!(word.parse(), Ok(*algorithm));
        }
    }
}
