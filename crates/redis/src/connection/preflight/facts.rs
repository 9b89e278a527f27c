//! Facts that a server reports in `INFO`, and the problems that follow from them.

use std::fmt;

/// Version of Redis: major, minor, patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion(pub u32, pub u32, pub u32);

impl ServerVersion {
    /// Oldest version that works: the first with `BLMOVE`.
    pub const NEEDED: Self = Self(6, 2, 0);
    /// First version with `redis.acl_check_cmd`. Scripts check permissions with this function.
    pub(crate) const ACL_CHECK: Self = Self(7, 0, 0);

    /// Reads `7.0.15`, and `6.2` as `6.2.0`.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(|part| part.parse().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        Some(Self(major, minor, parts.next().flatten().unwrap_or(0)))
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// Facts about a server that passed the checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// Name of the server software: `redis`, or a relative such as `valkey`.
    pub(crate) name: String,
    /// Version of Redis. A relative reports the version of Redis with which it is compatible.
    pub version: ServerVersion,
}

impl fmt::Display for ServerFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// Reply to `INFO`, or its part about one replica: `name:value` lines, blank lines and `# Section`
/// lines, or `name=value` with commas between them.
pub struct Info<'a>(pub &'a str);

impl<'a> Info<'a> {
    /// Returns the value with this name.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        let mut lines = self.0.split(['\r', '\n', ',']);
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix([':', '=']))
    }

    /// Returns the value with this name, if it is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.trim().parse().ok()
    }

    /// Extracts the facts. Returns `None` if even the version is missing.
    pub(super) fn facts(&self) -> Option<ServerFacts> {
        let name = self.text("server_name").unwrap_or("redis").to_owned();
        Some(ServerFacts { name, version: ServerVersion::parse(self.text("redis_version")?)? })
    }

    /// Returns true if the server is a Sentinel. A Sentinel watches servers and has no data.
    pub(super) fn is_sentinel(&self) -> bool {
        self.text("redis_mode").or(self.text("server_mode")) == Some("sentinel")
    }

    /// Returns true if the version does not work.
    pub(super) fn is_too_old(&self) -> bool {
        self.facts().is_some_and(|facts| facts.version < ServerVersion::NEEDED)
    }

    /// Returns true if the server copies the data of a primary. A writable replica loses its writes
    /// at the next synchronisation.
    pub(super) fn is_replica(&self) -> bool {
        self.text("role") == Some("slave")
    }

    /// Returns true if the server is a node of a Redis Cluster.
    pub(super) fn is_node(&self) -> bool {
        self.number("cluster_enabled") == Some(1)
    }

    /// Returns the messages about all problems of this server that prevent the start of a crawl.
    /// `is_cluster` is true if the address is that of a cluster.
    pub(super) fn problems(&self, is_cluster: bool) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(facts) = self.facts().filter(|_| self.is_too_old()) {
            problems.push(format!(
                "this server is {facts} and urlseen needs {} or newer (for BLMOVE); upgrade it",
                ServerVersion::NEEDED
            ));
        }
        if self.is_replica() {
            let primary = self.text("master_host").zip(self.text("master_port"));
            let primary = |before: &str| {
                primary.map_or_else(String::new, |(host, port)| format!("{before}{host}:{port}"))
            };
            problems.push(format!(
                "this Redis is a replica{}, where writes are refused or lost; set redis.url to the \
                 primary{}",
                primary(" of "),
                primary(", ")
            ));
        }
        match (self.is_node(), is_cluster) {
            (true, false) => problems.push(
                "this Redis is a node of a Redis Cluster, where other nodes may serve the keys of \
                 the crawl; write redis+cluster:// (with TLS: rediss+cluster://) in redis.url"
                    .to_owned(),
            ),
            (false, true) => problems.push(
                "this Redis is a single server (cluster-enabled no), and not a node of a Redis \
                 Cluster; write redis:// (with TLS: rediss://) in redis.url"
                    .to_owned(),
            ),
            (true, true) | (false, false) => {}
        }
        if let Some(policy) = self.text("maxmemory_policy").filter(|it| it.starts_with("allkeys-"))
        {
            problems.push(format!(
                "this Redis may evict any key when its memory is full (maxmemory-policy is \
                 {policy}), and so lose a list of the crawl or its state; set maxmemory-policy to \
                 noeviction, or to a volatile- one, with CONFIG SET and in redis.conf"
            ));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shortened reply of Redis 7.0.
    const REDIS: &str = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\
        run_id:0a1b\r\n\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_human:0B\r\n\
        maxmemory_policy:noeviction\r\n\r\n# Persistence\r\naof_enabled:1\r\n\r\n# Replication\r\n\
        role:master\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n";

    fn problems(from: &str, to: &str) -> Vec<String> {
        assert!(REDIS.contains(from), "{from}");
        Info(&REDIS.replace(from, to)).problems(false)
    }

    #[test]
    fn a_good_server_has_no_problems() {
        assert!(Info(REDIS).problems(false).is_empty());
        let facts = Info(REDIS).facts().unwrap();
        let expected = ServerFacts { name: "redis".to_owned(), version: ServerVersion(7, 0, 15) };
        assert_eq!(facts, expected);
        assert_eq!(facts.to_string(), "redis 7.0.15");
    }

    #[test]
    fn valkey_is_checked_by_the_redis_version_that_it_reports() {
        let text =
            REDIS.replace("7.0.15\r\n", "7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n");
        assert!(Info(&text).problems(false).is_empty());
        assert_eq!(Info(&text).facts().unwrap().to_string(), "valkey 7.2.4");
    }

    #[test]
    fn versions_below_the_needed_one_are_too_old() {
        for (version, is_old) in [
            ("5.0.6", true),
            ("6.0.16", true),
            ("6.1.999", true),
            ("6.2.0", false),
            ("6.2", false),
            ("6.10.1", false),
            ("10.0.0", false),
            ("255.255.255", false),
        ] {
            let expected =
                format!("this server is redis {version} and urlseen needs 6.2.0 or newer");
            let found = problems("7.0.15", version);
            assert_eq!(found.len(), usize::from(is_old), "{version}");
            assert!(found.iter().all(|it| it.starts_with(&expected)), "{found:?}");
        }
    }

    #[test]
    fn evicting_any_key_is_a_problem_and_evicting_volatile_ones_is_not() {
        for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
            let found = problems("noeviction", policy);
            assert!(found.len() == 1 && found[0].contains(policy), "{found:?}");
        }
        for policy in ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"] {
            assert!(problems("noeviction", policy).is_empty());
        }
    }

    #[test]
    fn a_replica_names_its_primary() {
        let text = "role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6380";
        let [found] = &problems("role:master", text)[..] else { panic!() };
        assert!(found.starts_with("this Redis is a replica of 10.0.0.1:6380, where"), "{found}");
        assert!(found.ends_with("set redis.url to the primary, 10.0.0.1:6380"), "{found}");
        let [found] = &problems("role:master", "role:slave")[..] else { panic!() };
        assert!(found.ends_with("set redis.url to the primary"), "{found}");
    }

    #[test]
    fn all_problems_are_found_at_once() {
        let text = "redis_version:5.0.6\nrole:slave\ncluster_enabled:1\n\
            maxmemory_policy:allkeys-lru\n";
        assert_eq!(Info(text).problems(false).len(), 4);
    }
}
