//! Configuration of a command, and the runtime that its calls to servers run on.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// Builds a runtime that works on the thread that blocks on it.
pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}
