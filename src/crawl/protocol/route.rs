//! Command of a router, which moves the items of a source to the partitions.

use redis::Cmd;

use super::Protocol;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::lease::Token;
use urlseen_engine::flow::source::Cursor;

impl Protocol {
    /// Removes a batch of `count` items that all partitions have. It was read after the cursor
    /// `before`.
    pub(crate) fn routed(&self, token: &Token, before: Cursor, count: u64) -> Cmd {
        let Keys { lease, processing, .. } = &self.keys;
        let mut command = self.call("routed", &[lease, processing], token);
        command.arg(before).arg(count);
        command
    }
}
