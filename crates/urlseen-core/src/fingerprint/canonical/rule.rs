//! Rules that make a URL canonical, each with a name and a sentence for people.

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

/// Part of a URL to which a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UrlPart {
    /// All parts of the URL together.
    Url,
    /// Scheme, such as `https`.
    Scheme,
    /// User info before the `@`.
    UserInfo,
    /// Host, with its brackets.
    Host,
    /// Port, without its colon.
    Port,
    /// Path, with the `;` parameters of its last segment.
    Path,
    /// Query string after the `?`.
    Query,
    /// Fragment after the `#`.
    Fragment,
}

impl UrlPart {
    /// Returns the name of the part, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Scheme => "scheme",
            Self::UserInfo => "user info",
            Self::Host => "host",
            Self::Port => "port",
            Self::Path => "path",
            Self::Query => "query",
            Self::Fragment => "fragment",
        }
    }
}

/// Declares the rules. Each rule has a name, the part of a URL to which it applies, and a sentence.
macro_rules! rules {
    ($($Rule:ident = $name:literal, $part:ident, $words:literal;)+) => {
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
            pub fn part(self) -> UrlPart {
                match self { $(Self::$Rule => UrlPart::$part,)+ }
            }
        }
    };
}

rules! {
    Edges = "edges", Url, "control characters and spaces are removed at both ends";
    Breaks = "tabs and line ends", Url,
        "tabs, carriage returns and line feeds are removed everywhere";
    Backslashes = "backslashes", Url,
        "in http, https, ftp, file, ws and wss, backslashes up to the first ? or # become slashes";
    SchemeCase = "scheme in lower case", Scheme, "the scheme is written in lower case";
    UserInfo = "user info", UserInfo,
        "name and password are decoded, and escaped again if they are not plain";
    HostCase = "host in lower case", Host, "the host is written in lower case";
    Idna = "international host", Host,
        "a host that is not ASCII is encoded with IDNA 2003 (xn--…), unless IDNA refuses it";
    Brackets = "brackets of the host", Host, "only an address with a colon keeps its brackets";
    Ipv6 = "IPv6 address", Host, "an IPv6 address is written in its shortest form";
    EmptyPort = "empty port", Port, "a colon without a port is removed";
    Port = "port", Port,
        "a port is written without leading zeros; the default port of a scheme stays";
    PathEscaped = "path escaped", Path,
        "characters that are not safe in a path are percent-escaped; existing escapes stay";
    PathDecoded = "path decoded", Path,
        "escapes in the path are decoded except %25 %2F %3B %3F, and characters that are not plain \
         are escaped in upper case";
    EmptyPath = "empty path", Path, "an empty path becomes /";
    DotSegments = "dot segments", Path, "the segments . and .. of a path are resolved";
    Slashes = "slashes", Host,
        "two slashes stand before an authority; in schemes such as http, also before an empty one";
    EmptyParameters = "empty parameters", Path,
        "an empty ; at the end of the last segment is removed";
    Parameters = "parameters", Path,
        "parameters after a ; in the last segment are made safe, and never decoded";
    EmptyQuery = "empty query", Query, "an empty query is removed with its ?";
    QueryEscaped = "query escaped", Query,
        "characters that are not safe in a query are percent-escaped; existing escapes stay";
    EmptyFields = "empty fields", Query, "empty fields between two & are removed";
    BlankValues = "blank values", Query, "a field without = gets one, so blank values are kept";
    QueryDecoded = "query decoded", Query,
        "keys and values are decoded (+ is a space), and all characters except letters, digits \
         and -._~ are escaped, a space as +";
    QuerySorted = "query sorted", Query, "fields are sorted by their decoded bytes, key then value";
    EmptyFragment = "empty fragment", Fragment, "an empty fragment is removed with its #";
    FragmentEscaped = "fragment escaped", Fragment,
        "characters that are not safe in a fragment are percent-escaped";
    FragmentDropped = "fragment dropped", Fragment,
        "the fragment is removed, unless fragments are kept";
}
