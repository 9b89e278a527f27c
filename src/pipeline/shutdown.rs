//! Signals that ask the program to stop.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::warn;

/// Receiver whose value is true once the program is asked to stop.
pub(crate) type Stop = watch::Receiver<bool>;

/// Listens for SIGTERM and SIGINT. The first signal asks the program to stop. The second one ends
/// the process immediately, with the exit status that a shell reports for the signal.
pub(crate) fn listen() -> io::Result<Stop> {
    let (ask, stop) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        loop {
            let kind = tokio::select! {
                _ = terminate.recv() => SignalKind::terminate(),
                _ = interrupt.recv() => SignalKind::interrupt(),
            };
            if *ask.borrow() {
                std::process::exit(128 + kind.as_raw_value());
            }
            warn!(
                "asked to stop: the daemon finishes the batches in flight first. A second signal \
                 ends the process at once"
            );
            let _ = ask.send(true);
        }
    });
    Ok(stop)
}
