//! `urlseen check`, which tests whether items have been seen, and `urlseen forget`, which lets them
//! pass again.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use urlseen_fingerprint::{Partition, PartitionCount};
use urlseen_redis::filter::ask::find_verdicts;

use crate::admin::printable::rows;
use crate::cli::prelude::*;
use crate::cli::view;

/// Test whether items have been seen, without adding them to the filter.
///
/// The command asks the daemon that uses the storage folder, through the socket in the folder. If
/// no daemon runs, the command reads the folder, up to the last batch in its log. If the filter is
/// in Redis, the command asks Redis.
///
/// An item has the form of the items in the source: a URL, a request in JSON or a fingerprint. For
/// each item, the command prints the verdict (seen, unseen, unfiltered, dropped or
/// unreadable), the fingerprint and the item, with tabs between them.
///
/// Examples:
/// ```text
/// urlseen check https://example.com/a
/// urlseen check --storage backup --json https://example.com/a
/// ```
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit status:
  0  all items have been seen
  1  at least one item is unseen, unfiltered, dropped or unreadable
  2  wrong use, or a configuration that is wrong or cannot be read
  3  a server or a file failed")]
pub(super) struct CheckArgs {
    #[command(flatten)]
    folder: FolderOptions,
    /// Print a JSON object for each item
    #[arg(long)]
    json: bool,
    /// An item. `-` stands for the lines of standard input
    #[arg(value_name = "ITEM", required = true)]
    items: Vec<OsString>,
}

pub(super) fn run(args: &CheckArgs) -> anyhow::Result<Outcome> {
    let configs = args.folder.locate_all()?;
    let options = Options { partition: Partition::default(), ..start::items(&configs[0]) };
    let mut filters = configs.iter().map(FilterAccess::of).collect::<anyhow::Result<Vec<_>>>()?;
    let count = PartitionCount::new(filters.len() as u64).expect("all partitions, or one");
    let (mut output, mut outcome) = (BufWriter::new(rows()), Outcome::Done);
    each_page(&args.items, |items| {
        let checked = view::by_partition(&items, &options, count, |partition, items| {
            filters[usize::from(partition.number())].check(items)
        })?;
        for (item, checked) in items.iter().zip(checked) {
            if !matches!(checked, Checked::Seen { .. }) {
                outcome = Outcome::BadInput;
            }
            if args.json {
                let row = CheckRow { item: ItemText::of(item), checked };
                write!(output, "{}", json_line(&row)?)?;
            } else {
                print(&mut output, item, &checked)?;
            }
            writeln!(output)?;
        }
        // A user at a terminal, or a program at a pipe, waits for this answer.
        Ok(output.flush()?)
    })?;
    Ok(outcome)
}

/// Passes the items of arguments to `take`. `-` stands for the pages of standard input.
fn each_page(
    arguments: &[OsString],
    mut take: impl FnMut(Vec<Vec<u8>>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for items in arguments.chunk_by(|one, next| (one == "-") == (next == "-")) {
        if items[0] != "-" {
            take(items.iter().map(|item| item.clone().into_vec()).collect())?;
            continue;
        }
        for page in input::lines(Vec::new()).pages {
            take(page?.items.iter().map(<[u8]>::to_vec).collect())?;
        }
    }
    Ok(())
}

/// Way to ask the filter: through a daemon, in a folder or in Redis.
pub(super) enum FilterAccess {
    /// Daemon that uses the folder.
    Running(Box<AdminClient>),
    /// Folder that no daemon uses.
    AtRest(Box<AtRest>),
    /// Redis server that has the filter.
    Redis(Box<Config>),
}

impl FilterAccess {
    /// Returns the way to ask the configured filter. For a folder, this is through its daemon.
    /// If no daemon runs, [`FilterAccess::check`] reads the folder itself.
    pub(super) fn of(config: &Config) -> anyhow::Result<Self> {
        if let Some(folder) = folder_of(config) {
            return Ok(Self::Running(Box::new(AdminClient::new(folder)?)));
        }
        Ok(Self::Redis(Box::new(config.clone())))
    }

    /// Tests items. Returns one result for each item, in order.
    pub(super) fn check(&mut self, items: &[Vec<u8>]) -> anyhow::Result<Vec<Checked>> {
        match self {
            Self::Running(client) => match runtime()?.block_on(client.check(items)) {
                Err(ClientError::NoDaemon { folder }) if folder.is_dir() => {
                    *self = Self::AtRest(Box::new(AtRest::open(&folder)?));
                    self.check(items)
                }
                other => Ok(other?),
            },
            Self::Redis(config) => view::check(items, &start::items(config), |fingerprints| {
                runtime()?.block_on(async {
                    let (mut link, opened) = find(config).await?;
                    Ok(find_verdicts(&mut link, &opened.filter, fingerprints).await?)
                })
            }),
            Self::AtRest(folder) => {
                let header = folder
                    .header()
                    .context("no daemon is running, and the storage folder is new: it is empty")?;
                let filter = &header.spec.filter;
                let form = ItemForm::Auto.into();
                let options = Options::new(form, filter.fingerprint.clone());
                let test =
                    |fingerprints: &[Fingerprint]| folder.verdicts(fingerprints, Target::Last);
                Ok(view::check(items, &options, test)?)
            }
        }
    }
}

/// Item with its verdict, as `--json` prints it.
#[derive(Serialize)]
struct CheckRow {
    item: ItemText,
    #[serde(flatten)]
    checked: Checked,
}

fn print(output: &mut impl Write, item: &[u8], checked: &Checked) -> io::Result<()> {
    let (verdict, fingerprint) = match checked {
        Checked::Seen { fingerprint } => ("seen", fingerprint.as_str()),
        Checked::Unseen { fingerprint } => ("unseen", fingerprint.as_str()),
        Checked::Unfiltered => ("unfiltered", "-"),
        Checked::Dropped { .. } => ("dropped", "-"),
        Checked::Unreadable { reason } => {
            say(format_args!("urlseen: {}: {reason}", printable(item, None)));
            ("unreadable", "-")
        }
    };
    let fingerprint = printable(fingerprint.as_bytes(), None);
    write!(output, "{verdict}\t{fingerprint}\t")?;
    output.write_all(item)
}

/// Maximum number of items in one command to the server.
const AT_ONCE: usize = 1000;

/// Let seen items pass again, for example pages that failed to load.
///
/// The command pushes the items to the list `forget.key`. The daemon reads the list at once, or at
/// its next start. With `source.kind = "none"`, the command sends the items to the daemon at
/// `serve.listen`. An item is a URL, a request in JSON or a fingerprint, as in the source. The next
/// occurrence of a forgotten item passes. After that, the item counts as seen again. The command
/// has no effect on unseen items.
///
/// Examples:
/// ```text
/// urlseen forget https://example.com/a
/// urlseen forget --config news.toml -  # reads lines from standard input
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct ForgetArgs {
    #[command(flatten)]
    settings: Settings,
    /// An item. `-` stands for the lines of standard input
    #[arg(value_name = "ITEM", required = true)]
    items: Vec<OsString>,
}

pub(super) fn forget(args: &ForgetArgs) -> anyhow::Result<Outcome> {
    let config = args.settings.load_crawl()?;
    refuse_if!(
        config.filter.place == FilterPlace::Redis,
        "a filter in Redis cannot forget items. Only a filter with filter.place = \"local\" can"
    );
    let parts = args.settings.crawls_of(&config)?;
    let (mut reader, mut outcome) = (start::forgets(&config), Outcome::Done);
    let mut accepted = vec![0; parts.len()];
    each_page(&args.items, |items| {
        let mut taken = vec![Vec::new(); parts.len()];
        for item in items {
            let owner = reader.read(&item).map(|it| owner_of(&it.identity, &config, &parts));
            let reason = match owner {
                Ok(Some(part)) => {
                    taken[part].push(item);
                    continue;
                }
                Ok(None) => {
                    "the item belongs to another partition than the one in --partition".to_owned()
                }
                Err(reason) => reason.to_string(),
            };
            say(format_args!("urlseen: {}: {reason}", printable(&item, None)));
            outcome = Outcome::BadInput;
        }
        for ((part, items), accepted) in parts.iter().zip(taken).zip(&mut accepted) {
            for items in items.chunks(AT_ONCE) {
                *accepted += runtime()?.block_on(hand_in(part, items))?;
            }
        }
        Ok(())
    })?;
    let mut out = stdout();
    for (part, &count) in parts.iter().zip(&accepted) {
        if part.source.kind == SourceKind::None {
            writeln!(out, "{count} fingerprints pass again")?;
        } else if parts.len() == 1 || count > 0 {
            writeln!(out, "{count} items were pushed to the list {}", part.forget.key)?;
        }
    }
    Ok(outcome)
}

/// Returns the index of the part that has an item with this identity. An item without a fingerprint
/// goes to the first one. Returns `None` if the user named another partition.
fn owner_of(identity: &Identity, crawl: &Config, parts: &[Config]) -> Option<usize> {
    let Identity::Fingerprint(fingerprint) = identity else { return Some(0) };
    let owner = crawl.partitions.count.of(fingerprint);
    parts.iter().position(|part| part.partition == owner)
}

/// Pushes items to the forget list, or sends them to the daemon at `serve.listen`. Returns the
/// number of items that the server accepted.
async fn hand_in(config: &Config, items: &[Vec<u8>]) -> anyhow::Result<usize> {
    if config.source.kind != SourceKind::None {
        connect(config).await?.call(cmd("RPUSH").arg(&config.forget.key).arg(items)).await?;
        return Ok(items.len());
    }
    let address = config.serve.listen.as_ref().expect("without a source the daemon serves clients");
    let password = config.serve_password.as_ref().map(|it| it.reveal().to_owned());
    let asked = async {
        let server = RedisAddress::parse(&format!("redis://{address}"))?.with_password(password);
        let mut link = urlseen_redis::connect::connect(&server).await?;
        anyhow::Ok(link.query(cmd("SREM").arg(&config.serve.keys[0]).arg(items)).await?)
    };
    asked.await.with_context(|| {
        format!("cannot ask the daemon at serve.listen = \"{address}\": check that it runs")
    })
}
