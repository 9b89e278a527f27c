//! Names of the scripts, for a simulated server.

use super::Protocol;
use urlseen_core::redis::script::Script;

impl Protocol {
    /// Lists the scripts of a crawl with a filter in the daemon's memory and a list as sink.
    pub(crate) fn scripts(&self) -> Vec<(&'static str, &Script)> {
        let [forgets, forgotten] = self.forgets.scripts();
        let mut all = vec![
            ("own", &self.own),
            ("begin", &self.begin),
            ("rejected_length", &self.rejected_length),
            ("renew", &self.renew),
            ("claim", &self.claim),
            ("commit", &self.commit),
            ("give_back", &self.give_back),
            ("forgets", forgets),
            ("forgotten", forgotten),
            ("release", &self.release),
        ];
        all.extend(self.commit_small.as_ref().map(|script| ("commit_small", script)));
        all
    }
}
