//! `urlseen rejects`: items that the daemon could not read.

use std::io::{self, Write};

use crate::admin::printable::{printable, say};
use crate::crawl::rejects::{Fate, RejectsList, Sorted};
use anyhow::Context as _;
use indicatif::HumanCount;
use urlseen_core::redis::reject::Reject;

use super::Outcome;
use super::bar::Bar;
use super::confirm::confirm;
use super::context::Context;
use super::settings::Settings;

mod table;

/// Most foreign rejects that are named.
const NAMED: u64 = 20;

/// Most columns that are shown of a foreign reject.
const SHOWN: usize = 200;

/// List, requeue or drop the items that the daemon could not read.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen rejects list     # the newest 20
  urlseen rejects requeue  # back to the source")]
pub(super) struct RejectsArgs {
    #[command(subcommand)]
    command: RejectsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RejectsCommand {
    List(table::RejectListArgs),
    Requeue(RejectRequeueArgs),
    Drop(Drop),
}

/// Put rejected items back to the source, after all items that wait there.
///
/// Use it when the reason is gone, for example after a change of source.item or with a newer
/// urlseen. Items that still cannot be read are rejected once more. An item goes back byte for
/// byte, however large it is. Entries of the list that urlseen did not write stay there. They are
/// named, and make the exit status 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen rejects requeue
  urlseen rejects requeue --reason tab")]
struct RejectRequeueArgs {
    #[command(flatten)]
    settings: Settings,
    /// Only rejects whose reason contains this text
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Drop rejects for good, with their items.
///
/// Items that are rejected meanwhile stay on the list.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen rejects drop                        # asks first
  urlseen rejects drop --yes --reason scheme")]
struct Drop {
    #[command(flatten)]
    settings: Settings,
    /// Only rejects whose reason contains this text
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Do not ask; required if standard input is not a terminal
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(args: &RejectsArgs) -> anyhow::Result<Outcome> {
    let settings = match &args.command {
        RejectsCommand::List(args) => &args.settings,
        RejectsCommand::Requeue(args) => &args.settings,
        RejectsCommand::Drop(args) => &args.settings,
    };
    let context = Context::load(settings)?;
    context.runtime.block_on(async {
        let list = RejectsList::open(&context.config).await?;
        match &args.command {
            RejectsCommand::List(args) => table::show(list, args).await,
            RejectsCommand::Requeue(args) => requeue(list, args).await,
            RejectsCommand::Drop(args) => drop_rejects(list, args).await,
        }
    })
}

/// Returns true if the reason contains the given text, or if no text is given.
fn is_wanted(reject: &Reject, reason: Option<&str>) -> bool {
    reason.is_none_or(|reason| reject.reason.contains(reason))
}

async fn requeue(list: RejectsList, args: &RejectRequeueArgs) -> anyhow::Result<Outcome> {
    let source = list.names().0.to_owned();
    let sorted = sort(list, Fate::Requeue, args.reason.as_deref()).await?;
    let (gone, stay) = (HumanCount(sorted.gone), HumanCount(sorted.found - sorted.gone));
    writeln!(io::stdout(), "{gone} put back to {source}, {stay} stay")?;
    Ok(if sorted.foreign > 0 { Outcome::BadInput } else { Outcome::Done })
}

async fn drop_rejects(mut list: RejectsList, args: &Drop) -> anyhow::Result<Outcome> {
    let scan = list.scan().await?;
    let found = scan.len();
    let rejected = printable(list.names().1.as_bytes(), None);
    if found == 0 {
        writeln!(io::stdout(), "there are no rejects on {rejected}")?;
        return Ok(Outcome::Done);
    }
    let count = HumanCount(found);
    let question = match &args.reason {
        None => format!("Drop {count} rejects on {rejected} for good?"),
        Some(reason) => {
            let reason = printable(reason.as_bytes(), None);
            format!("Drop for good what was rejected with {reason:?}, of {count} on {rejected}?")
        }
    };
    if !args.yes && !confirm(&question)? {
        writeln!(io::stdout(), "nothing is dropped")?;
        return Ok(Outcome::Done);
    }
    let (gone, stay) = match &args.reason {
        None => (list.drop_found(scan).await?, 0),
        Some(reason) => {
            let sorted = sort(list, Fate::Drop, Some(reason)).await?;
            (sorted.gone, sorted.found - sorted.gone)
        }
    };
    writeln!(io::stdout(), "{} dropped, {} stay", HumanCount(gone), HumanCount(stay))?;
    Ok(Outcome::Done)
}

/// Sorts through all rejects, and names the foreign ones.
async fn sort(mut list: RejectsList, fate: Fate, reason: Option<&str>) -> anyhow::Result<Sorted> {
    let bar = bar();
    let mut last = Sorted::default();
    let wanted = |reject: &Reject| is_wanted(reject, reason);
    let result = list
        .sort(fate, wanted, |sorted, foreign| {
            bar.show(sorted.seen(), sorted.found);
            bar.above(|| name_foreign(sorted.foreign, foreign));
            last = *sorted;
        })
        .await;
    drop(bar);
    let sorted = match result {
        // No step was done.
        Err(trouble) if last.found == 0 => return Err(trouble.into()),
        result => result.with_context(|| {
            let [seen, found, gone] = [last.seen(), last.found, last.gone].map(HumanCount);
            format!(
                "stopped after {seen} of {found} rejects, {gone} of them gone; the others wait in \
                 Redis, give the command again to continue"
            )
        })?,
    };
    if sorted.foreign > NAMED {
        say(format_args!("urlseen: … and {} more of these", HumanCount(sorted.foreign - NAMED)));
    }
    Ok(sorted)
}

/// Names rejects that urlseen did not write; `total` counts those so far, with these.
fn name_foreign(total: u64, foreign: &[&[u8]]) {
    let before = total - foreign.len() as u64;
    let room = usize::try_from(NAMED.saturating_sub(before)).unwrap_or(usize::MAX);
    for reject in foreign.iter().take(room) {
        let shown = printable(reject, Some(SHOWN));
        say(format_args!("urlseen: stays on the list, as it was not written by urlseen: {shown}"));
    }
}

/// Shows the progress of the work.
fn bar() -> Bar {
    Bar::of("{human_pos} of {human_len}", "")
}
