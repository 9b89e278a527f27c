//! Metrics of the process, with the names that Prometheus's client libraries use.

use std::time::{SystemTime, UNIX_EPOCH};

use procfs::process::{LimitValue, Process};

use super::family::{Families, Value};

/// Returns the metrics of this process, which started at `since`. Leaves out the values that the
/// system does not show.
pub(super) fn metrics(since: SystemTime) -> Families {
    let mut all = Families::default();
    let mut add = |name, help, value| all.add(name, help, Vec::new(), value);
    let started = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let help = "Time of the start of the process, in seconds since 1970";
    add("process_start_time_seconds", help, Value::Real(started));
    let Ok(process) = Process::myself() else { return all };
    if let Ok(stat) = process.stat() {
        let ticks = (stat.utime + stat.stime) as f64;
        let seconds = ticks / procfs::ticks_per_second() as f64;
        let help = "Processor time of the process, of the user and of the system";
        add("process_cpu_seconds", help, Value::Seconds(seconds));
        let help = "Virtual memory of the process";
        add("process_virtual_memory_bytes", help, Value::Gauge(stat.vsize));
        let help = "Memory of the process that is not swapped out";
        let resident = stat.rss * procfs::page_size();
        add("process_resident_memory_bytes", help, Value::Gauge(resident));
        let threads = u64::try_from(stat.num_threads).unwrap_or_default();
        add("process_threads", "Threads of the process", Value::Gauge(threads));
    }
    if let Ok(open) = process.fd_count() {
        add("process_open_fds", "Open file descriptors of the process", Value::Gauge(open as u64));
    }
    if let Ok(limits) = process.limits()
        && let LimitValue::Value(most) = limits.max_open_files.soft_limit
    {
        let help = "Limit on the open file descriptors of the process";
        add("process_max_fds", help, Value::Gauge(most));
    }
    all
}
