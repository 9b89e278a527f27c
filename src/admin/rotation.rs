//! Body and answer of `POST /rotate`, with which a client asks for an empty filter in place of the
//! present one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

/// Body of `POST /rotate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rotation {
    /// Spec of the new filter, as the client reads it from the configuration: the value of each
    /// part, by its name.
    pub(crate) spec: BTreeMap<String, String>,
    /// True to delete the earlier filter.
    pub(crate) drop: bool,
}

/// Answer to `POST /rotate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rotated {
    /// Folder with the earlier filter; `None` if that filter was deleted.
    pub(crate) earlier: Option<PathBuf>,
}

/// Reason why the filter was not rotated, as a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct RotationError(pub(crate) String);

/// Rotation that a client waits for.
#[derive(Debug)]
pub struct RotationQuery {
    pub(crate) rotation: Rotation,
    reply: oneshot::Sender<Result<Rotated, RotationError>>,
}

impl RotationQuery {
    /// Tells the client the result. Ignores a client that no longer waits.
    pub(crate) fn reply(self, result: Result<Rotated, RotationError>) {
        let _ = self.reply.send(result);
    }
}

/// Way to the daemon, for rotations. One rotation can wait for the daemon.
pub type Rotations = mpsc::Sender<RotationQuery>;

/// Asks the daemon for a rotation, and waits for the result.
pub(super) async fn ask(
    rotations: &Rotations,
    rotation: Rotation,
) -> Result<Rotated, RotationError> {
    let gone = || RotationError("the daemon has ended".to_owned());
    let (reply, replied) = oneshot::channel();
    rotations.send(RotationQuery { rotation, reply }).await.map_err(|_| gone())?;
    replied.await.unwrap_or_else(|_| Err(gone()))
}
