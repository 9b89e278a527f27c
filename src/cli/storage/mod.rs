//! `urlseen storage`: shows a storage folder, and repairs a crawl whose folder and Redis disagree.

mod repair;
mod show;

use redis::Cmd;
use repair::Repair;
use urlseen_filter::expire_after::shown;

use crate::cli::prelude::*;

pub(super) use show::{show, show_in_redis};

/// Show a storage folder, and repair a crawl whose folder and Redis disagree.
///
/// Redis records the last committed batch of a crawl. The storage folder records the fingerprints
/// of all batches. At its start, `urlseen run` recovers the filter to the batch that Redis records.
/// If that is impossible, `urlseen run` prints the reason and names the command to use.
///
/// Examples:
/// ```text
/// urlseen storage show
/// urlseen storage adopt
/// ```
#[derive(Debug, clap::Subcommand)]
pub(super) enum StorageCommand {
    /// Print the contents of a storage folder: its filter, its snapshots and its log.
    ///
    /// The command changes nothing in the folder, so it can run while a daemon uses the folder. If
    /// a part of the folder is damaged, the exit status is 1. If the filter is in Redis, the
    /// command prints the state that Redis records for the crawl.
    ///
    /// Examples:
    /// ```text
    /// urlseen storage show
    /// urlseen storage show --storage backup
    /// ```
    Show {
        #[command(flatten)]
        folder: FolderOptions,
        /// Print the contents as JSON
        #[arg(long)]
        json: bool,
    },
    /// Keep the filter as it is, and let the crawl continue from the last batch that Redis records.
    ///
    /// The filter may lack fingerprints of batches that Redis records. If the crawl finds the URL
    /// of a missing fingerprint again, urlseen emits the URL again. The filter may also have
    /// fingerprints of batches that Redis lost. These fingerprints count as seen. If there is no
    /// storage folder, the command makes one with an empty filter. If Redis has no state of the
    /// crawl, the crawl continues from the last batch of the folder.
    ///
    /// If the log of the folder is damaged, the command says what the damage makes unusable, and
    /// asks before it gives that up. The damaged files stay in the folder, with damaged- before
    /// their names. With --storage, the command only ends a damaged log: no crawl may use the
    /// folder.
    ///
    /// Examples:
    /// ```text
    /// urlseen storage adopt
    /// urlseen storage adopt --storage seen --yes
    /// ```
    Adopt {
        #[command(flatten)]
        folder: FolderOptions,
        /// Give up what a damaged log makes unusable, without a question. Required for that if
        /// standard input is not a terminal
        #[arg(long)]
        yes: bool,
    },
    /// Convert a native filter into a filter of the kind two-choice, which grows and forgets.
    ///
    /// The configuration must have filter.kind = "two-choice". The new filter begins empty, over
    /// the native filter, which is frozen: its fingerprints stay seen, and new fingerprints go to
    /// the new filter. The error rates of both filters add up. The crawl continues where it
    /// stopped. The earlier folder stays beside the new one, with .native after its name. If the
    /// command is killed, run it again.
    ///
    /// With --rules, the filter goes on with the configured rules by which URLs are the same, and
    /// with the configured list of tracking parameters. URLs that the rules change pass once more,
    /// and all others stay seen. A native filter is converted only if the configuration has the
    /// kind two-choice.
    ///
    /// Examples:
    /// ```text
    /// urlseen storage convert
    /// urlseen storage convert --rules
    /// ```
    Convert {
        #[command(flatten)]
        settings: Settings,
        /// Go on with the configured rules by which URLs are the same
        #[arg(long)]
        rules: bool,
    },
    /// Count time after which URLs pass again, because urlseen could not count it.
    ///
    /// If the clocks of this machine and of Redis disagree at a start of urlseen, it warns, and the
    /// time since its last start does not count: URLs pass again later than usual. This command
    /// counts such a time. Nothing else may use the folder meanwhile. The time counts from the next
    /// start on. With 36d, all URLs that should pass again after 30d pass again at once.
    ///
    /// Examples:
    /// ```text
    /// urlseen storage catch-up 10d
    /// urlseen storage catch-up --storage seen 12h
    /// ```
    CatchUp {
        #[command(flatten)]
        folder: FolderOptions,
        /// The time, such as 10d, 12h or 90m
        #[arg(value_parser = humantime::parse_duration)]
        time: Duration,
    },
    /// Empty the filter, and let the crawl continue from the last batch that Redis records.
    ///
    /// After that, all items count as unseen. If the crawl finds them again, urlseen emits them
    /// again. If the filter is in a storage folder, the command also deletes the archive in this
    /// folder. If the filter is in Redis, the command empties it for all crawls that share it.
    ///
    /// Examples:
    /// ```text
    /// urlseen storage reset
    /// urlseen storage reset --yes
    /// ```
    Reset(ChangeArgs),
    /// Delete the filter of a crawl, and the state that Redis records for the crawl.
    ///
    /// If the filter is in a storage folder, the command deletes the filter, the snapshots, the log
    /// and the archive in this folder. The folder itself stays. If the filter is in Redis, the
    /// command deletes it there, for all crawls that share it.
    ///
    /// The lists of the source, the sink and the rejects stay. Items that the daemon claimed and
    /// did not commit go back to the source.
    ///
    /// Examples:
    /// ```text
    /// urlseen storage drop
    /// urlseen storage drop --yes
    /// ```
    Drop(ChangeArgs),
}

// Options of the commands that change the filters of all partitions. Each has its own help.
#[derive(Debug, clap::Args)]
pub(super) struct ChangeArgs {
    #[command(flatten)]
    settings: Settings,
    /// Do not ask for confirmation. Required if standard input is not a terminal
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(command: &StorageCommand) -> anyhow::Result<Outcome> {
    match command {
        StorageCommand::Show { folder, json } => {
            each_crawl(folder.locate_all()?, |config| match folder_of(&config) {
                Some(folder) => show(folder, *json),
                None => show_in_redis(&config, *json),
            })
        }
        StorageCommand::Adopt { folder, yes } => {
            if let Some(dir) = &folder.storage {
                return repair::end_damaged_log(dir, *yes);
            }
            let all = folder.settings.load_all()?;
            each_crawl(all, |config| Repair::new(config)?.adopt(*yes))
        }
        StorageCommand::Convert { settings, rules } => {
            let all = settings.load_all()?;
            if *rules {
                let done = each_crawl(all, |config| repair::convert_rules(&config))?;
                return delete_table(settings, done);
            }
            each_crawl(all, |config| repair::over_frozen(&config, None))
        }
        StorageCommand::CatchUp { folder, time } => {
            each_crawl(folder.locate_all()?, |config| match folder_of(&config) {
                Some(folder) => catch_up(folder, *time),
                None => Err(usage("fingerprints of a filter in Redis do not expire")),
            })
        }
        StorageCommand::Reset(args) => {
            change(args, "Empty the filters of all partitions?", Repair::reset)
        }
        StorageCommand::Drop(args) => {
            let question = "Delete the filters of all partitions, and their state in Redis?";
            change(args, question, Repair::drop)
        }
    }
}

/// Changes the filter of each partition. If there are several, asks once for all of them, unless
/// `--yes` is given.
fn change(
    ChangeArgs { settings, yes }: &ChangeArgs,
    question: &str,
    change: fn(Repair, bool) -> anyhow::Result<Outcome>,
) -> anyhow::Result<Outcome> {
    let all = settings.load_all()?;
    let has_others = all.len() > 1;
    if has_others && !confirmed(*yes, question, "nothing is changed")? {
        return Ok(Outcome::Done);
    }
    let done = each_crawl(all, |config| change(Repair::new(config)?, *yes || has_others))?;
    delete_table(settings, done)
}

/// Deletes the partition table after the filters of all partitions were emptied, so that the number
/// of partitions and the kind can change.
fn delete_table(settings: &Settings, done: Outcome) -> anyhow::Result<Outcome> {
    let crawl = settings.load_crawl()?;
    if done == Outcome::Done && crawl.partitions.count.get() > 1 && settings.partition.is_none() {
        let delete = Cmd::del(crawl.keys().record);
        runtime()?.block_on(async { start::connect(&crawl).await?.call(&delete).await })?;
    }
    Ok(done)
}

/// Adds a time to the one that has passed for the fingerprints in a folder.
fn catch_up(dir: &Path, time: Duration) -> anyhow::Result<Outcome> {
    let (at, mut folder) = (dir.display(), Folder::open(dir)?);
    let header = folder.header().map(|header| header.spec.filter.parameters.expire_after());
    let Some(Some(expire_after)) = header else {
        return Err(usage(format!("{at} holds no filter whose fingerprints expire")));
    };
    let Some(timing) = folder.notes.timing else {
        return Err(usage(format!("{at} was not used yet, so no time is missing")));
    };
    folder.note(|notes| notes.timing = Some(timing.later(time)))?;
    let (time, window) = (shown(time), expire_after.window());
    done(format_args!("{at}: {time} are counted; a URL passes again {window}"))
}
