//! Settings whose value is one word of a short list.

pub use urlseen_fingerprint::choice::{Choice, ChoiceError, allowed, choose};
use urlseen_fingerprint::choices;
use urlseen_fingerprint::lanes;

choices! {
    /// Format of a file of fingerprints.
    ImportFormat {
        /// Automatic choice between the other formats, by the first bytes of the file.
        Auto = "auto",
        /// Lines of 32, 40 or 64 hex digits: the file `requests.seen` of older versions of Scrapy.
        Hex = "hex",
        /// Binary file `requests.seen` of Scrapy 2.19.
        RequestsSeen = "requests-seen",
    }

    /// An end of a Redis list.
    End {
        /// The head: `LPUSH` and `LPOP`.
        Left = "left",
        /// The tail: `RPUSH` and `RPOP`.
        Right = "right",
    }

    /// Place from which the daemon takes discovered items.
    SourceKind {
        /// Items on a list in Redis.
        List = "list",
        /// No source: the daemon only answers clients, and needs no Redis.
        None = "none",
    }

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
    }

    /// Place of the filter's bits.
    FilterPlace {
        /// In this process's memory, kept in the storage folder.
        Local = "local",
        /// In Redis, shared with other programs.
        Redis = "redis",
    }

    /// Action once the filter holds more than its capacity.
    WhenFull {
        /// The work continues at a growing error rate, which is logged.
        Warn = "warn",
        /// The daemon takes no more items from the source.
        Stop = "stop",
    }

    /// Form in which items are pushed to the sink.
    Emit {
        /// The item, byte for byte as received.
        Item = "item",
        /// Only the URL of the item.
        Url = "url",
        /// JSON with its URL, method and `meta`, as scrapy-redis's spiders read start URLs.
        StartUrl = "start-url",
    }

    /// Action once the rejects list has its maximum length.
    RejectsFull {
        /// The daemon takes no more items from the source until the list is shorter.
        Wait = "wait",
        /// The oldest rejects are dropped, and counted.
        DropOldest = "drop-oldest",
    }

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
    }

    /// Action if the filter cannot be recovered to its head, the last commit that Redis knows.
    /// Either Redis went back to a state that is too old for the storage folder to restore, or the
    /// folder lacks batches.
    Rollback {
        /// The daemon ends with an error.
        Stop = "stop",
        /// The daemon continues from the newest recoverable state; later items are emitted again.
        EmitAgain = "emit-again",
    }

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
    }

    /// Format of the log's lines.
    LogFormat {
        /// Lines of text for people.
        Text = "text",
        /// A JSON object on each line.
        Json = "json",
    }
}

/// Byte order mark of UTF-8, which some programs write before text.
pub const MARK: &[u8] = "\u{feff}".as_bytes();

/// First byte of the byte order mark.
const MARK_START: u8 = MARK[0];

/// First byte of pickles of protocol 2 and higher. No character of UTF-8 begins with this byte.
const PICKLE: u8 = 0x80;

impl ItemForm {
    /// Detects the form of an item that is not empty.
    #[inline]
    pub fn detect(bytes: &[u8]) -> Self {
        match bytes[0] {
            b'{' => return Self::Json,
            PICKLE => return Self::Pickle,
            b' ' | b'\t' | b'\n' | b'\r' | MARK_START if is_object(bytes) => return Self::Json,
            _ => {}
        }
        // One digit more than the longest fingerprint has.
        let begin = &bytes[..bytes.len().min(65)];
        let digits =
            lanes::position(begin, |lanes| !lanes::hex_digits(lanes)).unwrap_or(begin.len());
        match (digits, bytes.get(digits)) {
            (32 | 40 | 64, None) => Self::Fingerprint,
            (32 | 40 | 64, Some(b'\t')) => Self::Tab,
            _ => Self::Url,
        }
    }
}

/// Returns true if text begins like a JSON object, with `{`. White space and a byte order mark
/// before the `{` are skipped.
pub fn is_object(text: &[u8]) -> bool {
    unmarked(text).trim_ascii_start().starts_with(b"{")
}

/// Removes a byte order mark before JSON text, because `serde_json` refuses it.
pub fn unmarked(text: &[u8]) -> &[u8] {
    text.trim_ascii_start().strip_prefix(MARK).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;
    use urlseen_fingerprint::Algorithm;

    fn each_word_reads_back<T: Choice + PartialEq + std::fmt::Debug>() {
        for (word, choice) in T::ALL {
            assert_eq!(choose::<T>(word), Ok(*choice));
            assert!(choose::<T>(&word.to_uppercase()).is_err());
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
            "top".parse::<End>().unwrap_err().to_string(),
            r#""top" is not known; allowed: left, right"#
        );
    }
}
