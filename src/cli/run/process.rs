//! Process that runs partitions of a crawl, each as a pipeline of its own, its progress, and the
//! summary at its end.

use std::cell::RefCell;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::task::JoinSet;
use tracing::Instrument;
use tracing::error;
use tracing::info_span;
use urlseen_engine::engine::query::Asked;

use super::{Ended, RunArgs, Work, begin, full, open, serve};
use crate::admin::AdminServer;
use crate::cli::prelude::*;
use crate::cli::view::Partitions;
use crate::pipeline::Ending;
use crate::report::FilterStatus;
use crate::report::Report;

/// Time between two progress lines on a terminal.
const REDRAW: Duration = Duration::from_millis(200);

/// Time between two progress lines in the log while nothing happens.
const IDLE: Duration = Duration::from_hours(1);

/// Everything that the partitions of a process share.
struct Process<'a> {
    args: &'a RunArgs,
    stop: Stop,
    admin: AdminServer,
    view: Arc<Partitions>,
    /// Time between two progress lines; `None` for no such lines.
    interval: Option<Duration>,
    progress: RefCell<Progress<'a>>,
    /// Threads that judge the items.
    threads: Threads,
}

/// Runs partitions of the crawl, until all of them have ended. If a partition fails, the others go
/// on, and the first failure is the result. Returns `None` if the process was told to stop during
/// standby.
pub(super) async fn run(
    args: &RunArgs,
    crawl: &Config,
    partitions: Vec<Config>,
    console: &Console,
) -> anyhow::Result<Option<Ended>> {
    let mut stop = shutdown::listen().context("cannot listen for signals")?;
    let view = Arc::new(Partitions::new(crawl, &partitions));
    let admin = start::admin(crawl.admin.listen.as_ref(), crawl, view.clone(), &stop)?;
    if crawl.partitions.count.get() > 1 {
        let enter = |phase| view.enter_all(&phase);
        let publish = async || start::publish(crawl, false).await;
        if start::until(&mut stop, enter, publish).await?.is_none() {
            return Ok(None);
        }
        view.enter_all(&Phase::Starting);
    }
    let interval = if console.is_terminal() { Some(REDRAW) } else { crawl.log.progress };
    let progress = RefCell::new(Progress::new(console, crawl.source.kind, partitions.len()));
    let threads = Threads::start(crawl.filter.threads)?;
    let process = Process { args, stop, admin, view, interval, progress, threads };
    let run = |(index, config)| {
        let partition = process.partition(index, config);
        let span = config
            .partition
            .has_others()
            .then(|| info_span!("partition", number = config.partition.number()));
        partition.instrument(span.unwrap_or_else(tracing::Span::none))
    };
    // Each partition is woken standalone.
    let all: FuturesUnordered<_> = partitions.iter().enumerate().map(run).collect();
    let mut ended: Option<Ended> = None;
    for result in all.collect::<Vec<_>>().await {
        let Some(one) = result? else { continue };
        ended = Some(match ended {
            Some(all) => all.and(one),
            None => one,
        });
    }
    Ok(ended)
}

impl Process<'_> {
    /// Runs a partition, the one with this index in the process. Returns `None` if the process was
    /// told to stop during standby.
    async fn partition(&self, index: usize, config: &Config) -> anyhow::Result<Option<Ended>> {
        let ended = self.work(index, config).await;
        self.progress.borrow_mut().end(index);
        if let Err(failure) = &ended {
            let reason = format!("{failure:#}");
            self.view.enter(config.partition, Phase::Failed { reason });
            if config.partition.has_others() {
                error!("the partition has ended, and the others go on: {failure:#}");
            }
        }
        ended
    }

    /// Runs a partition until its end. Returns `None` if the process was told to stop during
    /// standby.
    async fn work(&self, index: usize, config: &Config) -> anyhow::Result<Option<Ended>> {
        let enter = |phase| self.view.enter(config.partition, phase);
        let threads = || self.threads.clone();
        let mut stop = self.stop.clone();
        let Some(opened) = open(self.args, config, threads(), &mut stop, enter).await? else {
            return Ok(None);
        };
        let (asker, dispatcher) = query::open(config.forget.max_len);
        let (mut clients, count) = serve(config, asker, threads()).await?;
        let (mut work, view) = begin(self.args, config, opened, dispatcher, count, stop)?;
        let view = Arc::new(view);
        self.view.run(config.partition, Arc::clone(&view));
        // The socket is removed before `work` releases the folder's lock. If the filter is in
        // Redis, there is no folder for a socket.
        let socket = match config.filter.place {
            FilterPlace::Local => Some(self.admin.listen_in(&config.storage.dir, view)?),
            FilterPlace::Redis => None,
        };
        let ending = self.until_end(index, &mut work, &mut clients).await;
        drop(socket);
        if let (Err(failure @ RunError::Ended(_)), Work::Queue(pipeline)) = (&ending, &mut work) {
            pipeline.give_up(failure).await;
        }
        let ending = ending?;
        let (report, rules, lacks_room) = match work {
            Work::Queue(mut pipeline) => {
                (pipeline.report(), pipeline.by_rule(), pipeline.lacks_room())
            }
            Work::Standalone(mut standalone) => (standalone.report(), ByRule::default(), false),
        };
        if ending == Ending::Full {
            error!("{}", full(config, report.filter.keys, lacks_room)?);
        }
        Ok(Some(Ended { ending, report, rules }))
    }

    /// Works until the run ends.
    async fn until_end(
        &self,
        index: usize,
        work: &mut Work,
        clients: &mut JoinSet<()>,
    ) -> Result<Ending, RunError> {
        let interval = self.interval;
        let mut show = |report: &_| self.progress.borrow_mut().show(index, report, interval);
        let run = async {
            match work {
                Work::Queue(pipeline) => pipeline.run(interval, &mut show).await,
                Work::Standalone(standalone) => standalone.run(interval, &mut show).await,
            }
        };
        tokio::select! {
            ending = run => ending,
            Some(_) = clients.join_next() => Err(RunError::Ended("the server at serve.listen")),
            () = self.admin.ended() => Err(RunError::Ended("the admin endpoint")),
        }
    }
}

impl Ended {
    /// Adds the result of another partition.
    fn and(self, other: Self) -> Self {
        Self {
            ending: self.ending.max(other.ending),
            report: self.report.and(&other.report),
            rules: self.rules.and(other.rules),
        }
    }
}

/// Progress of all partitions, as one line.
struct Progress<'a> {
    console: &'a Console,
    source: SourceKind,
    /// Last report of each partition.
    reports: Vec<Option<Report>>,
    /// Last sum of the reports, with its time.
    last: Option<(Instant, Report)>,
    /// Time of the last line.
    shown: Option<Instant>,
}

impl<'a> Progress<'a> {
    fn new(console: &'a Console, source: SourceKind, partitions: usize) -> Self {
        let reports = vec![None; partitions];
        Self { console, source, reports, last: None, shown: None }
    }

    /// Notes the report of a partition. Shows the sum of all reports, once in each interval.
    fn show(&mut self, index: usize, report: &Report, interval: Option<Duration>) {
        let is_terminal = self.console.is_terminal();
        let idle = if is_terminal { Duration::ZERO } else { IDLE };
        let Some(line) = self.line(index, report, interval, idle, Instant::now()) else { return };
        if is_terminal {
            self.console.show(line);
        } else {
            info!("{line}");
        }
    }

    /// Notes the report of a partition at the time `now`. Returns the line to show, if it is time:
    /// one line in each `interval`, and one in each `idle` while nothing happens.
    fn line(
        &mut self,
        index: usize,
        report: &Report,
        interval: Option<Duration>,
        idle: Duration,
        now: Instant,
    ) -> Option<String> {
        self.reports[index] = Some(*report);
        let is_within = |time: Instant, wait| now.duration_since(time) < wait;
        let wait = interval.unwrap_or_default().mul_f64(0.5);
        if self.last.is_some_and(|(time, _)| is_within(time, wait)) {
            return None;
        }
        let reports = self.reports.iter().flatten().copied();
        let sum = reports.reduce(|one, other| one.and(&other))?;
        let before = self.last.replace((now, sum)).map(|(_, report)| report);
        let is_idle = before.is_some_and(|before| sum.is_idle_since(&before));
        if is_idle && self.shown.is_some_and(|time| is_within(time, idle)) {
            return None;
        }
        self.shown = Some(now);
        Some(progress(self.source, &sum, before.as_ref()))
    }

    /// Notes that a partition has ended: nothing waits in it for this process.
    fn end(&mut self, index: usize) {
        if let Some(report) = &mut self.reports[index] {
            report.is_over();
        }
    }
}

/// Returns the line of progress during a run. Its rates are for the time since the report `before`.
fn progress(source: SourceKind, report: &Report, before: Option<&Report>) -> String {
    let Report { counts, asked, seconds, source: waiting, processing, filter } = report;
    let since = before.map_or(0.0, |before| before.seconds);
    let rate = |now: u64, of: fn(&Report) -> u64| {
        (now - before.map_or(0, of)) as f64 / (seconds - since).max(1e-3)
    };
    let mut parts = Vec::new();
    if source != SourceKind::None {
        let rate = rate(counts.items(), |before| before.counts.items());
        let (items, unseen, waiting) = (counts.items(), counts.unseen, waiting + processing);
        parts.push(format!("{items} items, {unseen} unseen, {rate:.0}/s, {waiting} waiting"));
    }
    if source == SourceKind::None || *asked != Asked::default() {
        let rate = rate(asked.all(), |before| before.asked.all());
        parts.push(format!("{} asked, {} unseen, {rate:.0}/s", asked.all(), asked.unseen));
    }
    let (fill, error_rate) = (100.0 * filter.fill, filter.error_rate);
    parts.push(format!("filter {fill:.1} % full, error rate {error_rate:.1e}"));
    parts.join(", ")
}

/// Summary of a run, as `--json` prints it.
#[derive(Serialize)]
struct RunShown<'a> {
    #[serde(flatten)]
    report: &'a Report,
    items: u64,
    ending: Ending,
    #[serde(flatten)]
    rules: &'a ByRule,
}

/// Prints the summary at the end of a run.
pub(super) fn summarize(
    source: SourceKind,
    report: &Report,
    rules: &ByRule,
    ending: Ending,
    json: bool,
) -> anyhow::Result<Outcome> {
    let shown = RunShown { report, items: report.counts.items(), ending, rules };
    answer(json.then(|| serde_json::to_string(&shown)).transpose()?, |out| {
        let mut rows = Rows::new(out, CRAWL);
        let (counts, seconds) = (&report.counts, report.seconds);
        if source != SourceKind::None {
            status::items(&mut rows, counts, rules, paced(counts.items(), seconds))?;
        }
        if source == SourceKind::None || report.asked != Asked::default() {
            status::asked(&mut rows, &report.asked, format_args!("in {seconds:.2} s"))?;
        }
        let FilterStatus { keys, fill, error_rate, .. } = report.filter;
        rows.count("filter", keys, filled(fill, error_rate))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_daemon_logs_a_line_an_hour() {
        let console = Console::new();
        let mut progress = Progress::new(&console, SourceKind::List, 1);
        let begun = Instant::now();
        let mut report = Report::default();
        let mut line_at = |seconds: u64, unseen: u64| {
            report.counts.unseen = unseen;
            report.seconds = seconds as f64;
            let now = begun + Duration::from_secs(seconds);
            progress.line(0, &report, Some(Duration::from_secs(10)), IDLE, now)
        };
        let lines = (0..1000).filter(|tick| line_at(10 * tick, 1).is_some());
        assert_eq!(lines.collect::<Vec<_>>(), [0, 360, 720]);
        // The rate is that of the last interval, not of the hour.
        let line = line_at(10_000, 101).unwrap();
        assert!(line.starts_with("101 items, 101 unseen, 10/s, "), "{line}");
        assert_eq!(line_at(10_010, 101), None);
        assert_eq!(line_at(10_012, 102), None, "half of the interval has not passed");
        assert!(line_at(10_020, 102).is_some());
    }
}
