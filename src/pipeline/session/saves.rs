//! Saves of the replicas. A replica that takes over may restart, and then comes back with its own
//! last save. urlseen must keep the files with which it can recover the filter to that save. So the
//! session asks the replicas for their saves before a snapshot, because old files are deleted after
//! the snapshot.

use super::Session;
use crate::crawl::protocol::{ReplicaInfo, replicas};
use crate::pipeline::server::{Awaited, Infos};
use urlseen_core::storage::Moment;

/// Question to the replicas about their saves, until all of them have answered.
pub(super) struct SavesAsked {
    /// Answer of the primary to `INFO`.
    info: String,
    /// Time at which the primary was asked.
    asked: Moment,
    answers: Awaited<'static, Infos>,
}

impl Session<'_> {
    /// Processes the answer of the primary. If the primary has replicas, asks them for their saves.
    pub(super) fn note_persistence(&mut self, info: String, asked: Moment) {
        match replicas(&info) {
            nodes if nodes.is_empty() => {
                self.pipeline.filter.learn_persistence(&info, &[], asked);
            }
            nodes => {
                let answers = self.pipeline.parts.server.infos(nodes);
                self.saves = Some(SavesAsked { info, asked, answers });
            }
        }
    }

    /// Processes the answers of the replicas.
    pub(super) fn note_saves(&mut self, infos: Infos) {
        let Some(SavesAsked { info, asked, .. }) = self.saves.take() else { return };
        let filter = &mut self.pipeline.filter;
        let mut answers = Vec::new();
        for (node, answer) in infos {
            match answer {
                Ok(info) => answers.push(ReplicaInfo { node, info }),
                Err(trouble) => filter.snapshots.tell_unknown_save(&node, &trouble),
            }
        }
        filter.learn_persistence(&info, &answers, asked);
    }
}

/// Waits for the answers of all replicas, or forever if none was asked.
pub(super) async fn answered(saves: &mut Option<SavesAsked>) -> Infos {
    match saves {
        Some(SavesAsked { answers, .. }) => answers.await,
        None => std::future::pending().await,
    }
}
