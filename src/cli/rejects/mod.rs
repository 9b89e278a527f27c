//! `urlseen rejects`: lists, requeues and drops unreadable items.

use std::io::{self, Write};

use crate::admin::printable::{printable, say};
use crate::crawl::rejects::{Fate, RejectsList, Sorted};
use anyhow::Context as _;
use indicatif::HumanCount;
use urlseen_core::redis::reject::Reject;

use super::bar::Bar;
use super::confirm::confirmed;
use super::context::runtime;
use super::settings::Settings;
use super::{Outcome, partitions};

mod table;

/// Maximum number of foreign rejects that the command prints. Foreign rejects are entries of the
/// list that urlseen did not write.
const NAMED: u64 = 20;

/// Maximum width of a foreign reject in a message, in columns.
const SHOWN: usize = 200;

/// List, requeue or drop the items that the daemon failed to read.
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
    /// Put rejected items back at the end of the source.
    ///
    /// Use the command after you have removed the reason for the rejects, for example with a change
    /// of `source.item` or an update of urlseen. If the daemon still cannot read an item, it
    /// rejects the item again. An item of any size goes back byte for byte. Entries that urlseen
    /// did not write stay on the list. The command prints these entries. If there are any, the exit
    /// status is 1.
    #[command(after_help = "\
Examples:
  urlseen rejects requeue
  urlseen rejects requeue --reason tab")]
    Requeue {
        #[command(flatten)]
        settings: Settings,
        /// Requeue only rejects whose reason contains this text. Default: all rejects
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Delete rejects and their items.
    ///
    /// Items that the daemon rejects during the command stay on the list.
    #[command(after_help = "\
Examples:
  urlseen rejects drop                        # asks first
  urlseen rejects drop --yes --reason scheme")]
    Drop {
        #[command(flatten)]
        settings: Settings,
        /// Drop only rejects whose reason contains this text. Default: all rejects
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Do not ask for confirmation. Required if standard input is not a terminal
        #[arg(long)]
        yes: bool,
    },
}

pub(super) fn run(args: &RejectsArgs) -> anyhow::Result<Outcome> {
    let settings = match &args.command {
        RejectsCommand::List(args) => &args.settings,
        RejectsCommand::Requeue { settings, .. } | RejectsCommand::Drop { settings, .. } => {
            settings
        }
    };
    partitions::each(settings.load_all()?, |config| {
        runtime()?.block_on(async {
            let list = RejectsList::open(&config).await?;
            match &args.command {
                RejectsCommand::List(args) => table::show(list, args).await,
                RejectsCommand::Requeue { reason, .. } => requeue(list, reason.as_deref()).await,
                RejectsCommand::Drop { reason, yes, .. } => {
                    drop_rejects(list, reason.as_deref(), *yes).await
                }
            }
        })
    })
}

/// Returns true if the reason of a reject contains the given text, or if no text is given.
fn is_wanted(reject: &Reject, reason: Option<&str>) -> bool {
    reason.is_none_or(|reason| reject.reason.contains(reason))
}

async fn requeue(list: RejectsList, reason: Option<&str>) -> anyhow::Result<Outcome> {
    let source = list.names().0.to_owned();
    let sorted = sort(list, Fate::Requeue, reason).await?;
    let (gone, stay) = (HumanCount(sorted.gone), HumanCount(sorted.found - sorted.gone));
    writeln!(io::stdout(), "{gone} put back to {source}, {stay} stay")?;
    Ok(if sorted.foreign > 0 { Outcome::BadInput } else { Outcome::Done })
}

async fn drop_rejects(
    mut list: RejectsList,
    reason: Option<&str>,
    yes: bool,
) -> anyhow::Result<Outcome> {
    let scan = list.scan().await?;
    let found = scan.len();
    let rejected = printable(list.names().1.as_bytes(), None);
    if found == 0 {
        writeln!(io::stdout(), "there are no rejects on {rejected}")?;
        return Ok(Outcome::Done);
    }
    let count = HumanCount(found);
    let question = match reason {
        None => format!("Drop {count} rejects on {rejected} for good?"),
        Some(reason) => {
            let reason = printable(reason.as_bytes(), None);
            format!(
                "Drop the rejects whose reason contains {reason:?} for good? There are {count} \
                 rejects on {rejected}."
            )
        }
    };
    if !confirmed(yes, &question, "nothing is dropped")? {
        return Ok(Outcome::Done);
    }
    let (gone, stay) = match reason {
        None => (list.drop_found(scan).await?, 0),
        Some(reason) => {
            let sorted = sort(list, Fate::Drop, Some(reason)).await?;
            (sorted.gone, sorted.found - sorted.gone)
        }
    };
    writeln!(io::stdout(), "{} dropped, {} stay", HumanCount(gone), HumanCount(stay))?;
    Ok(Outcome::Done)
}

/// Requeues or drops the selected rejects. Prints the entries that cannot be requeued.
async fn sort(mut list: RejectsList, fate: Fate, reason: Option<&str>) -> anyhow::Result<Sorted> {
    let bar = Bar::counting("rejects");
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
        // The command failed before its first step.
        Err(trouble) if last.found == 0 => return Err(trouble.into()),
        result => result.with_context(|| {
            let [seen, found, gone] = [last.seen(), last.found, last.gone].map(HumanCount);
            format!(
                "stopped after {seen} of {found} rejects, {gone} of them gone; the others wait in \
                 Redis: repeat the command to continue"
            )
        })?,
    };
    if sorted.foreign > NAMED {
        say(format_args!("urlseen: … and {} more of these", HumanCount(sorted.foreign - NAMED)));
    }
    Ok(sorted)
}

/// Prints entries that have no whole item. `total` is the number of such entries so far, including
/// the given ones.
fn name_foreign(total: u64, foreign: &[&[u8]]) {
    let before = total - foreign.len() as u64;
    let room = usize::try_from(NAMED.saturating_sub(before)).unwrap_or(usize::MAX);
    for reject in foreign.iter().take(room) {
        let shown = printable(reject, Some(SHOWN));
        say(format_args!("urlseen: stays on the list, because it has no whole item: {shown}"));
    }
}
