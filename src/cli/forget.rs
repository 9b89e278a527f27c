//! `urlseen forget`: lets items pass again.

use std::ffi::OsString;
use std::io::Write;

use crate::admin::printable::{printable, say, stdout};
use anyhow::{Context as _, anyhow};
use redis::{Cmd, cmd};
use urlseen_engine::config::{Config, FilterPlace, SourceKind};
use urlseen_engine::item::{Identity, Reader};

use super::check::each_page;
use super::context::{connect, runtime};
use super::settings::Settings;
use super::{Outcome, start};

/// Maximum number of items in one command to the server.
const AT_ONCE: usize = 1000;

/// Let seen items pass again, for example pages that failed to load.
///
/// The command pushes the items to the list `forget.key`. The daemon reads the list at once, or at
/// its next start. With `source.kind = "none"`, the command sends the items to the daemon at
/// `serve.listen`. An item is a URL, a request in JSON or a fingerprint, as in the source. The next
/// occurrence of a forgotten item passes. After that, the item counts as seen again. The command
/// has no effect on unseen items.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  urlseen forget https://example.com/a
  urlseen forget --config news.toml -  # reads lines from standard input")]
pub(super) struct ForgetArgs {
    #[command(flatten)]
    settings: Settings,
    /// An item. `-` stands for the lines of standard input
    #[arg(value_name = "ITEM", required = true)]
    items: Vec<OsString>,
}

pub(super) fn run(args: &ForgetArgs) -> anyhow::Result<Outcome> {
    let config = args.settings.load_crawl()?;
    if config.filter.place == FilterPlace::Redis {
        let reason = "a filter in Redis cannot forget items. Only a filter with filter.place = \
                      \"local\" can";
        return Err(start::usage(reason));
    }
    let mut parts = Vec::new();
    for partition in args.settings.partitions_of(&config)? {
        parts.push(Part { config: partition, items: Vec::new(), accepted: 0 });
    }
    let (mut reader, mut outcome) = (Reader::new(start::forgets(&config)), Outcome::Done);
    let mut take = |item: Vec<u8>| -> anyhow::Result<()> {
        let owner = reader.read(&item).map(|it| owner_of(&it.identity, &config, &mut parts));
        match owner {
            Ok(Some(part)) => part.take(item)?,
            Ok(None) => {
                let words = "the item belongs to another partition than the one in --partition";
                say(format_args!("urlseen: {}: {words}", printable(&item, None)));
                outcome = Outcome::BadInput;
            }
            Err(reason) => {
                say(format_args!("urlseen: {}: {reason}", printable(&item, None)));
                outcome = Outcome::BadInput;
            }
        }
        Ok(())
    };
    each_page(&args.items, |items| items.into_iter().try_for_each(&mut take))?;
    let mut out = stdout();
    let has_one = parts.len() == 1;
    for part in &mut parts {
        part.hand_in()?;
        let (config, count) = (&part.config, part.accepted);
        if config.source.kind == SourceKind::None {
            writeln!(out, "{count} fingerprints pass again")?;
        } else if has_one || count > 0 {
            writeln!(out, "{count} items were pushed to the list {}", config.forget.key)?;
        }
    }
    Ok(outcome)
}

/// Partition of the crawl, with the items that it is to forget.
struct Part {
    config: Config,
    /// Items that the server does not have yet.
    items: Vec<Vec<u8>>,
    /// Number of items that the server has accepted.
    accepted: usize,
}

impl Part {
    fn take(&mut self, item: Vec<u8>) -> anyhow::Result<()> {
        self.items.push(item);
        if self.items.len() < AT_ONCE { Ok(()) } else { self.hand_in() }
    }

    fn hand_in(&mut self) -> anyhow::Result<()> {
        let items = std::mem::take(&mut self.items);
        if !items.is_empty() {
            self.accepted += runtime()?.block_on(hand_in(&self.config, &items))?;
        }
        Ok(())
    }
}

/// Returns the part that has an item with this identity. An item without a fingerprint goes to the
/// first one. Returns `None` if the user named another partition.
fn owner_of<'a>(
    identity: &Identity,
    crawl: &Config,
    parts: &'a mut [Part],
) -> Option<&'a mut Part> {
    let Identity::Fingerprint(fingerprint) = identity else { return parts.first_mut() };
    let owner = crawl.partitions.count.of(fingerprint);
    parts.iter_mut().find(|part| part.config.partition == owner)
}

/// Pushes items to the forget list, or sends them to the daemon at `serve.listen`. Returns the
/// number of items that the server accepted.
async fn hand_in(config: &Config, items: &[Vec<u8>]) -> anyhow::Result<usize> {
    if config.source.kind != SourceKind::None {
        let mut link = connect(config).await?;
        let mut push = cmd("RPUSH");
        push.arg(&config.forget.key).arg(items);
        link.call(&push).await?;
        return Ok(items.len());
    }
    ask(config, cmd("SREM").arg(&config.serve.keys[0]).arg(items)).await
}

/// Sends a command to the daemon at `serve.listen`.
async fn ask(config: &Config, command: &Cmd) -> anyhow::Result<usize> {
    let address = config.serve.listen.as_ref().expect("without a source the daemon serves clients");
    let asked = async {
        let client = redis::Client::open(format!("redis://{address}"))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        if let Some(password) = &config.serve_password {
            let _: () = cmd("AUTH").arg(password.reveal()).query_async(&mut connection).await?;
        }
        command.query_async(&mut connection).await
    };
    let answer: redis::RedisResult<usize> = asked.await;
    answer.map_err(|error| anyhow!(error)).with_context(|| {
        format!("cannot ask the daemon at serve.listen = \"{address}\": check that it runs")
    })
}
