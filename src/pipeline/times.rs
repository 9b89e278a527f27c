//! Durations of a daemon's operations.

use serde::{Deserialize, Serialize};

use urlseen_core::storage::Histogram;

/// Declares the durations. A new one needs one line here, and one line of code that observes it.
macro_rules! times {
    ($( $field:ident, $metric:literal: $help:literal; )+) => {
        /// Durations of a daemon's operations since its start.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Times {
            $( #[doc = concat!($help, ".")] pub $field: Histogram, )+
        }

        impl Times {
            /// Returns name, help text and values of each metric.
            pub(crate) fn metrics(&self) -> Vec<(&'static str, &'static str, Histogram)> {
                vec![$( ($metric, $help, self.$field) ),+]
            }
        }
    };
}

times! {
    commit, "commit_seconds": "Time from sending a commit until Redis has answered it";
    judge, "judge_seconds": "Time from passing a batch to the threads until it is judged";
    log_sync, "log_sync_seconds": "Time that a sync of the log took";
    recovery, "recovery_seconds": "Time that loading the filter took";
    round_trip, "redis_round_trip_seconds": "Time from any other request until Redis answers it";
}
