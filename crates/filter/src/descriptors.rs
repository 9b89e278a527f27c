//! Errors for lack of file descriptors, and their remedy.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use rustix::io::Errno;

/// First wait between two attempts, and longest wait.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_mins(1);

/// An operation failed for lack of file descriptors. The text ends with the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct DescriptorsError(String);

/// Returns the remedy if `error` is the system's refusal of one more file descriptor.
pub fn remedy(error: &io::Error) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE => Some(
            "the process has as many file descriptors open as its limit allows; raise the limit \
             (LimitNOFILE= in a systemd unit, ulimit -n in a shell)",
        ),
        Errno::NFILE => Some(
            "all processes of the machine together have as many files open as it allows; raise \
             fs.file-max (sysctl)",
        ),
        _ => None,
    }
}

/// Returns the system's error with the attempted operation before it. If a remedy is known, it
/// follows the error.
pub fn explained(tried: impl Display, error: &io::Error) -> io::Error {
    match remedy(error) {
        Some(remedy) => {
            io::Error::new(error.kind(), DescriptorsError(format!("{tried}: {error}; {remedy}")))
        }
        None => io::Error::new(error.kind(), format!("{tried}: {error}")),
    }
}

/// Returns true if the cause of an error is a lack of file descriptors. The error may be
/// [explained] or come from the system. The lack ends when other files or connections are closed,
/// or when the limit is raised.
pub fn are_exhausted(error: &io::Error) -> bool {
    let is_explained = matches!(error.get_ref(), Some(inner) if inner.is::<DescriptorsError>());
    is_explained || remedy(error).is_some()
}

/// Growing waits between attempts: a second at first, doubling up to a minute.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waits(Option<Duration>);

impl Waits {
    /// Returns the wait after one more failure.
    pub fn grow(&mut self) -> Duration {
        let wait = self.0.map_or(FIRST, |before| (before * 2).min(LONGEST));
        self.0 = Some(wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explained_error_keeps_its_kind_and_its_cause() {
        let error = |errno: Errno| io::Error::from(errno);
        for (errno, words) in [(Errno::MFILE, "LimitNOFILE="), (Errno::NFILE, "fs.file-max")] {
            assert!(are_exhausted(&error(errno)));
            let explained = explained("cannot open a", &error(errno));
            assert!(are_exhausted(&explained));
            assert!(explained.to_string().starts_with("cannot open a: Too many open files"));
            assert!(explained.to_string().contains(words), "{explained}");
        }
        let full = explained("cannot write a", &error(Errno::NOSPC));
        assert!(!are_exhausted(&full));
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert_eq!(full.to_string(), "cannot write a: No space left on device (os error 28)");
        assert!(!are_exhausted(&io::Error::other("Too many open files (os error 24)")));
    }

    #[test]
    fn waits_double_up_to_a_minute() {
        let mut waits = Waits::default();
        let seconds = [1, 2, 4, 8, 16, 32, 60, 60].map(Duration::from_secs);
        assert_eq!(seconds.map(|_| waits.grow()), seconds);
    }
}
