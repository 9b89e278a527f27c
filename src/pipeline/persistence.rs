//! Estimate of the age that the data of Redis may have after a crash or a failover. The estimate
//! uses replies to `INFO`.
//!
//! Redis takes its times from a clock that an operator can set. The daemon's clock counts from the
//! boot of its machine, and nothing can set it. If the difference between the two clocks changes
//! from one answer to the next, the clock of Redis was set.

use std::collections::BTreeMap;
use std::time::Duration;

use urlseen_redis::preflight::Info;
use urlseen_redis::server_search::Node;
use urlseen_storage::Moment;

/// Minimum age of the horizon. The horizon is the moment of the oldest data with which Redis may
/// come back. If Redis flushes its append-only file every second, a crash loses little more than a
/// second. So this age leaves a large reserve.
const LEAST: Duration = Duration::from_mins(1);

/// Maximum number of seconds that rounding adds to the start and the end of a save.
const SLACK: Duration = Duration::from_secs(2);

/// Time for which a replica still counts after its connection has ended, because it may take over.
const AWAY: Duration = Duration::from_hours(1);

/// Maximum number of replicas that are remembered.
const REPLICAS_MAX: usize = 64;
const OFFSETS_MAX: usize = 256;

/// Saves and replicas of a Redis server, from its answers so far.
#[derive(Debug, Default)]
pub(crate) struct Persistence {
    /// Id of the Redis process that the other fields describe.
    run_id: String,
    saves: Saves,
    /// Replication offsets, oldest first, each with the time since boot.
    offsets: Vec<(u64, Duration)>,
    replicas: BTreeMap<Node, Replica>,
}

/// Replica, as the primary and the replica itself have described it.
#[derive(Debug)]
struct Replica {
    offset: u64,
    /// Time since boot of the last report about the replica.
    heard: Duration,
    /// `None` if the replica has not answered yet.
    saves: Option<Saves>,
}

/// Last save of a server.
#[derive(Debug, Default)]
struct Saves {
    /// Lead of the server's clock at the last answer: its time minus the time since boot.
    ahead: Option<Duration>,
    last: Option<Save>,
}

#[derive(Debug)]
struct Save {
    /// End of the save, on the server's clock.
    at: Duration,
    /// Upper bound on the lead of the server's clock at the save. `None` if that clock was set back
    /// after the save.
    ahead: Option<Duration>,
    took: Duration,
    /// True if the server also has an append-only file.
    is_appending: bool,
}

impl Persistence {
    /// Reads an answer of the primary to `INFO`, and the answers of its replicas. Returns the
    /// moment of the oldest data with which Redis may come back; `None` if that moment is unknown.
    /// `asked` is a moment before `INFO` was sent.
    ///
    /// With an append-only file, the moment is a minute ago (`LEAST`). Without such a file, the
    /// moment is the start of the last completed save (`rdb_last_save_time`). A server without any
    /// save reports its own start in place of a save. Such a server comes back with the data that
    /// it started with, or with no data. A replica that lags may take over. Then the moment is the
    /// time at which the primary had the offset of that replica. A replica that has taken over may
    /// restart, and comes back with its own last save.
    pub(crate) fn horizon(
        &mut self,
        info: &str,
        replicas: &[(Node, String)],
        asked: Moment,
    ) -> Option<Moment> {
        let info = Info(info);
        let run_id = info.text("run_id").unwrap_or_default();
        if run_id != self.run_id {
            *self = Self { run_id: run_id.to_owned(), ..Self::default() };
        }
        let now = asked.since_boot;
        self.saves.last = self.saves.read(&info, now);
        let lag = self.lag(&info, now);
        for (node, info) in replicas {
            if let Some(replica) = self.replicas.get_mut(node) {
                let saves = replica.saves.get_or_insert_default();
                saves.last = saves.read(&Info(info), now);
            }
        }
        let mut age = LEAST.max(self.saves.age(now)?).max(lag?);
        for replica in self.replicas.values() {
            age = age.max(replica.saves.as_ref()?.age(now)?);
        }
        asked.before(age)
    }

    /// Returns the time since the primary had the offset of the replica that lags most.
    fn lag(&mut self, info: &Info<'_>, now: Duration) -> Option<Duration> {
        let Some(offset) = info.number("master_repl_offset") else { return Some(Duration::ZERO) };
        let mut is_known = true;
        for replica in lines_of_replicas(info) {
            match (node(&replica), replica.number("offset")) {
                // A replica in its first synchronisation may have any data.
                (Some(node), Some(offset)) if replica.text("state") == Some("online") => {
                    let saves = self.replicas.remove(&node).and_then(|known| known.saves);
                    self.replicas.insert(node, Replica { offset, heard: now, saves });
                }
                _ => is_known = false,
            }
        }
        self.replicas.retain(|_, replica| now.saturating_sub(replica.heard) < AWAY);
        is_known &= self.replicas.len() <= REPLICAS_MAX;
        while self.replicas.len() > REPLICAS_MAX {
            self.replicas.pop_first();
        }
        self.offsets.push((offset, now));
        let lowest = self.replicas.values().map(|replica| replica.offset).min().unwrap_or(offset);
        let reached = self.offsets.iter().rposition(|&(offset, _)| offset <= lowest);
        // All known replicas have reached this offset, so earlier entries are not needed.
        self.offsets.drain(..reached.unwrap_or(0));
        if self.offsets.len() > OFFSETS_MAX {
            // Drops the newest entry. The next answer adds a similar one, a little later.
            self.offsets.pop();
        }
        let (_, at) = self.offsets.first().filter(|_| reached.is_some() && is_known)?;
        Some(now.saturating_sub(*at))
    }
}

impl Saves {
    /// Reads an answer of the server to `INFO`.
    fn read(&mut self, info: &Info<'_>, now: Duration) -> Option<Save> {
        let is_appending = info.number("aof_enabled")? == 1;
        let ahead = Duration::from_micros(info.number("server_time_usec")?).checked_sub(now)?;
        let at = Duration::from_secs(info.number("rdb_last_save_time")?);
        // Redis reports -1 if it has made no save in the background.
        let took = Duration::from_secs(info.number("rdb_last_bgsave_time_sec").unwrap_or(0));
        let before = self.ahead.replace(ahead).unwrap_or(ahead);
        let ahead = match &self.last {
            Some(last) if last.at == at => last.ahead,
            // Redis has saved since the last answer. At the save, the lead of its clock was between
            // the leads at the last answer and at this answer.
            _ => Some(ahead.max(before)).filter(|&ahead| at <= now + ahead + SLACK),
        };
        Some(Save { at, ahead, took, is_appending })
    }

    /// Returns the age of the data with which the server would come back; `None` if it is unknown.
    fn age(&self, now: Duration) -> Option<Duration> {
        let Save { at, ahead, took, is_appending } = *self.last.as_ref()?;
        if is_appending {
            return Some(Duration::ZERO);
        }
        Some((now + ahead? + SLACK).checked_sub(at)? + took)
    }
}

/// Lists the replicas in an answer of the primary to `INFO`.
pub(crate) fn replicas(info: &str) -> Vec<Node> {
    let all = lines_of_replicas(&Info(info));
    all.filter_map(|replica| node(&replica)).take(REPLICAS_MAX).collect()
}

/// Finds lines like `slave0:ip=127.0.0.1,port=6380,state=online,offset=1234,lag=0`.
fn lines_of_replicas<'a>(info: &Info<'a>) -> impl Iterator<Item = Info<'a>> + use<'a> {
    info.0.lines().filter_map(|line| {
        let (number, replica) = line.strip_prefix("slave")?.split_once(':')?;
        number.parse::<u32>().is_ok().then_some(Info(replica))
    })
}

fn node(replica: &Info<'_>) -> Option<Node> {
    let (host, port) = (replica.text("ip")?.to_owned(), replica.text("port")?.parse().ok()?);
    Some(Node { host, port })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// Returns the number of seconds from the horizon to `asked`, a time in seconds since boot. The
    /// replicas have append-only files.
    fn reach(persistence: &mut Persistence, asked: u64, info: &str) -> Option<u64> {
        let appending = saves(asked + 1000, 1, asked, "0");
        let answers: Vec<_> = replicas(info).into_iter().map(|it| (it, &*appending)).collect();
        reach_with(persistence, asked, info, answers)
    }

    /// Does the same with these answers of the replicas.
    fn reach_with<'a>(
        persistence: &mut Persistence,
        asked: u64,
        info: &str,
        answers: impl IntoIterator<Item = (Node, &'a str)>,
    ) -> Option<u64> {
        let asked = Moment::new("this boot", Duration::from_secs(asked));
        let answers = answers.into_iter();
        let answers = answers.map(|(node, info)| (node, info.to_owned()));
        let horizon = persistence.horizon(info, &answers.collect::<Vec<_>>(), asked)?;
        Some(asked.since_boot.saturating_sub(horizon.since_boot).as_secs())
    }

    /// Builds an answer to `INFO`. On Redis's clock, the answer is from the second `now`, and the
    /// last save from the second `saved`.
    fn saves(now: u64, aof: u8, saved: u64, took: &str) -> String {
        format!(
            "# Server\r\nrun_id:aa\r\nserver_time_usec:{now}000000\r\n# Persistence\r\n\
             rdb_last_save_time:{saved}\r\nrdb_last_bgsave_time_sec:{took}\r\naof_enabled:{aof}\r\n"
        )
    }

    #[test]
    fn a_server_that_saves_may_come_back_as_it_was_when_its_last_save_began() {
        let reach = |info: &str| reach(&mut Persistence::default(), 2000, info);
        assert_eq!(reach(&saves(10_000, 0, 9100, "30")), Some(932));
        assert_eq!(reach(&saves(10_000, 0, 9100, "-1")), Some(902));
        assert_eq!(reach(&saves(10_000, 0, 9990, "3")), Some(60));
        assert_eq!(reach(&saves(10_000, 1, 9100, "30")), Some(60));
        assert_eq!(reach(&saves(10_000, 0, 100, "0")), None, "before the machine was started");
        assert_eq!(reach("# Server\r\n"), None);
        assert_eq!(reach("aof_enabled:0\r\n"), None);
    }

    #[test]
    fn a_clock_of_redis_that_is_set_never_makes_a_save_younger() {
        let day = 86_400;
        // Asks twice, 1000 s apart, with a save in between. Then asks again.
        let mut forward = Persistence::default();
        reach(&mut forward, 101_000, &saves(201_000, 0, 200_900, "0"));
        assert_eq!(reach(&mut forward, 102_000, &saves(202_000, 0, 201_500, "0")), Some(502));
        let ahead = saves(202_100 + day, 0, 201_500, "0");
        assert_eq!(reach(&mut forward, 102_100, &ahead), Some(602), "set after the save");
        let ahead = saves(202_200 + day, 0, 202_150 + day, "0");
        assert_eq!(reach(&mut forward, 102_200, &ahead), Some(60));

        let mut back = Persistence::default();
        reach(&mut back, 101_000, &saves(201_000, 0, 200_900, "0"));
        let behind = saves(202_000 - 500, 0, 200_900, "0");
        assert_eq!(reach(&mut back, 102_000, &behind), Some(1102), "set after the save");
        let mut back = Persistence::default();
        reach(&mut back, 101_000, &saves(201_000, 0, 200_900, "0"));
        // Redis saved at the second 201,400 of its clock, before the clock was set back.
        let behind = saves(202_000 - 500, 0, 201_400, "0");
        assert_eq!(reach(&mut back, 102_000, &behind), Some(602), "set between save and answer");

        let mut unknown = Persistence::default();
        assert_eq!(reach(&mut unknown, 102_000, &saves(201_000, 0, 201_500, "0")), None);
        assert_eq!(reach(&mut unknown, 103_000, &saves(202_000, 0, 201_500, "0")), None);
        assert_eq!(reach(&mut unknown, 104_000, &saves(203_000, 0, 202_500, "0")), Some(502));
    }

    #[test]
    fn with_a_lagging_replica_the_horizon_is_when_the_primary_had_its_offset() {
        let info = |offset: u64, replicas: &[(&str, u64)]| {
            let mut info = saves(10_000, 1, 9999, "0") + "# Replication\r\nrole:master\r\n";
            for (number, (state, offset)) in replicas.iter().enumerate() {
                let port = 6380 + number;
                let _ = write!(
                    info,
                    "slave{number}:ip=::1,port={port},state={state},offset={offset},lag=1\r\n"
                );
            }
            info + &format!("master_repl_offset:{offset}\r\n")
        };
        let mut ask = {
            let mut persistence = Persistence::default();
            move |at, offset, replicas: &[_]| reach(&mut persistence, at, &info(offset, replicas))
        };
        assert_eq!(ask(1000, 500, &[]), Some(60));
        assert_eq!(ask(1100, 600, &[("online", 600), ("online", 600)]), Some(60));
        assert_eq!(ask(1200, 700, &[("online", 700), ("online", 650)]), Some(100));
        // The second replica stops, and later it is no longer connected.
        assert_eq!(ask(1300, 800, &[("online", 800), ("online", 650)]), Some(200));
        assert_eq!(ask(1400, 900, &[("online", 900)]), Some(300));
        assert_eq!(ask(1500, 950, &[("online", 940)]), Some(400));
        assert_eq!(ask(1600, 990, &[("online", 980), ("wait_bgsave", 0)]), None);
        // An hour after its last report, the second replica no longer counts.
        assert_eq!(ask(1300 + 3600, 2000, &[("online", 1999)]), Some(3300));
        assert_eq!(ask(5000, 2100, &[("online", 2100)]), Some(60));

        let mut first = Persistence::default();
        assert_eq!(reach(&mut first, 1000, &info(500, &[("online", 400)])), None);
    }

    /// C8: a replica that takes over may restart, and comes back with its own last save.
    #[test]
    fn with_replicas_the_horizon_is_the_oldest_save_of_all_servers() {
        let primary = saves(10_000, 1, 9999, "0")
            + "role:master\r\nslave0:ip=10.0.0.2,port=6379,state=online,offset=500,lag=0\r\n\
               slave1:ip=10.0.0.3,port=6379,state=online,offset=500,lag=0\r\n\
               master_repl_offset:500\r\n";
        let nodes = replicas(&primary);
        let (young, old) = (saves(20_000, 0, 19_990, "0"), saves(20_000, 0, 19_300, "20"));
        let mut persistence = Persistence::default();
        let mut ask = |asked, answers: &[(usize, &str)]| {
            let answers = answers.iter().map(|&(at, info)| (nodes[at].clone(), info));
            reach_with(&mut persistence, asked, &primary, answers)
        };
        assert_eq!(ask(1000, &[]), None, "no replica has answered");
        assert_eq!(ask(1000, &[(0, &young)]), None, "one replica has not answered");
        assert_eq!(ask(1000, &[(1, &old)]), Some(722));
        assert_eq!(ask(1100, &[]), Some(822), "a save that is known grows older");
        let saved = saves(20_200, 0, 20_190, "3");
        assert_eq!(ask(1200, &[(1, &saved)]), Some(212), "the other replica's save is older");
        assert_eq!(ask(1200, &[(0, &saved)]), Some(60));
    }
}
