//! What can be wrong between urlseen and Redis, told apart, each with its sentence.

/// Whether trying again can help without anybody changing the configuration of either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Yes, after a while: the server is away, starting, full, busy or changing roles.
    Later,
    /// No: somebody has to change something first.
    Never,
}

/// What an ACL of Redis denied. Redis names a denied command, but never a denied key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// A command, in capitals; a subcommand behind a bar, like `SCRIPT|LOAD`.
    Command(String),
    /// Some command in a script; Redis before 7.2 does not say which.
    CommandInScript,
    /// One of the keys of the command.
    Key,
}

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command(name) => write!(f, "run {name}"),
            Self::CommandInScript => f.write_str("run one of the commands in the script"),
            Self::Key => f.write_str("touch one of the keys of the command"),
        }
    }
}

/// One trouble with Redis: every error of the `redis` crate is one of these (`LinkError::from`).
///
/// After [`LostConnection`](Self::LostConnection) and [`Garbled`](Self::Garbled) the connection is
/// of no more use; after the other ones it is. A command that Redis refused did nothing, but a
/// script may have written before the command in it that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// No connection could be opened.
    #[error(
        "cannot reach Redis at {address}: {cause}; check that the server runs and that redis.url \
         is right"
    )]
    Unreachable {
        /// Where, without the password.
        address: String,
        /// The system's words.
        cause: String,
    },
    /// The socket file exists and this user may not open it.
    #[error(
        "may not open the socket of Redis at {address}: permission denied; run urlseen as a user \
         in that socket's group, or widen unixsocketperm in redis.conf"
    )]
    SocketForbidden {
        /// Where, without the password.
        address: String,
    },
    /// No connection could be opened, as this process has no file descriptor for it.
    #[error("cannot open a connection to Redis at {address}: {cause}")]
    NoDescriptor {
        /// Where, without the password.
        address: String,
        /// The system's words, and the remedy.
        cause: String,
    },
    /// The server hung up on a new connection.
    #[error(
        "Redis at {address} closed the new connection before it answered anything; either it has \
         too many clients (maxclients), or is in protected mode, or the port is for TLS (then \
         write rediss:// in redis.url), or it is shutting down: its log says which"
    )]
    HungUp {
        /// Where, without the password.
        address: String,
    },
    /// The server hung up on a new encrypted connection, in the handshake or after it.
    #[error(
        "Redis at {address} closed the new connection before it answered anything over TLS; \
         either it has too many clients (maxclients), or the port is not its tls-port (without \
         TLS, write redis:// in redis.url), or it is shutting down: its log says which"
    )]
    TlsHungUp {
        /// Where, without the password.
        address: String,
    },
    /// The server takes no clients without a certificate of theirs.
    #[error(
        "Redis requires a certificate of its clients, and this version of urlseen cannot present \
         one; set tls-auth-clients no (or optional) on the server, and let a password or an ACL \
         user decide who may connect"
    )]
    CertificateWanted,
    /// No trusted encrypted connection.
    #[error(
        "no TLS connection to Redis at {address}: {cause}; the port must be the server's tls-port, \
         and its certificate must be valid today, made for that host name and signed by an \
         authority that this machine trusts (the file of an authority of your own is named in \
         SSL_CERT_FILE)"
    )]
    Tls {
        /// Where, without the password.
        address: String,
        /// What was wrong with the handshake or the certificate.
        cause: String,
    },
    /// A connection broke, or a command got no answer in the time allowed.
    #[error(
        "lost the connection to Redis: {cause}; whether the last commands were carried out is not \
         known until a new connection asks"
    )]
    LostConnection {
        /// What happened to it.
        cause: String,
    },
    /// `LOADING`.
    #[error(
        "Redis is still loading its data from disk and answers nothing until that is done; wait \
         for it (INFO persistence shows how far it is)"
    )]
    Loading,
    /// `MISCONF`.
    #[error(
        "Redis takes no writes because its last save to disk failed; look for the cause in its log \
         (disk full? no permission?): writes go on by themselves once a save works"
    )]
    Misconf,
    /// `BUSY`.
    #[error(
        "Redis is busy with a script that has been running for too long and answers nothing else; \
         wait for its end, or end it with SCRIPT KILL (or FUNCTION KILL)"
    )]
    Busy,
    /// `READONLY`.
    #[error(
        "this Redis has become a read-only replica and takes no writes; wait for the failover to \
         end, or point redis.url at the primary"
    )]
    ReadOnly,
    /// `OOM`.
    #[error(
        "Redis has reached its maxmemory and takes no more data; let the crawlers empty their \
         lists, or raise maxmemory"
    )]
    OutOfMemory,
    /// `NOSCRIPT`.
    #[error(
        "Redis does not know the script any more (it was restarted, or SCRIPT FLUSH was called); \
         the script has to be sent again"
    )]
    NoScript,
    /// `MASTERDOWN`.
    #[error(
        "this Redis is a replica that has lost its primary and may not answer from old data; wait \
         for the primary, or point redis.url at it"
    )]
    MasterDown,
    /// `NOREPLICAS`.
    #[error(
        "Redis takes no writes while fewer replicas are connected than its min-replicas-to-write; \
         bring the replicas back, or lower that number"
    )]
    NoReplicas,
    /// `CLUSTERDOWN`, `TRYAGAIN`.
    #[error(
        "the Redis Cluster does not serve the key at the moment ({reply}); wait until CLUSTER INFO \
         says cluster_state:ok"
    )]
    ClusterDown {
        /// Redis's words.
        reply: String,
    },
    /// Too many connections.
    #[error("Redis has as many clients as its maxclients allows; close some, or raise maxclients")]
    TooManyClients,
    /// `UNBLOCKED`: a waiting command was cut short.
    #[error(
        "Redis ended a waiting command because the server changed its role or somebody called \
         CLIENT UNBLOCK; try again"
    )]
    Unblocked,
    /// Somebody ended a script that had not written anything yet.
    #[error(
        "somebody ended the running script with SCRIPT KILL before it wrote anything; try again"
    )]
    ScriptKilled,
    /// `MOVED`, `ASK`.
    #[error(
        "this Redis is a node of a Redis Cluster and the key is on another one; this version of \
         urlseen works with a single server only: point redis.url at one without cluster mode"
    )]
    Cluster,
    /// `CROSSSLOT`.
    #[error(
        "Redis Cluster refused a command whose keys lie in different slots; give the keys of the \
         crawl one hash tag, like {{demo}}:discovered and {{demo}}:unseen, or use a single server"
    )]
    CrossSlot,
    /// `WRONGPASS`.
    #[error(
        "Redis refused the password of the user {user}, or that user is off; check \
         URLSEEN_REDIS_PASSWORD and redis.url (ACL LIST on the server shows its users)"
    )]
    WrongPassword {
        /// Who logged in.
        user: String,
    },
    /// `NOAUTH`.
    #[error(
        "Redis asks for a password and none was given; set URLSEEN_REDIS_PASSWORD, and a user \
         other than default in redis.url like redis://user@host:6379/0"
    )]
    AuthNeeded,
    /// A password for a server that has none.
    #[error(
        "a password was given, but this Redis has none for its default user; take the password out \
         of redis.url and URLSEEN_REDIS_PASSWORD, or check that this is the right server"
    )]
    NoPasswordSet,
    /// `DENIED`: protected mode.
    #[error(
        "Redis is in protected mode and answers other machines only once it has a password; set \
         one (requirepass or an ACL user), or run urlseen on the same machine"
    )]
    Protected,
    /// `NOPERM`.
    #[error(
        "the Redis user may not {denied}; an administrator grants it with ACL SETUSER (ACL LOG on \
         the server shows what was denied to whom)"
    )]
    NoPermission {
        /// What.
        denied: Denied,
    },
    /// `WRONGTYPE`.
    #[error(
        "a key of the crawl holds another type of value than it must; find out who wrote it (TYPE \
         shows the type of a key), and move it away with RENAME or choose other keys"
    )]
    WrongType,
    /// `SELECT` of a database that does not exist.
    #[error(
        "Redis has no database {db}; take a smaller number in redis.url, or raise databases in \
         redis.conf (a cluster has database 0 only)"
    )]
    NoSuchDatabase {
        /// The number asked for.
        db: u32,
    },
    /// The server does not have the command.
    #[error(
        "this Redis does not know the command {command}; it is older than 6.2, or it is a \
         Sentinel (then point redis.url at the primary that it watches), or its configuration \
         (rename-command) or its provider took the command away"
    )]
    UnknownCommand {
        /// Its name.
        command: String,
    },
    /// Any other error reply. Scripts of urlseen raise errors with a code of their own, too.
    #[error("Redis refused a command: {code} {reply}")]
    Refused {
        /// The first word of the reply, such as `ERR`.
        code: String,
        /// The rest of it.
        reply: String,
    },
    /// A reply that makes no sense.
    #[error(
        "what answers is not Redis, or not as urlseen knows it: {cause}; check the host and port \
         in redis.url"
    )]
    Garbled {
        /// What was wrong with it.
        cause: String,
    },
}

impl LinkError {
    /// Whether waiting can end this trouble.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Unreachable { .. }
            | Self::NoDescriptor { .. }
            | Self::HungUp { .. }
            | Self::TlsHungUp { .. }
            | Self::LostConnection { .. }
            | Self::Loading
            | Self::Misconf
            | Self::Busy
            | Self::ReadOnly
            | Self::OutOfMemory
            | Self::NoScript
            | Self::MasterDown
            | Self::NoReplicas
            | Self::ClusterDown { .. }
            | Self::TooManyClients
            | Self::Unblocked
            | Self::ScriptKilled => Retry::Later,
            Self::SocketForbidden { .. }
            | Self::Tls { .. }
            | Self::CertificateWanted
            | Self::Cluster
            | Self::CrossSlot
            | Self::WrongPassword { .. }
            | Self::AuthNeeded
            | Self::NoPasswordSet
            | Self::Protected
            | Self::NoPermission { .. }
            | Self::WrongType
            | Self::NoSuchDatabase { .. }
            | Self::UnknownCommand { .. }
            | Self::Refused { .. }
            | Self::Garbled { .. } => Retry::Never,
        }
    }
}
