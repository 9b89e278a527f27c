//! Table of the machines and programs that a crawl needs.

use std::io::{self, Write};
use std::time::Duration;

use urlseen_core::filter::number;

use super::needs::Needs;
use super::resource::{Growth, Owner, Resource, Unit};
use super::text::{grouped, size};

impl Needs {
    /// Prints the needs as tables.
    pub fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { traffic, machine, .. } = self;
        writeln!(
            out,
            "{} items/s of {} bytes ({}), {} unseen, {} routed; {} wait",
            whole(traffic.rate.get()),
            whole(traffic.item_bytes.get()),
            traffic.item.name(),
            traffic.unseen,
            traffic.routed,
            whole(traffic.waiting.get()),
        )?;
        writeln!(
            out,
            "machines of {} cores, {} GiB, {} Gbit/s each way\n",
            machine.cores.get(),
            machine.memory_gib.get(),
            machine.network_gbit.get(),
        )?;
        self.print_layout(out)?;
        self.print_resources(out)?;
        self.print_carried(out)
    }

    fn print_layout(&self, out: &mut impl Write) -> io::Result<()> {
        let layout = &self.layout;
        let parts = [
            ("machines", grouped(layout.machines)),
            ("partitions", grouped(layout.partitions)),
            ("Redis primaries", grouped(layout.primaries)),
            ("urlseen run", grouped(layout.processes)),
            ("urlseen route", grouped(layout.routers)),
            ("storage folders", size(self.folder_bytes)),
            ("written to them", amount(self.written_bytes_per_second, Unit::BytesPerSecond)),
            ("filters full after", duration(self.full_after_seconds)),
        ];
        for (name, value) in parts {
            writeln!(out, "{name:<30} {value:>12}")?;
        }
        writeln!(out)?;
        let partitions = layout.partitions;
        match self.partitions_that_suffice {
            _ if self.suffices => Ok(()),
            Some(enough) if enough > partitions => {
                writeln!(out, "--partitions {partitions} does not suffice, but {enough} does\n")
            }
            _ => writeln!(out, "a crawl of 256 partitions does not suffice: use several crawls\n"),
        }
    }

    fn print_resources(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{:<30} {:>12} {:>15} {:>8}   full at",
            "busiest of each kind", "needs", "has", "share"
        )?;
        for each in &self.resources {
            let Resource { unit, needed, has, share, full_at, .. } = each;
            let percent = format!("{:.1} %", share * 100.0);
            write!(
                out,
                "{:<30} {:>12} {:>15} {percent:>8}   {} {}",
                title(each),
                amount(*needed, *unit),
                amount(*has, *unit),
                rounded(*full_at),
                growth(each.grows_with),
            )?;
            writeln!(out, "{}", if each.first { "  <- first limit" } else { "" })?;
        }
        writeln!(out)
    }

    fn print_carried(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "{:<8} {:>10} {:>9} {:>11} {:>13} {:>12} {:>17}   limit of items/s",
            "machines",
            "partitions",
            "primaries",
            "urlseen run",
            "urlseen route",
            "items/s",
            "URLs"
        )?;
        for each in &self.carried {
            let layout = &each.layout;
            writeln!(
                out,
                "{:<8} {:>10} {:>9} {:>11} {:>13} {:>12} {:>17}   {}",
                layout.machines,
                layout.partitions,
                layout.primaries,
                layout.processes,
                layout.routers,
                rounded(each.items_per_second),
                rounded(each.urls),
                title(&each.first_limit),
            )?;
        }
        Ok(())
    }
}

/// Returns the name of a resource, with its owner.
fn title(resource: &Resource) -> String {
    let owner = match resource.owner {
        Owner::Primary => "Redis primary",
        Owner::Process => "urlseen run",
        Owner::Router => "urlseen route",
        Owner::Machine => "machine",
    };
    format!("{owner}, {}", resource.name)
}

fn growth(growth: Growth) -> &'static str {
    match growth {
        Growth::Urls => "URLs",
        Growth::ItemsPerSecond => "items/s",
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
    if number < 1.0 {
        return "0".to_owned();
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
