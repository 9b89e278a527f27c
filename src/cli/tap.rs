//! `urlseen tap`: shows items of a running daemon with their fates.

use std::io::Write;
use std::time::Duration;

use crate::admin::printable::{json_line, printable, stdout};
use crate::admin::{AdminClient, FATES, Sample};

use super::context::runtime;
use super::settings::{Folder, folder_of};
use super::{Outcome, start};

/// Pause between two requests for new items.
const PAUSE: Duration = Duration::from_millis(200);

/// Show items of a running daemon: which pass, which do not, and why.
///
/// The command prints the newest items of each fate and each rule, and then further ones while the
/// daemon commits them. If there are too many, it prints only the last ones of each batch. The
/// command asks the daemon through the socket in the storage folder, so it must run as the user of
/// the daemon. A daemon whose filter is in Redis has no socket.
///
/// The fates are unseen, seen, unfiltered (`dont_filter`, or a rule of `[[pass]]`), dropped (a rule
/// of `[[drop]]`), over-limit (a rule of `[[limit]]`) and rejected.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen tap --fate dropped
  urlseen tap --rule archives --once --json")]
pub(super) struct TapArgs {
    #[command(flatten)]
    folder: Folder,
    /// Show only items with this fate
    #[arg(long, value_name = "FATE", value_parser = FATES)]
    fate: Vec<String>,
    /// Show only items that this rule decided about
    #[arg(long, value_name = "NAME")]
    rule: Vec<String>,
    /// Print the newest items, and end
    #[arg(long)]
    once: bool,
    /// End after this number of items
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Print a JSON object for each item
    #[arg(long)]
    json: bool,
    /// Print the first bytes of each item, in place of method, URL, priority and callback
    #[arg(long)]
    raw: bool,
}

pub(super) fn run(args: &TapArgs) -> anyhow::Result<Outcome> {
    let mut daemons = Vec::new();
    for config in args.folder.locate_all()? {
        let Some(folder) = folder_of(&config) else {
            let reason = "the filter is in Redis, and its daemon has no socket to ask; urlseen tap \
                          needs filter.place = \"local\"";
            return Err(start::usage(reason));
        };
        daemons.push((AdminClient::new(folder)?, 0));
    }
    let (mut out, mut left) = (stdout(), args.count.unwrap_or(u64::MAX));
    loop {
        for (daemon, after) in &mut daemons {
            for sample in runtime()?.block_on(daemon.samples(*after))? {
                *after = sample.number;
                if left > 0 && args.shows(&sample) {
                    left -= 1;
                    writeln!(
                        out,
                        "{}",
                        if args.json { json_line(&sample)? } else { line(&sample, args.raw) }
                    )?;
                }
            }
        }
        out.flush()?;
        if args.once || left == 0 {
            return Ok(Outcome::Done);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Describes an item for people, or shows its bytes.
fn line(sample: &Sample, raw: bool) -> String {
    let Sample { time, fate, rule, reason, same_as, text, item, .. } = sample;
    let time = humantime::format_rfc3339_millis(*time);
    let item =
        if raw { item.clone().into_bytes().unwrap_or_default() } else { text.clone().into() };
    let rule = rule.as_ref().map(|rule| format!("   (the rule {rule:?})"));
    let reason = reason.as_ref().map(|reason| format!("   ({reason})"));
    let same_as = same_as.as_ref().map(|url| format!("   (the same as {url})"));
    let why = rule.or(reason).or(same_as).unwrap_or_default();
    let item = printable(&item, None);
    format!("{time}  {fate:<10}  {item}{}", printable(why.as_bytes(), None))
}

impl TapArgs {
    fn shows(&self, Sample { fate, rule, .. }: &Sample) -> bool {
        let has_rule = || rule.as_ref().is_some_and(|rule| self.rule.contains(rule));
        (self.fate.is_empty() || self.fate.contains(fate)) && (self.rule.is_empty() || has_rule())
    }
}
