//! Saves of the replicas. A replica that takes over may restart, and then comes back with its own
//! last save. urlseen must keep the files with which it can recover the filter to that save. So the
//! session asks the replicas for their saves before a snapshot, because old files are deleted after
//! the snapshot.

use super::Session;
use crate::pipeline::persistence::replicas;
use crate::pipeline::server::Infos;
use urlseen_core::storage::Moment;

impl Session<'_> {
    /// Asks Redis for the oldest state to which Redis may return, if there is a storage folder.
    pub(super) fn ask_for_persistence(&mut self) {
        if self.pipeline.filter.works.storage.is_some() && !self.are_saves_asked {
            let asked = Moment::now();
            self.ask(
                "states to which Redis may return",
                &redis::cmd("INFO"),
                move |session, reply| {
                    let info = session.pipeline.parts.protocol.info(reply)?;
                    session.note_persistence(info, asked);
                    Ok(())
                },
            );
        }
    }

    /// Processes the answer of the primary. If the primary has replicas, asks them for their saves.
    pub(super) fn note_persistence(&mut self, info: String, asked: Moment) {
        match replicas(&info) {
            nodes if nodes.is_empty() => {
                self.pipeline.filter.learn_persistence(&info, &[], asked);
            }
            nodes => {
                self.are_saves_asked = true;
                let answers = self.pipeline.parts.server.infos(nodes);
                self.expect(answers, move |session, infos| {
                    session.note_saves(&info, infos, asked);
                    Ok(())
                });
            }
        }
    }

    /// Processes the answers of the replicas.
    fn note_saves(&mut self, info: &str, infos: Infos, asked: Moment) {
        self.are_saves_asked = false;
        let filter = &mut self.pipeline.filter;
        let mut answers = Vec::new();
        for (node, answer) in infos {
            match answer {
                Ok(info) => answers.push((node, info)),
                Err(trouble) => filter.snapshots.tell_unknown_save(&node, &trouble),
            }
        }
        filter.learn_persistence(info, &answers, asked);
    }
}
