//! Errors between urlseen and Redis, each with its message.

/// Default of `redis.url`.
pub(super) const DEFAULT_ADDRESS: &str = "redis://127.0.0.1:6379/0";

/// Tells users who never wrote an address where it comes from.
fn default_hint(address: &str) -> &'static str {
    if address == DEFAULT_ADDRESS { " (the default of redis.url)" } else { "" }
}

/// Permission that an ACL of Redis denied. Redis names a denied command, but never a denied key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Command in capitals; a subcommand follows a bar, as in `SCRIPT|LOAD`.
    #[error("run {0}")]
    Command(String),
    /// A command inside a script. Redis before 7.2 does not name this command.
    #[error("run one of the commands in the script")]
    CommandInScript,
    /// One of the keys of the command.
    #[error("touch one of the keys of the command")]
    Key,
}

/// Error of the connection to Redis. `LinkError::from` converts every error of the `redis` crate.
///
/// After [`LostConnection`](Self::LostConnection) and [`Garbled`](Self::Garbled) the connection is
/// unusable; after other errors it still works. A command that Redis refused changed nothing. A
/// script may have written before one of its commands failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // the messages explain the fields
pub enum LinkError {
    /// Connection that could not be opened.
    #[error(
        "cannot reach Redis at {address}{}: {cause}; check that the server runs and that redis.url \
         is correct",
        default_hint(address)
    )]
    Unreachable { address: String, cause: String },
    /// Failure of all Sentinels to name the primary.
    #[error("no Sentinel has named the primary {name}: {causes}; check that the Sentinels run")]
    NoSentinel { name: String, causes: String },
    /// Name of a primary that no Sentinel knows.
    #[error(
        "the Sentinels know no primary {name}; SENTINEL MASTERS shows the names that a Sentinel \
         knows"
    )]
    UnknownPrimary { name: String },
    /// Server that the Sentinels name as the primary, although it is not a primary.
    #[error(
        "the Sentinels name {address} as the primary {name}, but this server is not a primary; \
         wait for the end of the failover"
    )]
    NotPrimary { name: String, address: String },
    /// Failure to find the node that serves the keys, although all nodes of the cluster were asked.
    #[error(
        "no node of the Redis Cluster led to the node that serves the keys: {causes}; \
         check that the nodes run"
    )]
    NoClusterNode { causes: String },
    /// Socket file that this user may not open.
    #[error(
        "may not open the socket of Redis at {address}: permission denied; run urlseen as a user \
         in that socket's group, or widen unixsocketperm in redis.conf"
    )]
    SocketForbidden { address: String },
    /// Connection for which this process had no file descriptor.
    #[error("cannot open a connection to Redis at {address}: {cause}")]
    NoDescriptor { address: String, cause: String },
    /// New connection that the server closed.
    #[error(
        "Redis at {address} closed the new connection before it answered anything; either the \
         server has too many clients (maxclients), or it is in protected mode, or the port is for \
         TLS (then write rediss:// in redis.url), or it is shutting down: its log has the reason"
    )]
    HungUp { address: String },
    /// New encrypted connection that the server closed, in the handshake or after it.
    #[error(
        "Redis at {address} closed the new connection before it answered anything over TLS; \
         either the server has too many clients (maxclients), or the port is not its tls-port \
         (without TLS, write redis:// in redis.url), or it is shutting down: its log has the reason"
    )]
    TlsHungUp { address: String },
    /// Server that accepts only clients with a certificate of their own.
    #[error(
        "Redis requires a certificate of its clients, and urlseen has presented none; set \
         redis.tls_cert and redis.tls_key to the files of a certificate that the server trusts, or \
         set tls-auth-clients no (or optional) on the server"
    )]
    CertificateWanted,
    /// Server that did not accept the certificate of this client.
    #[error(
        "Redis refused the certificate in redis.tls_cert with the TLS alert {alert}; it must be \
         valid today and signed by an authority in the server's tls-ca-cert-file"
    )]
    CertificateRefused { alert: String },
    /// File of a certificate or key that was changed after the start, and cannot be used any more.
    #[error("cannot open an encrypted connection to Redis: {cause}")]
    TlsFile { cause: String },
    /// Encrypted connection that is not trusted.
    #[error(
        "no TLS connection to Redis at {address}: {cause}; the port must be the server's tls-port, \
         and its certificate must be valid today, made for that host name and signed by an \
         authority that this machine trusts (set redis.tls_ca to the file of an authority of your \
         own)"
    )]
    Tls { address: String, cause: String },
    /// Broken connection, or a command without an answer in the time allowed.
    #[error(
        "lost the connection to Redis: {cause}; only a new connection can show whether Redis ran \
         the last commands"
    )]
    LostConnection { cause: String },
    /// Reply `LOADING`: the server reads its data.
    #[error(
        "Redis is still loading its data from disk and answers nothing until it is done; wait \
         for the end (INFO persistence shows the progress)"
    )]
    Loading,
    /// Reply `MISCONF`: the server could not save.
    #[error(
        "Redis takes no writes because its last save to disk failed; look for the cause in its log \
         (disk full? no permission?): Redis accepts writes again after a successful save"
    )]
    Misconf,
    /// Reply `BUSY`: a script has run for longer than `busy-reply-threshold`.
    #[error(
        "Redis is busy with a script and answers nothing else; wait until the script ends, or end \
         it with SCRIPT KILL (or FUNCTION KILL)"
    )]
    Busy,
    /// Reply `READONLY`: the server is a replica.
    #[error(
        "this Redis has become a read-only replica and takes no writes; wait for the end of the \
         failover, or set redis.url to the primary"
    )]
    ReadOnly,
    /// Reply `OOM`: the server's memory is full.
    #[error(
        "Redis has reached its maxmemory and takes no more data; wait until the crawlers have \
         emptied their lists, or raise maxmemory"
    )]
    OutOfMemory,
    /// Reply `NOSCRIPT`: the server does not know the script.
    #[error(
        "Redis does not know the script any more, after a restart or a SCRIPT FLUSH; the script \
         must be sent again"
    )]
    NoScript,
    /// Reply `MASTERDOWN`: a replica without its primary.
    #[error(
        "this Redis is a replica that has lost its primary and may not answer from old data; wait \
         for the primary, or set redis.url to the primary"
    )]
    MasterDown,
    /// Reply `NOREPLICAS`: too few replicas are connected.
    #[error(
        "Redis takes no writes while fewer replicas are connected than its min-replicas-to-write; \
         reconnect the replicas, or lower that number"
    )]
    NoReplicas,
    /// Reply `CLUSTERDOWN` of a cluster.
    #[error(
        "the Redis Cluster does not serve the key at the moment ({reply}); wait until CLUSTER INFO \
         says cluster_state:ok"
    )]
    ClusterDown { reply: String },
    /// Server with as many connections as it allows.
    #[error(
        "Redis has as many clients as its maxclients allows; close some clients, or raise \
         maxclients"
    )]
    TooManyClients,
    /// Reply `UNBLOCKED`: a waiting command was cut short.
    #[error(
        "Redis ended a waiting command because the server changed its role or a client called \
         CLIENT UNBLOCK; try again"
    )]
    Unblocked,
    /// Script that another client ended before it wrote anything.
    #[error("the running script was ended with SCRIPT KILL before it wrote anything; try again")]
    ScriptKilled,
    /// Reply `MOVED` of a cluster node.
    #[error(
        "slot {slot} of the Redis Cluster is at {to} now; with redis+cluster:// in redis.url, \
         urlseen continues there"
    )]
    Moved { slot: u16, to: String },
    /// Reply `ASK` of a cluster node.
    #[error(
        "slot {slot} of the Redis Cluster is being moved to {to}; wait for the end of the move, or \
         end an interrupted move with redis-cli --cluster fix"
    )]
    SlotMoving { slot: u16, to: String },
    /// Reply `TRYAGAIN` of a cluster node, or a script that lost a key while it ran.
    #[error(
        "a slot of the Redis Cluster is being moved, and its keys are on two nodes; wait for the \
         end of the move, or end an interrupted move with redis-cli --cluster fix"
    )]
    SlotDivided,
    /// Reply `CROSSSLOT`: the keys lie in different slots.
    #[error(
        "Redis Cluster refused a command whose keys lie in different slots; give the keys of the \
         crawl one hash tag, like {{demo}}:discovered and {{demo}}:unseen"
    )]
    CrossSlot,
    /// Reply `WRONGPASS` to a login.
    #[error(
        "Redis refused the password of the user {user}, or that user is off; check \
         URLSEEN_REDIS_PASSWORD and redis.url (ACL LIST on the server shows its users)"
    )]
    WrongPassword { user: String },
    /// Reply `NOAUTH`: the server requires a password.
    #[error(
        "Redis asks for a password and none was given; set URLSEEN_REDIS_PASSWORD, and a user \
         other than default in redis.url like redis://user@host:6379/0"
    )]
    AuthNeeded,
    /// Password for a server without passwords.
    #[error(
        "a password was given, but this Redis has none for its default user; remove the password \
         from redis.url and URLSEEN_REDIS_PASSWORD, or check that this is the correct server"
    )]
    NoPasswordSet,
    /// Reply `DENIED`: the server is in protected mode.
    #[error(
        "Redis is in protected mode and answers other machines only once it has a password; set \
         one (requirepass or an ACL user), or run urlseen on the same machine"
    )]
    Protected,
    /// Reply `NOPERM`: the ACL user lacks a permission.
    #[error(
        "the Redis user may not {denied}; an administrator can grant that with ACL SETUSER (ACL \
         LOG on the server shows the denied commands and keys)"
    )]
    NoPermission { denied: Denied },
    /// Reply `WRONGTYPE`: a key holds another type.
    #[error(
        "a key of the crawl holds another type of value than it must; find the program that \
         wrote it (TYPE shows the type of a key), and rename the key with RENAME or choose other \
         keys"
    )]
    WrongType,
    /// Database that the server does not have.
    #[error(
        "Redis has no database {db}; use a smaller number in redis.url, or raise databases in \
         redis.conf (a cluster has database 0 only)"
    )]
    NoSuchDatabase { db: u32 },
    /// Command that the server does not have.
    #[error(
        "this Redis does not know the command {command}; it is older than 6.2, or it is a \
         Sentinel (then set redis.url to the primary that it watches), or its configuration \
         (rename-command) or its provider removed the command"
    )]
    UnknownCommand { command: String },
    /// Any other error reply, such as an error that a script of urlseen raises.
    #[error("Redis refused a command: {code} {reply}")]
    Refused { code: String, reply: String },
    /// Bytes that are no reply of the protocol, or a reply that the command cannot have.
    #[error(
        "the server is not Redis, or not a version that urlseen knows: {cause}; check the host \
         and port in redis.url"
    )]
    Garbled { cause: String },
}

impl LinkError {
    /// Returns true if a retry can help after a while: the server is away, starting, full, busy or
    /// changing roles. Returns false if no retry can help before an operator changes something.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::NoSentinel { .. }
                | Self::NotPrimary { .. }
                | Self::NoDescriptor { .. }
                | Self::HungUp { .. }
                | Self::TlsHungUp { .. }
                | Self::TlsFile { .. }
                | Self::LostConnection { .. }
                | Self::Loading
                | Self::Misconf
                | Self::Busy
                | Self::ReadOnly
                | Self::OutOfMemory
                | Self::NoScript
                | Self::MasterDown
                | Self::NoReplicas
                | Self::NoClusterNode { .. }
                | Self::ClusterDown { .. }
                | Self::Moved { .. }
                | Self::SlotMoving { .. }
                | Self::SlotDivided
                | Self::TooManyClients
                | Self::Unblocked
                | Self::ScriptKilled
        )
    }
}
