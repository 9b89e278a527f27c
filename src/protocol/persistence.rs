//! How much Redis may forget when it crashes, as it says of itself.

use std::time::Duration;

/// The least that is assumed: a replica that lagged, or an append-only file that is flushed every
/// second, with room to spare.
const LEAST: Duration = Duration::from_mins(1);

/// How far the clocks of a save's begin and end may be off.
const SLACK: Duration = Duration::from_secs(2);

/// How long ago the oldest data was current that Redis may come back with after a crash, as the
/// reply to `INFO` tells; `None` where it does not tell.
///
/// With an append-only file that is the last second or so. Without, it is the moment at which the
/// last completed save (`rdb_last_save_time`) began; a server that has not saved yet gives its own
/// start instead, and then comes back with what it started with, or nothing.
pub(super) fn may_forget(info: &str) -> Option<Duration> {
    let number = |name: &str| -> Option<u64> {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().parse().ok()
    };
    if number("aof_enabled")? == 1 {
        return Some(LEAST);
    }
    let now = Duration::from_micros(number("server_time_usec")?);
    let saved = Duration::from_secs(number("rdb_last_save_time")?);
    // -1 where no save in the background was made.
    let took = Duration::from_secs(number("rdb_last_bgsave_time_sec").unwrap_or(0));
    Some(LEAST.max(now.saturating_sub(saved) + took + SLACK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_saves_may_forget_what_came_after_its_last_save_began() {
        let info = |aof, saved, took| {
            format!(
                "# Server\r\nserver_time_usec:1000000000\r\n# Persistence\r\n\
                 rdb_last_save_time:{saved}\r\nrdb_last_bgsave_time_sec:{took}\r\n\
                 aof_enabled:{aof}\r\n"
            )
        };
        let seconds = |info: &str| may_forget(info).map(|time| time.as_secs());
        assert_eq!(seconds(&info(0, 100, "30")), Some(932));
        assert_eq!(seconds(&info(0, 100, "-1")), Some(902));
        assert_eq!(seconds(&info(0, 990, "3")), Some(60));
        assert_eq!(seconds(&info(1, 100, "30")), Some(60));
        assert_eq!(seconds("# Server\r\n"), None);
        assert_eq!(seconds("aof_enabled:0\r\n"), None);
    }
}
