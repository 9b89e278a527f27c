//! Progress of a process, as one line for all its crawls.

use urlseen_engine::engine::query::Asked;

use crate::cli::prelude::*;
use crate::report::Report;

/// Time between two progress lines in the log while nothing happens.
const IDLE: Duration = Duration::from_hours(1);

/// Progress of all crawls, as one line.
pub(super) struct Progress<'a> {
    console: &'a Console,
    source: SourceKind,
    /// Last report of each crawl.
    reports: Vec<Option<Report>>,
    /// Last sum of the reports, with its time.
    last: Option<(Instant, Report)>,
    /// Time of the last line.
    shown: Option<Instant>,
}

impl<'a> Progress<'a> {
    pub(super) fn new(console: &'a Console, source: SourceKind, crawls: usize) -> Self {
        let reports = vec![None; crawls];
        Self { console, source, reports, last: None, shown: None }
    }

    /// Notes the report of a crawl. Shows the sum of all reports, once in each interval.
    pub(super) fn show(&mut self, index: usize, report: &Report, interval: Option<Duration>) {
        let is_terminal = self.console.is_terminal();
        let idle = if is_terminal { Duration::ZERO } else { IDLE };
        let Some(line) = self.line(index, report, interval, idle, Instant::now()) else { return };
        if is_terminal {
            self.console.show(line);
        } else {
            info!("{line}");
        }
    }

    /// Notes the report of a crawl at the time `now`. Returns the line to show, if it is time:
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
        let is_idle = before.is_some_and(|before| {
            (sum.counts, sum.asked) == (before.counts, before.asked)
                && sum.source + sum.processing == 0
        });
        if is_idle && self.shown.is_some_and(|time| is_within(time, idle)) {
            return None;
        }
        self.shown = Some(now);
        Some(progress(self.source, &sum, before.as_ref()))
    }

    /// Notes that a crawl has ended: nothing waits in it for this process.
    pub(super) fn end(&mut self, index: usize) {
        if let Some(report) = &mut self.reports[index] {
            (report.source, report.processing) = (0, 0);
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
