//! Transfers of fingerprints from and to other projects. A filter of RedisBloom can be in a dump
//! file or on a server with the module RedisBloom. Its transfer needs memory for the filter and one
//! chunk. A set of scrapy-redis is on a Redis server. Its transfer needs memory for one page.

use redis::Value;
use urlseen_filter::redisbloom::{Chunk, Filter, Loader, dump};
use urlseen_redis::connect::connect;
use urlseen_storage::RecoveryError;

use crate::analysis::REDISBLOOM_TYPE;
use crate::cli::prelude::*;

/// Reads the filter in a storage folder, which has the kind redisbloom.
pub(super) fn of_folder(folder: &AtRest) -> anyhow::Result<Filter> {
    let parameters = &folder.header().ok_or(RecoveryError::Fresh)?.spec.filter.parameters;
    let filter = Filter::build(parameters.reservation());
    let mut filter = filter.map_err(|error| RecoveryError::Io(io::Error::other(error)))?;
    folder.read(Target::Last, |_| true, &mut filter)?;
    Ok(filter)
}

/// Reads a filter from the file at `path`. Refuses a filter whose layers take more than `limit`
/// bytes.
pub(super) fn read(path: &Path, limit: u64, bar: &Bar) -> anyhow::Result<Filter> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(name)?;
    // A pipe reports the length 0, so the bar shows no total.
    let all = file.metadata().with_context(name)?.len();
    dump::read(&mut bar.reading(file, all), limit).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => anyhow!("{}, {error}", path.display()),
        _ => anyhow!(error).context(name()),
    })
}

/// Writes a filter to a new file at `path`, and syncs the file. Removes the file after a failure.
pub(super) fn write(path: &Path, filter: &Filter, bar: &Bar) -> anyhow::Result<()> {
    let name = || path.display().to_string();
    let file = File::create_new(path).with_context(name)?;
    let mut writer = BufWriter::new(bar.writing(&file, dump::len(filter)));
    let written = dump::write(filter, &mut writer).and_then(|()| writer.flush());
    let written = written.and_then(|()| file.sync_all()).inspect_err(|_| {
        // This function has created the file. The caller gets the first error, so an error of the
        // removal is ignored.
        let _ = std::fs::remove_file(path);
    });
    written.with_context(name)
}

const SCANDUMP: &str = "BF.SCANDUMP";
const LOADCHUNK: &str = "BF.LOADCHUNK";

/// Key on a server, with fingerprints of another project.
pub(super) struct ForeignKey<'a> {
    pub(super) address: &'a RedisAddress,
    pub(super) key: &'a str,
}

impl ForeignKey<'_> {
    /// Connects to the server. Returns the type of the key, as the command `TYPE` names it.
    async fn connect(&self) -> Result<(Link, String), LinkError> {
        let mut link = connect(&self.address.for_key(self.key)).await?;
        let found = link.query(cmd("TYPE").arg(self.key)).await?;
        Ok((link, found))
    }

    /// Connects to the server, and checks that the key there has one of these types. A missing key
    /// has the type `none`.
    ///
    /// # Errors
    /// Fails if Redis fails, or if the key has another type.
    pub(super) async fn open(&self, allowed: &[&str], what: &str) -> anyhow::Result<Link> {
        let Self { address, key } = self;
        match self.connect().await? {
            (link, found) if allowed.contains(&&*found) => Ok(link),
            (_, found) if found == "none" => {
                bail!("there is no key {key} at {address}; check redis.url and the database in it")
            }
            (_, found) => {
                bail!("the key {key} holds a {found}, and {what} was expected: use another key")
            }
        }
    }

    /// Reads the filter at the key. Refuses a filter whose layers take more than `limit` bytes.
    pub(super) async fn dump(&self, limit: u64, bar: &Bar) -> anyhow::Result<Filter> {
        let key = self.key;
        let mut link = self.open(&[REDISBLOOM_TYPE], "a filter of RedisBloom (MBbloom--)").await?;
        let bad = |problem| anyhow!("the dump of {key}: {problem}");
        let (mut iterator, header) = self.chunk(&mut link, 0).await?;
        let mut loader = Loader::new(iterator, &header, limit).map_err(bad)?;
        let (mut done, all) = (0, loader.bytes());
        loop {
            let (next, data) = self.chunk(&mut link, iterator).await?;
            if next == 0 {
                break;
            }
            loader.load(next, &data).map_err(bad)?;
            iterator = next;
            done += data.len() as u64;
            bar.show(done, all);
        }
        let (_, last) = self.chunk(&mut link, 0).await?;
        if last != header {
            bail!(
                "another program changed the filter {key} during the dump: stop the programs that \
                 add to the filter, and repeat the command"
            );
        }
        loader.finish().map_err(bad)
    }

    /// Loads the filter into the key, which must not exist.
    pub(super) async fn load(&self, filter: &Filter, bar: &Bar) -> anyhow::Result<()> {
        let key = self.key;
        let (mut link, found) = self.connect().await?;
        if found != "none" {
            bail!(
                "the key {key} already exists (type {found}) and stays unchanged: use another key, \
                 or delete it first"
            );
        }
        // This command only tests whether the server has the module. It is short, because a server
        // without the module repeats the unknown command in its error.
        match link.call(cmd(SCANDUMP).arg(key).arg(0)).await {
            Ok(_) | Err(LinkError::Refused { .. }) => {}
            Err(trouble) => return Err(self.named(trouble, SCANDUMP)),
        }
        let (mut done, all) = (0, filter.bytes());
        let mut header = Vec::new();
        for Chunk { iterator, data } in filter.chunks() {
            let is_first = header.is_empty();
            match link.call(cmd(LOADCHUNK).arg(key).arg(iterator).arg(&*data)).await {
                Ok(_) if is_first => header = data.into_owned(),
                Ok(_) => {
                    done += data.len() as u64;
                    bar.show(done, all);
                }
                Err(why) => {
                    // The server may have executed the command in spite of such an error.
                    let is_unknown =
                        matches!(why, LinkError::LostConnection { .. } | LinkError::Garbled { .. });
                    let left = if is_first && !is_unknown {
                        // The key did not exist before, and a refused first chunk does not create
                        // it.
                        return Err(self.named(why, LOADCHUNK));
                    } else if is_first {
                        format!(
                            "the key {key} may be incomplete: if it exists, delete it (DEL), and \
                             repeat the command"
                        )
                    } else if self.remove().await.is_ok() {
                        format!("the key {key} was removed again")
                    } else {
                        format!(
                            "the key {key} is incomplete and answers wrongly: delete it (DEL), and \
                             repeat the command"
                        )
                    };
                    bail!("{why}. {done} of {all} bytes of the filter had been loaded; {left}");
                }
            }
        }
        let (_, found) = self.chunk(&mut link, 0).await?;
        if found != header {
            bail!(
                "the server loaded the filter, but {key} differs from it: another client writes to \
                 the key. The key stays as it is: delete it (DEL), and repeat the command"
            );
        }
        Ok(())
    }

    /// Removes the key, which the load has created, over a new connection.
    async fn remove(&self) -> Result<Value, LinkError> {
        connect(&self.address.for_key(self.key)).await?.call(cmd("UNLINK").arg(self.key)).await
    }

    /// Returns the reply to `BF.SCANDUMP`.
    async fn chunk(&self, link: &mut Link, iterator: i64) -> anyhow::Result<(i64, Vec<u8>)> {
        let reply = link.call(cmd(SCANDUMP).arg(self.key).arg(iterator)).await;
        let reply = reply.map_err(|trouble| self.named(trouble, SCANDUMP))?;
        let cause = format!("the answer to {SCANDUMP} is invalid");
        redis::from_redis_value(reply).map_err(|_| LinkError::Garbled { cause }.into())
    }

    /// Replaces the error for an unknown command: the new error says that the module is missing.
    fn named(&self, trouble: LinkError, command: &str) -> anyhow::Error {
        match trouble {
            LinkError::UnknownCommand { .. } => anyhow!(
                "Redis at {} does not know {command}: it has no RedisBloom. Load the module \
                 (loadmodule in redis.conf; Redis 8 and Redis Stack have it), or check redis.url",
                self.address
            ),
            other => other.into(),
        }
    }
}

/// Maximum number of requests of a sample.
const SAMPLED: usize = 1000;

/// Reads the first requests of an input.
pub(super) fn sampled(
    input: Input,
    config: &Config,
) -> anyhow::Result<Vec<urlseen_engine::item::OwnedRequest>> {
    let items = Options::new(ItemForm::Auto.into(), Algorithm::Scrapy);
    let requests = crate::analysis::requests(input, items, start::crawl(config), None)?;
    Ok(requests.take(SAMPLED).collect::<Result<_, _>>()?)
}

/// Checks that the set at `key` has the sampled URLs by the configured algorithm and form.
///
/// # Errors
/// Fails if Redis fails, if the set has none of the URLs, or if another pair fits better.
pub(super) fn check_sample(config: &Config, key: &str, input: Input) -> anyhow::Result<()> {
    let requests = sampled(input, config)?;
    let set = ForeignKey { address: &config.redis.url, key };
    let sample = runtime()?.block_on(async {
        let mut link = set.open(&["set"], "a set").await?;
        SampleFit::of(&mut link, key, &requests, &config.fingerprint_spec()).await
    })?;
    refuse_if!(
        sample.best().is_none(),
        "the set {key} has none of {} sampled URLs by any algorithm and canonical form: the URLs \
         are of another crawl, or its dupefilter computes fingerprints of its own",
        requests.len()
    );
    let words = sample.words();
    if let Some(remedy) = sample.remedy() {
        return Err(usage(format!("{words}, {remedy}")));
    }
    say(format!("urlseen: {words}"));
    Ok(())
}
