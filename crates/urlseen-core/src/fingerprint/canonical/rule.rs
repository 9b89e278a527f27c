//! The rules that make a URL canonical, by name.

/// One of the two functions that a request's URL goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pass {
    /// A `Request` makes it safe.
    Safe,
    /// A fingerprint makes that canonical.
    Canonical,
}

impl Pass {
    /// Whose rules they are: the function.
    pub fn function(self) -> &'static str {
        match self {
            Self::Safe => "w3lib.url.safe_url_string",
            Self::Canonical => "w3lib.url.canonicalize_url",
        }
    }
}

/// What of a URL a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UrlPart {
    /// All of it.
    Url,
    /// `https`.
    Scheme,
    /// What stands before the `@`.
    UserInfo,
    /// The host.
    Host,
    /// The port.
    Port,
    /// The path, and the `;` parameters of its last segment.
    Path,
    /// What follows the `?`.
    Query,
    /// What follows the `#`.
    Fragment,
}

impl UrlPart {
    /// What it is called.
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

/// Declares the rules: each with its name, the part of a URL that it is about, and what it says.
macro_rules! rules {
    ($($Rule:ident = $name:literal, $part:ident, $words:literal;)+) => {
        /// A rule of w3lib.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $words] $Rule,)+
        }

        impl Rule {
            /// All of them, in the order in which they are applied.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$Rule),+];

            /// Its short name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$Rule => $name,)+ }
            }

            /// What it says, as a sentence without a full stop.
            pub fn words(self) -> &'static str {
                match self { $(Self::$Rule => $words,)+ }
            }

            /// The part of a URL that it is about.
            pub fn part(self) -> UrlPart {
                match self { $(Self::$Rule => UrlPart::$part,)+ }
            }
        }
    };
}

rules! {
    Edges = "edges", Url, "control characters and spaces at both ends go";
    Breaks = "tabs and line ends", Url,
        "tabs, carriage returns and line feeds go, wherever they are";
    Backslashes = "backslashes", Url,
        "in http, https, ftp, file, ws and wss, a backslash before ? and # is a slash";
    SchemeCase = "scheme in lower case", Scheme, "the scheme is written in lower case";
    UserInfo = "user info", UserInfo,
        "name and password are decoded, and escaped again where they are not plain";
    HostCase = "host in lower case", Host, "the host is written in lower case";
    Idna = "international host", Host,
        "a host that is not ASCII is written as IDNA 2003 has it (xn--…), where that takes it";
    Brackets = "brackets of the host", Host, "only an address with a colon keeps its brackets";
    Ipv6 = "IPv6 address", Host, "an IPv6 address is written at its shortest";
    EmptyPort = "empty port", Port, "a colon without a port goes";
    Port = "port", Port,
        "a port is written without leading zeros; the default port of a scheme stays";
    PathEscaped = "path escaped", Path,
        "what is not safe in a path is percent-escaped, escapes stay";
    PathDecoded = "path decoded", Path,
        "escapes in the path are decoded but for %25 %2F %3B %3F, and what is not plain is escaped \
         in upper case";
    EmptyPath = "empty path", Path, "an empty path is /";
    DotSegments = "dot segments", Path, "the segments . and .. of a path are resolved";
    Slashes = "slashes", Host,
        "two slashes stand before an authority and, by custom, in schemes that have one";
    EmptyParameters = "empty parameters", Path,
        "a ; with nothing behind it in the last segment goes";
    Parameters = "parameters", Path,
        "what follows a ; in the last segment is escaped where it is not safe, and never decoded";
    EmptyQuery = "empty query", Query, "a ? with nothing behind it goes";
    QueryEscaped = "query escaped", Query,
        "what is not safe in a query is percent-escaped, escapes stay";
    EmptyFields = "empty fields", Query, "fields of the query with nothing between two & go";
    BlankValues = "blank values", Query, "a field without = gets one: blank values are kept";
    QueryDecoded = "query decoded", Query,
        "keys and values are decoded (+ is a space), and all but letters, digits and -._~ is \
         escaped, a space as +";
    QuerySorted = "query sorted", Query, "fields are sorted by their decoded bytes, key then value";
    EmptyFragment = "empty fragment", Fragment, "a # with nothing behind it goes";
    FragmentEscaped = "fragment escaped", Fragment,
        "what is not safe in a fragment is percent-escaped";
    FragmentDropped = "fragment dropped", Fragment,
        "the fragment goes, unless fragments are kept";
}
