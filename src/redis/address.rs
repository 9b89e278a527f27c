//! Where Redis is and who asks there: `redis.url`, checked, with the password kept out of sight.

use std::fmt;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

/// The schemes a `redis.url` may have; the Valkey names mean the same.
const SCHEMES: [&str; 7] =
    ["redis", "rediss", "unix", "redis+unix", "valkey", "valkeys", "valkey+unix"];

/// A checked `redis.url`. Its `Display` and `Debug` show `***` for the password, and nothing else
/// gives the password away.
#[derive(Clone)]
pub struct Address {
    scheme: String,
    place: ConnectionAddr,
    /// The database number, as `SELECT` takes it.
    db: u32,
    user: Option<String>,
    password: Option<String>,
}

/// Why a `redis.url` cannot be used. No message repeats what stands behind the scheme: a URL that
/// did not parse may hold a password anywhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not a URL at all, or one that cannot be split into its parts.
    #[error(
        "redis.url is not a URL that can be read; write it like redis://127.0.0.1:6379/0, \
         rediss://user@host:6379/0 (TLS) or unix:///run/redis/redis.sock?db=0, and a password \
         with any of / ? # @ : % in it percent-encoded or in URLSEEN_REDIS_PASSWORD"
    )]
    Unreadable,
    /// A URL of something else.
    #[error(
        "redis.url begins with {found}://, which is not Redis; write redis:// for TCP, rediss:// \
         for TLS or unix:// for a socket file"
    )]
    Scheme {
        /// The scheme found.
        found: String,
    },
    /// No host between `//` and `/`.
    #[error("redis.url names no host; write it like redis://127.0.0.1:6379/0")]
    NoHost,
    /// `0.0.0.0` or `::`, which a server listens on and nobody connects to.
    #[error(
        "redis.url names the address 0.0.0.0 or ::, which only servers can listen on; write \
         127.0.0.1 for this machine, or the server's own address"
    )]
    Wildcard,
    /// A socket path that is not absolute.
    #[error(
        "redis.url names no absolute path of a socket file; write it with three slashes, like \
         unix:///run/redis/redis.sock"
    )]
    SocketPath,
    /// The database is not a number.
    #[error(
        "the database in redis.url is not a number from 0; write it last, like \
         redis://127.0.0.1:6379/0 or unix:///run/redis/redis.sock?db=0"
    )]
    Database,
    /// Settings after `?` that mean nothing here.
    #[error(
        "redis.url has settings after ? that are not known; unix:// takes db, user and pass, and \
         the others none"
    )]
    Settings,
    /// Something after `#`, such as redis-rs's `#insecure`.
    #[error(
        "redis.url ends in a # part; certificates are always checked (no #insecure): name the file \
         of your own authority in SSL_CERT_FILE instead, and write a # in a password as %23"
    )]
    Fragment,
    /// A user name needs a password, or the connection would silently be the default user's.
    #[error(
        "redis.url names a user but there is no password; add one as user:password@, or set \
         URLSEEN_REDIS_PASSWORD (any text for a user with nopass)"
    )]
    NoPassword,
}

impl Address {
    /// Checks `url`. `password`, where given and not empty, goes before one in the URL.
    pub fn new(url: &str, password: Option<String>) -> Result<Self, AddressError> {
        let (scheme, _) = url.trim().split_once("://").ok_or(AddressError::Unreadable)?;
        let scheme = scheme.to_ascii_lowercase();
        if !SCHEMES.contains(&scheme.as_str()) {
            return Err(refused_scheme(scheme));
        }
        let parsed = redis::parse_redis_url(url.trim()).ok_or(AddressError::Unreadable)?;
        if parsed.fragment().is_some() {
            return Err(AddressError::Fragment);
        }
        let is_socket = scheme.ends_with("unix") || scheme == "unix";
        let known = |name: &str| is_socket && matches!(name, "db" | "user" | "pass");
        if parsed.query_pairs().any(|(name, _)| !known(&name)) {
            return Err(AddressError::Settings);
        }
        let db = if is_socket {
            if parsed.host_str().is_some_and(|host| !host.is_empty()) || parsed.path().len() < 2 {
                return Err(AddressError::SocketPath);
            }
            parsed.query_pairs().find(|(name, _)| name == "db").map(|(_, db)| db.into_owned())
        } else {
            match parsed.host_str() {
                None | Some("") => return Err(AddressError::NoHost),
                Some("0.0.0.0" | "[::]") => return Err(AddressError::Wildcard),
                Some(_) => Some(parsed.path().trim_matches('/').to_owned()),
            }
        };
        let db = match db.as_deref() {
            None | Some("") => 0,
            Some(digits) => digits.parse().map_err(|_| AddressError::Database)?,
        };
        let info = parsed.into_connection_info().map_err(|_| AddressError::Unreadable)?;
        let login = info.redis_settings();
        let filled = |text: &String| !text.is_empty();
        let user = login.username().map(str::to_owned).filter(filled);
        let password =
            password.filter(filled).or(login.password().map(str::to_owned).filter(filled));
        if user.is_some() && password.is_none() {
            return Err(AddressError::NoPassword);
        }
        Ok(Self { scheme, place: info.addr().clone(), db, user, password })
    }

    /// The user that the connection logs in as; `None` is Redis's `default`.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The database number.
    pub fn db(&self) -> u32 {
        self.db
    }

    /// Whether the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self.place, ConnectionAddr::TcpTls { .. })
    }

    /// The password, for `AUTH` and nothing else.
    pub(super) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// What to open a connection to, without the login: [`connect`](super::connect) logs in itself.
    pub(super) fn connection_info(&self) -> Result<ConnectionInfo, redis::RedisError> {
        self.place.clone().into_connection_info()
    }
}

/// Repeats the scheme only where it surely is one.
fn refused_scheme(found: String) -> AddressError {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if !found.is_empty() && found.len() < 16 && found.chars().all(plain) {
        AddressError::Scheme { found }
    } else {
        AddressError::Unreadable
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, db, .. } = self;
        write!(f, "{scheme}://")?;
        match &self.place {
            ConnectionAddr::Unix(path) => {
                write!(f, "{}?db={db}", path.display())?;
                if let Some(user) = &self.user {
                    write!(f, "&user={user}")?;
                }
                if self.password.is_some() {
                    f.write_str("&pass=***")?;
                }
                Ok(())
            }
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                f.write_str(self.user.as_deref().unwrap_or_default())?;
                if self.password.is_some() {
                    f.write_str(":***@")?;
                }
                if host.contains(':') {
                    write!(f, "[{host}]:{port}/{db}")
                } else {
                    write!(f, "{host}:{port}/{db}")
                }
            }
            // The crate may add kinds of places; none of SCHEMES leads to one.
            other => write!(f, "{other}/{db}"),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        Address::new(url, None).unwrap().to_string()
    }

    fn refused(url: &str) -> AddressError {
        Address::new(url, None).unwrap_err()
    }

    #[test]
    fn shows_every_part_but_the_password() {
        for (url, expected) in [
            ("redis://127.0.0.1", "redis://127.0.0.1:6379/0"),
            ("  redis://127.0.0.1:7000/3 ", "redis://127.0.0.1:7000/3"),
            ("redis://:hunter2@host", "redis://:***@host:6379/0"),
            ("redis://ann:hunter2@host:1/2", "redis://ann:***@host:1/2"),
            ("rediss://ann:hunter2@host/1", "rediss://ann:***@host:6379/1"),
            ("REDIS://host/", "redis://host:6379/0"),
            ("valkey://host", "valkey://host:6379/0"),
            ("redis://[::1]:7000/3", "redis://[::1]:7000/3"),
            ("unix:///run/r.sock", "unix:///run/r.sock?db=0"),
            ("redis+unix:///run/r.sock?db=3", "redis+unix:///run/r.sock?db=3"),
            (
                "unix:///run/r.sock?pass=hunter2&db=1&user=ann",
                "unix:///run/r.sock?db=1&user=ann&pass=***",
            ),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
    }

    #[test]
    fn keeps_the_login_for_the_connection() {
        let address = Address::new("rediss://an%20n:hunter%402@host/7", None).unwrap();
        assert_eq!(address.user(), Some("an n"));
        assert_eq!(address.password(), Some("hunter@2"));
        assert_eq!(address.db(), 7);
        assert!(address.is_tls());
        assert_eq!(address.connection_info().unwrap().redis_settings().password(), None);
    }

    #[test]
    fn a_password_given_apart_goes_before_the_one_in_the_url() {
        let address = |password: &str| {
            Address::new("redis://ann:inside@host", Some(password.to_owned())).unwrap()
        };
        assert_eq!(address("apart").password(), Some("apart"));
        assert_eq!(address("").password(), Some("inside"));
        assert_eq!(format!("{:?}", address("apart")), "Address(redis://ann:***@host:6379/0)");
    }

    #[test]
    fn refuses_what_cannot_be_meant() {
        use AddressError as E;
        for (url, expected) in [
            ("", E::Unreadable),
            ("127.0.0.1:6379", E::Unreadable),
            ("unix:/run/r.sock", E::Unreadable),
            ("redis://host:port", E::Unreadable),
            ("redis://ann:%ff@host", E::Unreadable),
            ("http://host", E::Scheme { found: "http".to_owned() }),
            ("hunter2@redis://host", E::Unreadable),
            ("redis://", E::NoHost),
            ("redis:///3", E::NoHost),
            ("redis://0.0.0.0", E::Wildcard),
            ("redis://[::]:1", E::Wildcard),
            ("redis://host/demo", E::Database),
            ("redis://host/-1", E::Database),
            ("unix:///run/r.sock?db=x", E::Database),
            ("unix://run/r.sock", E::SocketPath),
            ("unix:///", E::SocketPath),
            ("redis://host?db=1", E::Settings),
            ("unix:///run/r.sock?password=hunter2", E::Settings),
            ("rediss://host#insecure", E::Fragment),
            ("redis://ann@host", E::NoPassword),
            ("unix:///run/r.sock?user=ann", E::NoPassword),
        ] {
            assert_eq!(refused(url), expected, "{url}");
        }
    }

    #[test]
    fn no_refusal_repeats_a_password() {
        for url in [
            "hunter2@redis://host",
            "redis://ann:hunter2/x@host",
            "redis://ann:1/hunter2@host",
            "redis://ann:1?hunter2@host",
            "redis://ann:1#hunter2@host",
            "redis://ann:hunter2@",
            "redis://ann:hunter2@0.0.0.0",
            "unix://ann:hunter2@host/run/r.sock",
        ] {
            let error = refused(url);
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{url}: {error}");
        }
    }
}
