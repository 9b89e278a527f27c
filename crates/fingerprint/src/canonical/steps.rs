//! Rules that make a URL canonical, and the observer that is told of each step.

/// Observer of the steps that make a URL canonical. Batches pass `()`, for which no code is made.
pub(crate) trait Observer {
    /// Notes that a function of w3lib begins.
    fn begin(&mut self, _: Pass) {}

    /// Notes that a rule was applied. `url` returns the URL after it: the text that is written, and
    /// the rest as it stands in the URL.
    fn step(&mut self, _: Rule, _url: impl FnOnce() -> String) {}
}

impl Observer for () {}

/// One of the two functions of w3lib that convert the URL of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pass {
    /// Function that makes the URL of a `Request` safe.
    Safe,
    /// Function that makes the safe URL canonical for a fingerprint.
    Canonical,
}

impl Pass {
    /// Returns the full name of the function in w3lib.
    pub fn function(self) -> &'static str {
        match self {
            Self::Safe => "w3lib.url.safe_url_string",
            Self::Canonical => "w3lib.url.canonicalize_url",
        }
    }
}

/// Declares the rules. Each rule has a name, the part of a URL to which it applies, and a sentence.
macro_rules! rules {
    ($($Rule:ident = $name:literal, $part:literal, $words:literal;)+) => {
        /// Rule that w3lib applies to a URL.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $words] $Rule,)+
        }

        impl Rule {
            /// All rules, in the order in which they are applied.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$Rule),+];

            /// Returns the short name of the rule.
            pub fn name(self) -> &'static str {
                match self { $(Self::$Rule => $name,)+ }
            }

            /// Returns a sentence that states the rule, without a full stop.
            pub fn words(self) -> &'static str {
                match self { $(Self::$Rule => $words,)+ }
            }

            /// Returns the part of a URL to which the rule applies.
            pub fn part(self) -> &'static str {
                match self { $(Self::$Rule => $part,)+ }
            }
        }
    };
}

rules! {
    Edges = "edges", "url", "control characters and spaces are removed at both ends";
    Breaks = "tabs and line ends", "url",
        "tabs, carriage returns and line feeds are removed everywhere";
    Backslashes = "backslashes", "url",
        "in http, https, ftp, file, ws and wss, backslashes up to the first ? or # become slashes";
    SchemeCase = "scheme in lower case", "scheme", "the scheme is written in lower case";
    UserInfo = "user info", "user info",
        "name and password are decoded, and escaped again if they are not plain";
    HostCase = "host in lower case", "host", "the host is written in lower case";
    Idna = "international host", "host",
        "a host that is not ASCII is encoded with IDNA 2003 (xn--…), unless IDNA refuses it";
    Brackets = "brackets of the host", "host", "only an address with a colon keeps its brackets";
    Ipv6 = "IPv6 address", "host", "an IPv6 address is written in its shortest form";
    EmptyPort = "empty port", "port", "a colon without a port is removed";
    Port = "port", "port",
        "a port is written without leading zeros; the default port of a scheme stays";
    PathEscaped = "path escaped", "path",
        "characters that are not safe in a path are percent-escaped; existing escapes stay";
    PathDecoded = "path decoded", "path",
        "escapes in the path are decoded except %25 %2F %3B %3F (w3lib 2.4: except %2F %3F), and \
         characters that are not plain are escaped in upper case";
    EmptyPath = "empty path", "path", "an empty path becomes /";
    DotSegments = "dot segments", "path", "the segments . and .. of a path are resolved";
    Slashes = "slashes", "host",
        "two slashes stand before an authority; in schemes such as http, also before an empty one";
    EmptyParameters = "empty parameters", "path",
        "an empty ; at the end of the last segment is removed";
    Parameters = "parameters", "path",
        "parameters after a ; in the last segment are made safe, and never decoded";
    EmptyQuery = "empty query", "query", "an empty query is removed with its ?";
    QueryEscaped = "query escaped", "query",
        "characters that are not safe in a query are percent-escaped; existing escapes stay";
    EmptyFields = "empty fields", "query", "empty fields between two & are removed";
    Semicolons = "semicolons", "query",
        "a ; separates fields like a &, and becomes a & (w3lib 2.4)";
    BlankValues = "blank values", "query", "a field without = gets one, so blank values are kept";
    QueryDecoded = "query decoded", "query",
        "keys and values are decoded (+ is a space), and all characters except letters, digits \
         and -._~ are escaped, a space as +";
    QuerySorted = "query sorted", "query",
        "fields are sorted by their decoded bytes, key then value";
    EmptyFragment = "empty fragment", "fragment", "an empty fragment is removed with its #";
    FragmentEscaped = "fragment escaped", "fragment",
        "characters that are not safe in a fragment are percent-escaped";
    FragmentDropped = "fragment dropped", "fragment",
        "the fragment is removed, unless fragments are kept";
}
