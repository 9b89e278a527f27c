//! Messages to the service manager, for example systemd, in the protocol of
//! [sd_notify(3)](https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html).

use sd_notify::{NotifyState, notify};
use tokio::task::spawn_blocking;

use crate::cli::prelude::*;

/// Time between two looks at the phase of the daemon.
const LOOK: Duration = Duration::from_millis(200);

/// Maximum number of characters of the phase's text.
const TEXT: usize = 200;

/// Tells the service manager about the daemon or the router, without end. Sends nothing if the
/// service manager has not asked for it (`NOTIFY_SOCKET`).
///
/// The daemon is ready when no partition is starting: then the configuration is right, the folders
/// are open, and the daemon works or waits for something that the status names. A sign of life is
/// sent while `GET /healthz` answers 200. This function runs on the thread of the pipeline or of
/// the router, so the signs also end if that thread hangs. While a service manager reads no
/// messages, this function waits for it, and the daemon works on.
pub(super) async fn inform(view: Arc<dyn View>, mut stop: Stop) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    let period = sd_notify::watchdog_enabled().map(|limit| limit / 2);
    let pause = period.map_or(LOOK, |period| period.min(LOOK));
    let (mut messages, mut is_lost) = (Messages::new(period), false);
    loop {
        let is_stopping = *stop.borrow();
        let news = messages.next(&view.status(), is_stopping, Instant::now());
        let send = move || match news.trim_end() {
            "" => Ok(()),
            news => notify(&[NotifyState::Custom(news)]),
        };
        if let Err(error) = spawn_blocking(send).await.map_err(io::Error::from).flatten()
            && !std::mem::replace(&mut is_lost, true)
        {
            warn!("cannot write to the socket of the service manager (NOTIFY_SOCKET): {error}");
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            Ok(_) = stop.wait_for(|stop| *stop), if !is_stopping => {}
        }
    }
}

/// Messages of a daemon in their order. Each is sent only if it is news.
struct Messages {
    /// Time between two signs of life; `None` if the service manager expects none.
    period: Option<Duration>,
    is_ready: bool,
    is_stopping: bool,
    /// Text of the last status.
    text: String,
    /// Time of the last sign of life.
    alive: Option<Instant>,
}

impl Messages {
    fn new(period: Option<Duration>) -> Self {
        Self { period, is_ready: false, is_stopping: false, text: String::new(), alive: None }
    }

    /// Returns the news of a daemon with these phases, each with a line feed.
    fn next(&mut self, statuses: &Statuses, is_stopping: bool, now: Instant) -> String {
        let mut news = String::new();
        let mut tell = |state: NotifyState<'_>| news.extend([state.to_string(), "\n".to_owned()]);
        let has_begun = |it: &Phase| *it != Phase::Starting && it.is_alive();
        if !self.is_ready && statuses.first_bad(has_begun).is_none() {
            self.is_ready = true;
            tell(NotifyState::Ready);
        }
        if is_stopping && !std::mem::replace(&mut self.is_stopping, true) {
            tell(NotifyState::Stopping);
        }
        let is_due = self.period.is_some_and(|period| {
            self.alive.is_none_or(|before| now.duration_since(before) >= period)
        });
        if is_due && statuses.first_bad(Phase::is_alive).is_none() {
            self.alive = Some(now);
            tell(NotifyState::Watchdog);
        }
        let text = text(statuses);
        if text != self.text {
            tell(NotifyState::Status(&text));
            self.text = text;
        }
        news
    }
}

/// Describes the phase of the daemon: the first one that is not good, or that of all partitions.
fn text(statuses: &Statuses) -> String {
    let bad = statuses.first_bad(Phase::is_alive).or_else(|| statuses.first_bad(Phase::is_ready));
    let text = bad.or_else(|| Some(statuses.phases().first()?.1.to_string())).unwrap_or_default();
    printable(text.as_bytes(), Some(TEXT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources};
    use crate::report::Status;

    fn statuses(phases: &[Phase]) -> Statuses {
        let config = Config::load(Sources::default()).unwrap();
        let partitions = (0..).zip(phases).map(|(number, phase)| {
            let status = Status::starting(&config);
            Status { phase: phase.clone(), partition: Some(number), ..status }
        });
        Statuses::Partitions { partitions: partitions.collect() }
    }

    const ALIVE: &str = "WATCHDOG=1\n";

    fn away() -> Phase {
        Phase::RedisAway { trouble: "a\nb".to_owned() }
    }

    #[test]
    fn the_daemon_is_ready_once_no_partition_is_starting() {
        let mut messages = Messages::new(None);
        let mut is_ready = |phases: &[Phase]| {
            messages.next(&statuses(phases), false, Instant::now()).contains("READY=1\n")
        };
        let failed = Phase::Failed { reason: String::new() };
        assert!(!is_ready(&[Phase::Starting, Phase::Working]));
        assert!(!is_ready(&[failed, Phase::Working]));
        assert!(is_ready(&[away(), Phase::Working]));
        assert!(!is_ready(&[Phase::Working, Phase::Working]), "told once");
        assert!(!is_ready(&[Phase::Starting, Phase::Working]));
    }

    #[test]
    fn signs_of_life_come_at_their_period_until_a_partition_fails() {
        let period = Duration::from_secs(10);
        let (mut messages, start) = (Messages::new(Some(period)), Instant::now());
        let mut is_alive = |phase: &Phase, seconds| {
            let now = start + Duration::from_secs(seconds);
            messages.next(&statuses(&[Phase::Working, phase.clone()]), false, now).contains(ALIVE)
        };
        assert!(is_alive(&Phase::Starting, 0));
        assert!(!is_alive(&away(), 9));
        assert!(is_alive(&away(), 10));
        assert!(!is_alive(&Phase::Failed { reason: String::new() }, 30));
        assert!(is_alive(&Phase::Working, 31));
        let mut silent = Messages::new(None);
        assert!(!silent.next(&statuses(&[Phase::Working]), false, start).contains(ALIVE));
    }

    #[test]
    fn the_status_is_one_line_and_sent_only_if_it_changes() {
        let mut messages = Messages::new(None);
        let mut news = |phases: &[Phase]| messages.next(&statuses(phases), false, Instant::now());
        let first = news(&[Phase::Working, away()]);
        assert_eq!(first, "READY=1\nSTATUS=partition 1: waiting for Redis: a\\nb\n");
        assert_eq!(news(&[Phase::Working, away()]), "");
        assert_eq!(news(&[Phase::Working, Phase::Working]), "STATUS=working\n");
    }

    #[test]
    fn a_stop_is_told_once() {
        let mut messages = Messages::new(None);
        let working = statuses(&[Phase::Working]);
        let mut stops =
            |stop| messages.next(&working, stop, Instant::now()).contains("STOPPING=1\n");
        assert_eq!([stops(false), stops(true), stops(true)], [false, true, false]);
    }
}
