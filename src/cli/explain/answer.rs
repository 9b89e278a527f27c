//! Verdict of the filter on an item, and its certainty.

use crate::admin::{Checked, ClientError, Status};
use indicatif::HumanCount;
use serde::Serialize;
use tokio::runtime::Runtime;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::redis_filter::opening::{self, RedisOpenError};
use urlseen_core::storage::{AtRest, Look, Named, Position, look, named};

use super::super::check::FilterAccess;
use super::super::context::runtime;
use super::super::operand;
use super::super::settings::Place;
use super::Subject;

/// Verdict of the filter on an item.
#[derive(Debug, Serialize)]
pub(super) struct AnswerShown {
    /// `seen`, `unseen`, or `unknown`.
    pub(super) verdict: &'static str,
    /// Name of the filter that answered, or the reason for `unknown`.
    pub(super) says: String,
    /// True if the verdict is certain.
    pub(super) is_certain: bool,
    /// Of unseen items, the share that the filter takes for seen now.
    pub(super) error_rate: Option<f64>,
    /// Number of fingerprints in the filter as a share of its capacity.
    pub(super) fill: Option<f64>,
    /// Certainty of the verdict, in words.
    pub(super) how_sure: String,
    #[serde(skip)]
    pub(super) has_failed: bool,
}

/// Error rate and fill of a filter now.
#[derive(Debug, Default)]
struct Wrong {
    error_rate: Option<f64>,
    fill: Option<f64>,
    /// True if the filter is an exact set.
    is_exact: bool,
    /// True if `error_rate` is only an upper bound.
    at_most: bool,
    /// Why the rate is not the one that the filter was made for.
    warning: Option<String>,
}

/// Names the filter that answered, and returns its error rate and fill.
fn describe(
    filter: &FilterAccess,
    subject: &Subject,
    runtime: &Runtime,
) -> anyhow::Result<(String, Wrong)> {
    Ok(match filter {
        FilterAccess::Running(client) => {
            let status: Status = runtime.block_on(client.status())?;
            let says = format!("the daemon of the crawl {:?}", status.crawl);
            let spec = subject.header.as_ref().map(|header| &header.spec().filter);
            let is_exact = spec.is_some_and(|spec| spec.parameters.is_exact());
            let wrong = status.filter.map_or_else(Wrong::default, |filter| Wrong {
                error_rate: Some(filter.error_rate),
                fill: (!is_exact).then_some(filter.fill),
                is_exact,
                ..Wrong::default()
            });
            (says, wrong)
        }
        FilterAccess::AtRest(folder) => {
            ("the storage folder, at rest".to_owned(), at_rest(folder, &subject.place)?)
        }
        FilterAccess::Redis { context, wanted } => {
            let filter = &context.config.filter;
            let (opened, estimate) = runtime.block_on(async {
                let (mut link, opened) = context.find(wanted).await?;
                let estimate = opening::estimate(&mut link, &opened.filter).await?;
                anyhow::Ok((opened, estimate))
            })?;
            let is_exact = opened.filter.kind().is_exact();
            let fill = estimate.keys as f64 / filter.capacity as f64;
            let wrong = Wrong {
                error_rate: Some(estimate.error_rate),
                fill: (!is_exact).then_some(fill),
                is_exact,
                ..Wrong::default()
            };
            (format!("the filter {} in Redis", filter.key), wrong)
        }
    })
}

impl AnswerShown {
    /// Asks the daemon, the storage folder or the Redis server that has the filter.
    pub(super) fn of(item: &[u8], key: &Fingerprint, subject: &Subject) -> anyhow::Result<Self> {
        let runtime = runtime()?;
        let place = match &subject.place {
            Place::Folder(dir) => Place::Folder(dir.clone()),
            Place::Redis(config) => Place::Redis(config.clone()),
        };
        if let Place::Folder(dir) = &place
            && !dir.is_dir()
        {
            return Ok(Self::unknown(format!("{} holds no filter yet", dir.display()), false));
        }
        let mut filter = FilterAccess::of(place)?;
        if let (Place::Folder(dir), None, FilterAccess::Running(client)) =
            (&subject.place, &subject.header, &filter)
            && let Err(ClientError::NoDaemon { .. }) = runtime.block_on(client.status::<Status>())
        {
            return Ok(Self::unknown(format!("{} holds no filter yet", dir.display()), false));
        }
        let checked = match filter.check(&[item.to_vec()], &runtime) {
            Ok(mut checked) => checked.pop(),
            Err(error) => {
                let is_missing =
                    matches!(error.downcast_ref(), Some(RedisOpenError::Missing { .. }));
                return Ok(Self::unknown(format!("{error:#}"), !is_missing));
            }
        };
        let (says, wrong) = describe(&filter, subject, &runtime)?;
        Self::judged(checked.as_ref(), says, &wrong, key, &subject.place)
    }

    fn judged(
        checked: Option<&Checked>,
        says: String,
        wrong: &Wrong,
        key: &Fingerprint,
        place: &Place,
    ) -> anyhow::Result<Self> {
        let logged = || match place {
            Place::Folder(dir) => named(dir, key),
            Place::Redis(_) => Ok(None),
        };
        Ok(match checked {
            Some(Checked::Seen { .. }) => Self::seen(says, wrong, logged()?),
            Some(Checked::Unseen { .. }) => {
                let how_sure = match logged()? {
                    Some(Named::Forgotten(at)) => {
                        format!("certain: it was forgotten ({at}), and is to pass once more")
                    }
                    _ if wrong.is_exact => "certain: it is an exact set".to_owned(),
                    _ => "certain: whatever was set stays set".to_owned(),
                };
                let Wrong { error_rate, fill, .. } = *wrong;
                let (verdict, is_certain, has_failed) = ("unseen", true, false);
                Self { verdict, says, is_certain, error_rate, fill, how_sure, has_failed }
            }
            // It has a fingerprint here; a daemon that reads otherwise is configured otherwise.
            Some(Checked::Unfiltered | Checked::Unreadable { .. }) | None => Self::unknown(
                format!("{says} reads the item otherwise: it is configured otherwise"),
                false,
            ),
        })
    }

    fn unknown(says: String, has_failed: bool) -> Self {
        Self {
            verdict: "unknown",
            says,
            is_certain: false,
            error_rate: None,
            fill: None,
            how_sure: String::new(),
            has_failed,
        }
    }

    fn seen(says: String, wrong: &Wrong, logged: Option<Named>) -> Self {
        let Wrong { error_rate, fill, is_exact, at_most, ref warning } = *wrong;
        let by_log = |at: Position, what: &str| format!("certain: the log names it, {what} ({at})");
        let (is_certain, how_sure) = match logged {
            Some(Named::Batch(at)) => (true, by_log(at, "as unseen")),
            Some(Named::Added(at)) => (true, by_log(at, "as added")),
            _ if is_exact => (true, "certain: it is an exact set".to_owned()),
            _ => {
                let warning = warning.iter().map(|it| format!("; {it}"));
                (false, believed(error_rate, fill, at_most) + &warning.collect::<String>())
            }
        };
        Self { verdict: "seen", says, is_certain, error_rate, fill, how_sure, has_failed: false }
    }
}

/// Certainty of the verdict `seen`, in words.
fn believed(error_rate: Option<f64>, fill: Option<f64>, at_most: bool) -> String {
    let Some(rate) = error_rate else {
        return "not certain: how full the filter is is not known".to_owned();
    };
    let most = if at_most { "at most " } else { "" };
    let share = if rate > 0.0 && rate < 1.0 {
        // At least 1, and 1e18 at most.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let one_in = (1.0 / rate).round().min(1e18) as u64;
        format!("{most}one in {} unseen items is taken for seen", HumanCount(one_in))
    } else {
        format!("of unseen items a share of {rate} is taken for seen")
    };
    let fill = match fill {
        None => String::new(),
        Some(fill) if fill <= 0.8 => {
            format!("; it is {:.0} % full, well within what it is made for", 100.0 * fill)
        }
        Some(fill) if fill <= 1.0 => {
            format!("; it is {:.0} % full, about what it is made for", 100.0 * fill)
        }
        Some(fill) => format!(
            "; it has {:.0} % of the fingerprints that it is made for, so it errs more than it \
             should",
            100.0 * fill
        ),
    };
    format!("not certain: {share} ({rate:.1e}){fill}")
}

fn at_rest(folder: &AtRest, place: &Place) -> anyhow::Result<Wrong> {
    let (Some(header), Place::Folder(dir)) = (folder.header(), place) else {
        return Ok(Wrong::default());
    };
    let parameters = &header.spec().filter.parameters;
    if header.shards() > 1 {
        let keys = keys(&look(dir)?);
        let outlook = parameters.outlook(keys)?;
        return Ok(Wrong {
            error_rate: Some(outlook.error_rate),
            fill: parameters.capacity().map(|capacity| keys as f64 / capacity as f64),
            is_exact: parameters.is_exact(),
            at_most: true,
            ..Wrong::default()
        });
    }
    let filter = operand::redisbloom(&mut folder.reader()?)?;
    Ok(Wrong {
        error_rate: Some(filter.error_rate_now()),
        fill: Some(filter.size() as f64 / filter.capacity() as f64),
        warning: filter.rate_when_full().warning(),
        ..Wrong::default()
    })
}

/// Fingerprints in the newest snapshot and in the files of the log that go beyond it: at least as
/// many as there are.
fn keys(look: &Look) -> u64 {
    let (keys, from) =
        look.snapshots.last().map_or((0, 0), |snapshot| (snapshot.keys, snapshot.first.number));
    let beyond = look.segments.iter().filter(|segment| segment.last.number > from);
    keys + beyond.map(|segment| segment.fingerprints).sum::<u64>()
}
