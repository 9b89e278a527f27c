//! `urlseen forget`: lets items pass again.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;

use crate::admin::printable::{printable, say, stdout};
use anyhow::{Context as _, anyhow};
use redis::{Cmd, cmd};
use urlseen_engine::config::{Config, FilterPlace, SourceKind};
use urlseen_engine::flow::input;
use urlseen_engine::item::Reader;

use super::context::Context;
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
    let context = Context::load(&args.settings)?;
    let config = &context.config;
    if config.filter.place == FilterPlace::Redis {
        let reason = "a filter in Redis cannot forget items. Only a filter with filter.place = \
                      \"local\" can";
        return Err(start::usage(reason));
    }
    let (mut reader, mut count, mut outcome) =
        (Reader::new(start::forgets(config)), 0, Outcome::Done);
    let mut good = Vec::new();
    let mut take = |item: Vec<u8>| -> anyhow::Result<()> {
        match reader.read(&item) {
            Ok(_) => good.push(item),
            Err(reason) => {
                say(format_args!("urlseen: {}: {reason}", printable(&item, None)));
                outcome = Outcome::BadInput;
            }
        }
        if good.len() >= AT_ONCE {
            count += context.runtime.block_on(hand_in(&context, &std::mem::take(&mut good)))?;
        }
        Ok(())
    };
    for item in &args.items {
        if item != "-" {
            take(item.clone().into_vec())?;
            continue;
        }
        for page in input::lines(Vec::new()).pages {
            page?.items.iter().try_for_each(|line| take(line.to_vec()))?;
        }
    }
    if !good.is_empty() {
        count += context.runtime.block_on(hand_in(&context, &good))?;
    }
    let mut out = stdout();
    if config.source.kind == SourceKind::None {
        writeln!(out, "{count} fingerprints pass again")?;
    } else {
        writeln!(out, "{count} items were pushed to the list {}", config.forget.key)?;
    }
    Ok(outcome)
}

/// Pushes items to the forget list, or sends them to the daemon at `serve.listen`. Returns the
/// number of items that the server accepted.
async fn hand_in(context: &Context, items: &[Vec<u8>]) -> anyhow::Result<usize> {
    let config = &context.config;
    if config.source.kind != SourceKind::None {
        let mut link = context.connect().await?;
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
