//! Rotation of the filter of a running daemon.

use tracing::{info, warn};
use urlseen_core::filter::{FilterSpec, SpecDifference};
use urlseen_core::storage::{Folder, Head, NotRotated, StorageSpec};
use urlseen_engine::config::{Config, FilterPlace};

use super::{RunArgs, machine};
use crate::admin::{Rotated, Rotation, RotationError, RotationQuery};
use crate::cli::start;

/// Rotation that waits for the end of a run.
pub(super) struct Waiting {
    pub(super) query: RotationQuery,
    /// Configuration with the new filter.
    config: Config,
    spec: StorageSpec,
}

/// Answer to the client of a rotation.
pub(super) type Done = Option<(RotationQuery, Result<Rotated, RotationError>)>;

impl Waiting {
    /// Checks a rotation of the filter that has the configuration `config`. Reads the new filter's
    /// parameters from the configuration that the daemon read at its start. Refuses the rotation
    /// with a reply, and returns `None`, if that is impossible.
    pub(super) fn new(query: RotationQuery, args: &RunArgs, config: &Config) -> Option<Self> {
        match checked(&query.rotation, args, config) {
            Ok((config, spec)) => Some(Self { query, config, spec }),
            Err(refusal) => {
                query.reply(Err(refusal));
                None
            }
        }
    }

    /// Rotates the filter in `folder`, which ends at `head`. `config` is its configuration. Returns
    /// the folder, the configuration of the filter that is in it, and the answer. If the rotation
    /// fails, or if the head is not known, the folder keeps its filter.
    pub(super) async fn rotate(
        self,
        folder: Folder,
        head: Option<Head>,
        config: Config,
    ) -> anyhow::Result<(Folder, Config, Done)> {
        let Self { query, config: new, spec } = self;
        let Some(head) = head else {
            let refusal = "Redis or the disk does not answer, so the filter stays as it is";
            let refusal = RotationError(refusal.to_owned());
            return Ok((folder, config, Some((query, Err(refusal)))));
        };
        let drop = query.rotation.drop;
        let rotated =
            tokio::task::spawn_blocking(move || rotate(folder, &spec, head, drop)).await?;
        Ok(match rotated {
            (folder, Ok(rotated)) => {
                let earlier = rotated.earlier.as_ref();
                let earlier = earlier.map_or_else(
                    || "is deleted".to_owned(),
                    |it| format!("is in {}", it.display()),
                );
                info!("the filter is rotated: it is empty, and the earlier filter {earlier}");
                (folder, new, Some((query, Ok(rotated))))
            }
            (folder, Err(refusal)) => (folder, config, Some((query, Err(refusal)))),
        })
    }
}

/// Rotates the filter in a folder. Returns the folder in any case.
fn rotate(
    folder: Folder,
    spec: &StorageSpec,
    head: Head,
    drop: bool,
) -> (Folder, Result<Rotated, RotationError>) {
    // The memory of the earlier filter is free now.
    if let Err(error) = spec.filter.parameters.check_memory() {
        return (folder, Err(RotationError(error.to_string())));
    }
    match folder.rotate(spec, head) {
        Err(not) => {
            let text = not.to_string();
            let NotRotated { folder, .. } = *not;
            (folder, Err(RotationError(text)))
        }
        Ok(rotated) => {
            let place = rotated.earlier.dir().to_owned();
            let earlier = if drop { rotated.earlier.remove() } else { Ok(()) };
            if let Err(error) = &earlier {
                warn!("the earlier filter is not deleted: {error}");
            }
            let earlier = (!drop || earlier.is_err()).then_some(place);
            (rotated.folder, Ok(Rotated { earlier }))
        }
    }
}

/// Returns the configuration and the spec of the filter that a rotation begins.
fn checked(
    rotation: &Rotation,
    args: &RunArgs,
    config: &Config,
) -> Result<(Config, StorageSpec), RotationError> {
    let refused = |reason: String| RotationError(reason);
    let crawl = args.settings.load_for(&[], machine).map_err(|problems| {
        let problems = problems.to_string().replace('\n', "; ");
        refused(format!("the configuration of the daemon has problems: {problems}"))
    })?;
    if crawl.filter.place != FilterPlace::Local {
        return Err(refused("filter.place must stay \"local\" in a rotation".to_owned()));
    }
    if crawl.partitions.count != config.partitions.count {
        return Err(refused("partitions.count cannot change in a rotation".to_owned()));
    }
    let read = crawl.of_partition(config.partition);
    let new = Config { filter: read.filter, expire: read.expire, ..config.clone() };
    let spec = start::keeping(&new).map_err(|error| refused(error.to_string()))?.spec;
    if config.partition.has_others() && spec.filter.kind() != config.filter.kind {
        let reason = "filter.kind of a crawl with several partitions cannot change while it runs: \
                      stop all its processes, and use the command again";
        return Err(refused(reason.to_owned()));
    }
    let wanted = FilterSpec::read(|name| rotation.spec.get(name).cloned());
    let wanted = wanted.map_err(|error| refused(error.to_string()))?;
    if let Some(other) = spec.filter.differences(&wanted).first() {
        let remedy = if other.what.starts_with("fingerprint.") {
            "it can change only while the daemon is stopped"
        } else {
            "set it in the file that both read"
        };
        let SpecDifference { what, found, wanted } = other;
        let text = format!("{what} is {wanted} for this command, and {found} for the daemon");
        return Err(refused(format!("{text}: {remedy}")));
    }
    Ok((new, spec))
}
