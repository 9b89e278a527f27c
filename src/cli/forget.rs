//! `urlseen forget`: lets items pass again.

use std::ffi::OsString;
use std::io::Write;

use crate::admin::printable::{printable, say, stdout};
use anyhow::Context as _;
use redis::cmd;
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
    let parts = args.settings.partitions_of(&config)?;
    let (mut reader, mut outcome) = (Reader::new(start::forgets(&config)), Outcome::Done);
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
    let asked = async {
        let client = redis::Client::open(format!("redis://{address}"))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        if let Some(password) = &config.serve_password {
            let _: () = cmd("AUTH").arg(password.reveal()).query_async(&mut connection).await?;
        }
        let mut forget = cmd("SREM");
        forget.arg(&config.serve.keys[0]).arg(items).query_async(&mut connection).await
    };
    let answer: redis::RedisResult<usize> = asked.await;
    answer.with_context(|| {
        format!("cannot ask the daemon at serve.listen = \"{address}\": check that it runs")
    })
}
