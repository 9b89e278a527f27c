//! Choices: settings whose value is one word of a short list.

use crate::fingerprint::Algorithm;
use crate::fingerprint::same::TrackingList;

/// Setting whose value is one of a few words.
pub trait Choice: Copy + 'static {
    /// All words and their meanings, in the order in which messages list them.
    const ALL: &'static [(&'static str, Self)];
    /// Words that are reserved for later versions.
    const LATER: &'static [&'static str];
}

/// Reason why a word is not a choice. The text lists the allowed words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// The word is not one of the choices of this key.
    #[error("{found:?} is not known; allowed: {allowed}")]
    Unknown {
        /// The word that was given.
        found: String,
        /// All words that are allowed, separated by commas.
        allowed: String,
    },
    /// The word is reserved for a later version.
    #[error("{found:?} is not in this version yet; allowed now: {allowed}")]
    NotYet {
        /// The word that was given.
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

/// Lists the words of `T`, separated by commas.
pub fn allowed<T: Choice>() -> String {
    let words: Vec<_> = T::ALL.iter().map(|(name, _)| *name).collect();
    words.join(", ")
}

/// Declares enums. Each variant is one line, with the word that selects it in the configuration. A
/// word after `later` is refused with the message that this version does not have it yet.
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
            /// Returns the word of this choice in the configuration.
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
    /// Format of a file of fingerprints.
    ImportFormat {
        /// Automatic choice between the other formats, by the first bytes of the file.
        Auto = "auto",
        /// Lines of 32, 40 or 64 hex digits: the file `requests.seen` of older versions of Scrapy.
        Hex = "hex",
        /// Binary file `requests.seen` of Scrapy 2.19.
        RequestsSeen = "requests-seen",
    } later []

    /// An end of a Redis list.
    End {
        /// The head: `LPUSH` and `LPOP`.
        Left = "left",
        /// The tail: `RPUSH` and `RPOP`.
        Right = "right",
    } later []

    /// Place from which the daemon takes discovered items.
    SourceKind {
        /// Items on a list in Redis.
        List = "list",
        /// No source: the daemon only answers clients, and needs no Redis.
        None = "none",
    } later []

    /// Form of the source's items.
    ItemForm {
        /// Any of the other forms, told apart by the first bytes.
        Auto = "auto",
        /// A URL without anything else.
        Url = "url",
        /// A request as a JSON object.
        Json = "json",
        /// A fingerprint without anything else.
        Fingerprint = "fingerprint",
        /// A fingerprint, a tab, and a payload that the daemon passes on unread.
        Tab = "tab",
        /// A request as scrapy-redis pickles it.
        Pickle = "pickle",
    } later []

    /// Place of the filter's bits.
    FilterPlace {
        /// In this process's memory, kept in the storage folder.
        Local = "local",
        /// In Redis, shared with other programs.
        Redis = "redis",
    } later []

    /// Action once the filter holds more than its capacity.
    WhenFull {
        /// The work continues at a growing error rate, which is logged.
        Warn = "warn",
        /// The daemon takes no more items from the source.
        Stop = "stop",
    } later ["grow"]

    /// Form in which items are pushed to the sink.
    Emit {
        /// The item, byte for byte as received.
        Item = "item",
        /// Only the URL of the item.
        Url = "url",
        /// JSON with its URL, method and `meta`, as scrapy-redis's spiders read start URLs.
        StartUrl = "start-url",
    } later []

    /// Action once the rejects list has its maximum length.
    RejectsFull {
        /// The daemon takes no more items from the source until the list is shorter.
        Wait = "wait",
        /// The oldest rejects are dropped, and counted.
        DropOldest = "drop-oldest",
    } later []

    /// Times at which the storage folder's log is synced to the disk. Before each commit, the
    /// daemon always passes the log to the operating system, which keeps it if only the daemon is
    /// killed. So the choice matters only if the whole machine crashes.
    Fsync {
        /// Before each commit of a batch.
        Always = "always",
        /// At intervals of about a second.
        Interval = "interval",
        /// Left to the operating system.
        Never = "never",
    } later []

    /// Action if the filter cannot be recovered to its head, the last commit that Redis knows.
    /// Either Redis went back to a state that is too old for the storage folder to restore, or the
    /// folder lacks batches.
    Rollback {
        /// The daemon ends with an error.
        Stop = "stop",
        /// The daemon continues from the newest recoverable state; later items are emitted again.
        EmitAgain = "emit-again",
    } later []

    /// Least severity of logged events.
    Level {
        /// Failures that stopped the work.
        Error = "error",
        /// Failures, and problems that an operator should look at.
        Warn = "warn",
        /// Failures, problems, and progress at a rate that people can read.
        Info = "info",
        /// All of these, and details that help to find a bug.
        Debug = "debug",
        /// All events, even one for every single batch.
        Trace = "trace",
    } later []

    /// Format of the log's lines.
    LogFormat {
        /// Lines of text for people.
        Text = "text",
        /// A JSON object on each line.
        Json = "json",
    } later []
}

impl Choice for TrackingList {
    const ALL: &'static [(&'static str, Self)] = &Self::ALL;
    const LATER: &'static [&'static str] = &[];
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
    fn every_word_selects_its_choice() {
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
    fn an_unknown_word_is_refused_with_the_allowed_words() {
        assert_eq!(
            "grow".parse::<WhenFull>().unwrap_err().to_string(),
            r#""grow" is not in this version yet; allowed now: warn, stop"#
        );
        assert_eq!(
            "top".parse::<End>().unwrap_err().to_string(),
            r#""top" is not known; allowed: left, right"#
        );
    }
}
