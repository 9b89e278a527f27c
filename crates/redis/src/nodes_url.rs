//! URL with several hosts: those of Sentinels, or of nodes of a Redis Cluster.

/// Parts of a URL `SCHEME+sentinel://[login@]host[:port],…/name[/database][?settings]` or
/// `SCHEME+cluster://[login@]host[:port],…[/database][?settings]`.
pub struct NodesUrl<'a> {
    /// Text before the `+`, in lower case: the scheme of a URL with one host.
    pub scheme: String,
    /// True if the hosts are Sentinels, and false if they are nodes of a cluster.
    pub is_sentinel: bool,
    /// User and password with the `@` after them, or nothing.
    login: &'a str,
    /// Hosts with commas between them.
    pub hosts: &'a str,
    /// Name by which the Sentinels know the primary; empty in a cluster.
    pub name: &'a str,
    /// Number of the database, if the URL has one.
    pub database: &'a str,
    settings: &'a str,
}

impl<'a> NodesUrl<'a> {
    /// Splits a URL. Returns `None` for a URL of another kind.
    pub fn parse(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let (scheme, kind) = scheme.split_once('+')?;
        let is_sentinel = kind == "sentinel";
        if !is_sentinel && kind != "cluster" {
            return None;
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let (path, settings) = path.split_at(path.find(['?', '#']).unwrap_or(path.len()));
        let path = path.trim_matches('/');
        let (name, database) = match path.split_once('/') {
            _ if !is_sentinel => ("", path),
            parts => parts.unwrap_or((path, "")),
        };
        let scheme = scheme.to_owned();
        Some(Self { scheme, is_sentinel, login, hosts, name, database, settings })
    }

    /// Returns true if the database is one that the servers have: a cluster has only database 0.
    pub fn has_valid_database(&self) -> bool {
        self.is_sentinel || ["", "0"].contains(&self.database)
    }

    /// Returns the URL of each host. A host without a port gets the usual one.
    pub fn single(&self) -> impl Iterator<Item = String> {
        let Self { scheme, login, database, settings, .. } = self;
        let port = if self.is_sentinel { "26379" } else { "6379" };
        self.hosts.split(',').map(move |host| {
            let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
            let colon = if after.contains(':') { String::new() } else { format!(":{port}") };
            format!("{scheme}://{login}{host}{colon}/{database}{settings}")
        })
    }
}
