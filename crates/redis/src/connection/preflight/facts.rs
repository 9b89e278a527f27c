//! Facts that a server reports in `INFO`, and the problems that follow from them.

use std::fmt;

use super::problem::PreflightError;

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

    /// Returns all problems of this server that prevent the start of a crawl. `is_cluster` is true
    /// if the address is that of a cluster.
    pub(super) fn problems(&self, is_cluster: bool) -> Vec<PreflightError> {
        let mut problems = Vec::new();
        if let Some(facts) = self.facts()
            && facts.version < ServerVersion::NEEDED
        {
            problems.push(PreflightError::TooOld { name: facts.name, found: facts.version });
        }
        // A writable replica loses its writes at the next synchronisation.
        if self.text("role") == Some("slave") {
            let at = |host, port| format!("{host}:{port}");
            let primary = self.text("master_host").zip(self.text("master_port"));
            problems.push(PreflightError::Replica {
                primary: primary.map(|(host, port)| at(host, port)),
            });
        }
        match (self.number("cluster_enabled") == Some(1), is_cluster) {
            (true, false) => problems.push(PreflightError::Cluster),
            (false, true) => problems.push(PreflightError::NoCluster),
            (true, true) | (false, false) => {}
        }
        if let Some(policy) = self.text("maxmemory_policy").filter(|it| it.starts_with("allkeys-"))
        {
            problems.push(PreflightError::Eviction { policy: policy.to_owned() });
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

    fn problems(from: &str, to: &str) -> Vec<PreflightError> {
        assert!(REDIS.contains(from), "{from}");
        Info(&REDIS.replace(from, to)).problems(false)
    }

    #[test]
    fn a_good_server_has_no_problems() {
        assert_eq!(Info(REDIS).problems(false), []);
        let facts = Info(REDIS).facts().unwrap();
        let expected = ServerFacts { name: "redis".to_owned(), version: ServerVersion(7, 0, 15) };
        assert_eq!(facts, expected);
        assert_eq!(facts.to_string(), "redis 7.0.15");
    }

    #[test]
    fn valkey_is_checked_by_the_redis_version_that_it_reports() {
        let text =
            REDIS.replace("7.0.15\r\n", "7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n");
        assert_eq!(Info(&text).problems(false), []);
        assert_eq!(Info(&text).facts().unwrap().to_string(), "valkey 7.2.4");
    }

    #[test]
    fn versions_below_the_needed_one_are_too_old() {
        let old = |major, minor, patch| {
            let found = ServerVersion(major, minor, patch);
            vec![PreflightError::TooOld { name: "redis".to_owned(), found }]
        };
        for (version, expected) in [
            ("5.0.6", old(5, 0, 6)),
            ("6.0.16", old(6, 0, 16)),
            ("6.1.999", old(6, 1, 999)),
            ("6.2.0", vec![]),
            ("6.2", vec![]),
            ("6.10.1", vec![]),
            ("10.0.0", vec![]),
            ("255.255.255", vec![]),
        ] {
            assert_eq!(problems("7.0.15", version), expected, "{version}");
        }
    }

    #[test]
    fn evicting_any_key_is_a_problem_and_evicting_volatile_ones_is_not() {
        for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
            let expected = PreflightError::Eviction { policy: policy.to_owned() };
            assert_eq!(problems("noeviction", policy), [expected]);
        }
        for policy in ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"] {
            assert_eq!(problems("noeviction", policy), []);
        }
    }

    #[test]
    fn a_replica_names_its_primary() {
        let text = "role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6380";
        let expected = PreflightError::Replica { primary: Some("10.0.0.1:6380".to_owned()) };
        assert_eq!(problems("role:master", text), [expected]);
        assert_eq!(
            problems("role:master", "role:slave"),
            [PreflightError::Replica { primary: None }],
        );
    }

    #[test]
    fn all_problems_are_found_at_once() {
        let text = "redis_version:5.0.6\nrole:slave\ncluster_enabled:1\n\
            maxmemory_policy:allkeys-lru\n";
        assert_eq!(Info(text).problems(false).len(), 4);
    }
}
