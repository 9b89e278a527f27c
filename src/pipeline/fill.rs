//! How full the filter is, and what comes of that.

use indicatif::{BinaryBytes, HumanCount};
use tracing::{info, warn};

use super::Pipeline;
use super::queue::Queue;
use urlseen_core::filter::{Fill, REMEDY_IN_FOLDER, REMEDY_IN_REDIS, Sizing};
use urlseen_engine::config::WhenFull;

impl Pipeline {
    /// Warns where the filter is newly past one of its marks; tells where it has grown.
    pub(super) fn watch_fill(&mut self) {
        let observed = self.fill_watch.as_mut();
        let crossing = observed.and_then(|watch| match &self.parts.shared {
            Some(shared) if shared.is_exact() => None,
            Some(shared) => watch.observe_whole(shared.estimate()),
            None => watch.observe(&self.gauges.keys()),
        });
        if let Some(crossing) = crossing {
            let remedy =
                if self.parts.shared.is_some() { REMEDY_IN_REDIS } else { REMEDY_IN_FOLDER };
            warn!("{crossing}. {remedy}");
        }
        let Fill { layers, capacity, bytes, .. } = self.gauges.fill();
        if layers > std::mem::replace(&mut self.layers, layers) && layers > 1 {
            let (capacity, bytes) = (HumanCount(capacity), BinaryBytes(bytes));
            info!("the filter has {layers} layers for {capacity} fingerprints now, {bytes}");
        }
    }

    /// Whether the filter holds what it is made for, and that is to end the run, or has no room for
    /// what was found unseen. What was judged before that is committed first.
    pub(super) fn is_full(&self, queue: &Queue) -> bool {
        if self.works.full().is_some() {
            return self.works.in_progress() == 0 && queue.batches() == 0;
        }
        let keys = || match &self.parts.shared {
            Some(shared) => shared.estimate().keys,
            None => self.gauges.keys().iter().sum::<u64>(),
        };
        let is_past = |sizing: Sizing| keys() >= sizing.capacity().get();
        self.parts.config.filter.when_full == WhenFull::Stop
            && self.parts.parameters.sizing().is_some_and(is_past)
    }
}
