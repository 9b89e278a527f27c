//! Table of the resources that a crawl needs.

use std::io::{self, Write};
use std::time::Duration;

use urlseen_core::filter::number;

use super::needs::{Growth, Needs, Resource, Side, TrafficItem, Unit};
use super::text::{grouped, size};

impl Needs {
    /// Prints the needs as a table.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { traffic, machine, resources, daemons, redis_servers, .. } = self;
        writeln!(
            out,
            "{} items/s of {} bytes ({}), {} unseen; {} wait",
            whole(traffic.rate.get()),
            whole(traffic.item_bytes.get()),
            form(traffic.item),
            traffic.unseen,
            whole(traffic.waiting.get()),
        )?;
        writeln!(
            out,
            "machines of {} cores, {} GiB, {} Gbit/s each way; one for the daemon, one for Redis\n",
            machine.cores.get(),
            machine.memory_gib.get(),
            machine.network_gbit.get(),
        )?;
        writeln!(
            out,
            "{:<26} {:>12} {:>15} {:>8}   full at",
            "", "asks for", "one machine has", "share"
        )?;
        for each in resources {
            let Resource { side, name, unit, asked, has, share, full_at, .. } = each;
            let side = match side {
                Side::Daemon => "daemon",
                Side::Redis => "Redis",
            };
            let percent = format!("{:.1} %", share * 100.0);
            write!(
                out,
                "{:<26} {:>12} {:>15} {percent:>8}   {} {}",
                format!("{side}, {name}"),
                amount(*asked, *unit),
                amount(*has, *unit),
                rounded(*full_at),
                growth(each.grows_with),
            )?;
            writeln!(out, "{}", if each.first { "  <- first limit" } else { "" })?;
        }
        writeln!(out)?;
        let parts = [
            ("daemons", grouped(*daemons)),
            ("Redis servers", grouped(*redis_servers)),
            ("storage folders", size(self.folder_bytes)),
            ("written to them", amount(self.written_bytes_per_second, Unit::BytesPerSecond)),
            ("filter full after", duration(self.full_after_seconds)),
        ];
        for (name, value) in parts {
            writeln!(out, "{name:<26} {value:>12}")?;
        }
        Ok(())
    }
}

fn form(item: TrafficItem) -> &'static str {
    match item {
        TrafficItem::Url => "url",
        TrafficItem::Tab => "tab",
    }
}

fn growth(growth: Growth) -> &'static str {
    match growth {
        Growth::Urls => "URLs",
        Growth::ItemsPerSecond => "items/s",
        Growth::ItemsWaiting => "items waiting",
    }
}

fn amount(number: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => size(number),
        Unit::BytesPerSecond => format!("{:.1} MB/s", number / 1e6),
        Unit::Threads => format!("{number:.2}"),
    }
}

/// Returns a number rounded to two digits, because the measured figures are not more exact.
fn rounded(number: f64) -> String {
    if !number.is_finite() {
        return "any number of".to_owned();
    }
    let unit = 10_f64.powf(number.log10().floor() - 1.0);
    whole((number / unit).round() * unit)
}

fn whole(number: f64) -> String {
    grouped(number::whole(number.round()))
}

/// Returns a duration as text, in days, hours and minutes.
fn duration(seconds: f64) -> String {
    if seconds.is_infinite() {
        return "never".to_owned();
    }
    let minutes = Duration::from_secs_f64((seconds / 60.0).ceil() * 60.0);
    humantime::format_duration(minutes).to_string()
}
