//! Verdict of the filter on an item, and its certainty.

use urlseen_filter::Generation;
use urlseen_storage::RecordKind::{Adds, Batch, Forgets};
use urlseen_storage::{Look, look, named, timing_of};

use super::Subject;
use super::passing::Passing;
use crate::cli::check::FilterAccess;
use crate::cli::prelude::*;

/// Verdict of the filter on an item.
#[derive(Debug, Default, Serialize)]
pub(super) struct AnswerShown {
    /// `seen`, `unseen`, or `unknown`.
    pub(super) verdict: &'static str,
    /// Name of the filter that answered, or the reason for `unknown`.
    pub(super) says: String,
    /// True if the verdict is certain.
    pub(super) is_certain: bool,
    /// Share of unseen items that the filter now reports as seen.
    pub(super) error_rate: Option<f64>,
    /// Number of fingerprints in the filter as a share of its capacity.
    pub(super) fill: Option<f64>,
    /// Time at which a seen URL passes again, in RFC 3339. `None` if this is not known, or if
    /// fingerprints do not expire.
    pub(super) passes_again: Option<String>,
    /// Certainty of the verdict, in words.
    pub(super) how_sure: String,
    #[serde(skip)]
    pub(super) has_failed: bool,
    /// True if `error_rate` is only an upper bound.
    #[serde(skip)]
    at_most: bool,
    /// Reason why the error rate exceeds the configured one.
    #[serde(skip)]
    warning: Option<String>,
}

impl AnswerShown {
    /// Asks the daemon, the storage folder or the Redis server that has the filter.
    pub(super) fn of(item: &[u8], key: &Fingerprint, subject: &Subject) -> anyhow::Result<Self> {
        if let (Some(dir), None) = (folder_of(&subject.config), &subject.header) {
            return Ok(Self::unknown(format!("{} holds no filter yet", dir.display()), false));
        }
        let mut filter = FilterAccess::of(&subject.config)?;
        let checked = match filter.check(&[item.to_vec()]) {
            Ok(mut checked) => checked.pop(),
            Err(error) => {
                let is_missing = matches!(error.downcast_ref(), Some(RedisOpenError::Missing(_)));
                return Ok(Self::unknown(format!("{error:#}"), !is_missing));
            }
        };
        let answer = Self::describe(&filter, subject)?;
        let is_running = !matches!(filter, FilterAccess::AtRest(_));
        answer.judged(checked.as_ref(), is_running, key, subject)
    }

    /// Names the filter that answered, and returns its error rate and fill.
    fn describe(filter: &FilterAccess, subject: &Subject) -> anyhow::Result<Self> {
        let mut answer = Self::default();
        match filter {
            FilterAccess::Running(client) => {
                let status: Status = runtime()?.block_on(client.status())?;
                answer.says = format!("the daemon of the crawl {:?}", status.crawl);
                if let Some(filter) = status.filter {
                    (answer.error_rate, answer.fill) = (Some(filter.error_rate), Some(filter.fill));
                }
            }
            FilterAccess::AtRest(folder) => {
                "the storage folder, at rest".clone_into(&mut answer.says);
                answer.at_rest(folder, folder_of(&subject.config))?;
            }
            FilterAccess::Redis(config) => {
                let filter = &config.filter;
                let estimate = runtime()?.block_on(async {
                    let (mut link, opened) = find(config).await?;
                    anyhow::Ok(opening::estimate(&mut link, &opened.filter).await?)
                })?;
                answer.says = format!("the filter {} in Redis", filter.key);
                answer.error_rate = Some(estimate.error_rate);
                answer.fill = Some(estimate.keys as f64 / filter.capacity as f64);
            }
        }
        Ok(answer)
    }

    /// Sets the error rate and the fill of a filter in a folder that no daemon uses.
    fn at_rest(&mut self, folder: &AtRest, place: Option<&Path>) -> anyhow::Result<()> {
        let (Some(header), Some(dir)) = (folder.header(), place) else { return Ok(()) };
        let parameters = &header.spec.filter.parameters;
        if parameters.shards() == 1 {
            // A verdict reads the whole filter anyway.
            let gauge = folder.filter(Target::Last, |_| true)?.0.gauge();
            self.error_rate = Some(gauge.error_rate());
            self.fill = Some(gauge.fill().share());
            self.warning = parameters.outlook(0).ok().and_then(|outlook| outlook.warning);
        } else {
            let keys = keys(&look(dir)?);
            self.error_rate = Some(parameters.outlook(keys)?.error_rate);
            self.fill = parameters.capacity().map(|capacity| keys as f64 / capacity as f64);
            self.at_most = true;
        }
        Ok(())
    }

    /// Adds the verdict and its certainty.
    fn judged(
        self,
        checked: Option<&Checked>,
        is_running: bool,
        key: &Fingerprint,
        subject: &Subject,
    ) -> anyhow::Result<Self> {
        let is_seen = match checked {
            Some(Checked::Seen { .. }) => true,
            Some(Checked::Unseen { .. }) => false,
            // This command can read the item, and its configuration says that the filter judges the
            // item. So the process that answered has another configuration.
            Some(Checked::Unfiltered | Checked::Dropped { .. } | Checked::Unreadable { .. })
            | None => {
                let says = format!(
                    "{} reads the item differently: its configuration differs from that of this \
                     command",
                    self.says
                );
                return Ok(Self::unknown(says, false));
            }
        };
        let place = folder_of(&subject.config);
        let logged = place.map(|dir| named(dir, key)).transpose()?.flatten();
        let recorded = subject.header.as_ref().map(|header| header.spec.filter.clone());
        let parameters = recorded.map_or_else(|| subject.config.filter_spec(), Ok)?.parameters;
        let (is_exact, expire_after) = (parameters.is_exact(), parameters.expire_after());
        let timing = place.and_then(timing_of);
        let passing = expire_after.filter(|_| is_seen).and_then(|time| {
            let begin = |generation| timing?.begin_of(generation, time, SystemTime::now());
            match logged {
                Some((Batch | Adds, _, let_through)) => {
                    Some(Passing::of(let_through, time, begin, is_running))
                }
                _ => Some(Passing::stored(stored(key, subject)?, time, begin)),
            }
        });
        let certain = match (is_seen, logged) {
            (true, Some((Batch, at, _))) => Some(format!("the log recorded it as unseen ({at})")),
            (true, Some((Adds, at, _))) => Some(format!("the log recorded it as added ({at})")),
            (false, Some((Forgets, at, _))) => {
                Some(format!("it was forgotten ({at}) and passes again"))
            }
            (false, Some((Batch | Adds, at, _))) if expire_after.is_some() => {
                Some(format!("it was let through ({at}) and has expired"))
            }
            _ if is_exact => Some("it is an exact set".to_owned()),
            (true, _) => None,
            (false, _) => Some("a filter reports every seen item as seen".to_owned()),
        };
        let (mut how_sure, condition) = match &certain {
            Some(why) => (format!("certain: {why}"), ""),
            None => (self.believed(), "if it was seen, "),
        };
        if let Some(Passing { words, .. }) = &passing {
            how_sure = format!("{how_sure}; {condition}{words}");
        }
        Ok(Self {
            verdict: if is_seen { "seen" } else { "unseen" },
            is_certain: certain.is_some(),
            fill: self.fill.filter(|_| !is_exact),
            passes_again: passing
                .and_then(|it| it.again)
                .map(|time| humantime::format_rfc3339_millis(time).to_string()),
            how_sure,
            ..self
        })
    }

    /// Describes the certainty of the verdict `seen`.
    fn believed(&self) -> String {
        let warning = self.warning.as_ref().map_or_else(String::new, |it| format!("; {it}"));
        let Some(rate) = self.error_rate else {
            return format!("not certain: the fill of the filter is unknown{warning}");
        };
        let most = if self.at_most { "at most " } else { "" };
        let share = if rate > 0.0 && rate < 1.0 {
            // The number is between 1 and 1e18.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let one_in = (1.0 / rate).round().min(1e18) as u64;
            format!("the filter reports {most}one in {} unseen items as seen", HumanCount(one_in))
        } else {
            format!("the filter reports a share of {rate} of unseen items as seen")
        };
        let fill = self.fill.map_or_else(String::new, |fill| {
            let words = match fill {
                ..=0.8 => "well within its capacity",
                ..=1.0 => "near its capacity",
                _ => "so its error rate is above the configured one",
            };
            format!("; it is {:.0} % full, {words}", 100.0 * fill)
        });
        format!("not certain: {share} ({rate:.1e}){fill}{warning}")
    }

    fn unknown(says: String, has_failed: bool) -> Self {
        Self { verdict: "unknown", says, has_failed, ..Self::default() }
    }
}

/// Returns the generation that the filter in the folder has for a fingerprint. A daemon may use the
/// folder meanwhile. `None` if the folder does not have it, or cannot be read.
fn stored(key: &Fingerprint, subject: &Subject) -> Option<Generation> {
    let (folder, _) = AtRest::open_beside(folder_of(&subject.config)?).ok()?;
    folder.generation(key).ok().flatten()
}

/// Returns an upper bound on the number of fingerprints: the sum of the numbers in the newest
/// snapshot and in each later file of the log.
fn keys(look: &Look) -> u64 {
    let (keys, from) =
        look.snapshots.last().map_or((0, 0), |snapshot| (snapshot.keys(), snapshot.first.number));
    let beyond = look.segments.iter().filter(|segment| segment.last.number > from);
    keys + beyond.map(|segment| segment.fingerprints).sum::<u64>()
}
