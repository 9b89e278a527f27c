//! Commits to which the simulated daemon can recover its filter from the storage folder.

use super::state::Head;

/// Commits to which the folder leads, oldest first. The folder leads to a commit if the daemon can
/// recover the filter to that commit. Only the first `certain` commits are sure, because the log
/// may be cut.
#[derive(Debug, Default)]
pub(super) struct History {
    heads: Vec<Head>,
    certain: usize,
    /// True if the folder certainly leads to the last head that the daemon read while it had the
    /// lease.
    pub(super) is_led: bool,
}

impl History {
    /// Returns true if the folder certainly leads to a head.
    pub(super) fn has(&self, head: &Head) -> bool {
        self.heads[..self.certain].contains(head)
    }

    fn place(&self, head: &Head) -> Option<usize> {
        self.heads.iter().position(|other| other == head)
    }

    /// Notes that the daemon has read a head while it had the lease. If the folder leads to this
    /// head, the log may be cut back to this head from now on.
    pub(super) fn owned(&mut self, head: &Head) {
        self.is_led = self.has(head);
        self.certain = self.place(head).map_or(self.certain, |it| self.certain.min(it + 1));
    }

    /// Notes that the daemon continues at a head. Returns true if the crawl begins there.
    pub(super) fn begun(&mut self, head: Head) -> bool {
        let kept = match self.place(&head) {
            Some(place) => place + 1,
            None if self.heads.is_empty() => 0,
            None => panic!("recovered to {head:?}, which the folder does not lead to"),
        };
        self.heads.truncate(kept);
        if kept == 0 {
            self.heads.push(head);
        }
        self.certain = self.heads.len();
        kept == 0
    }

    /// Notes a commit of the batch `head`, which follows `base`.
    pub(super) fn committed(&mut self, base: Option<&Head>, head: Head) {
        let base = base.and_then(|base| self.place(base));
        self.heads.truncate(base.expect("a commit follows one that is known") + 1);
        self.heads.push(head);
        self.certain = self.heads.len();
    }
}
