//! Contents of a storage folder, or the state of a crawl whose filter is in Redis, as a table or as
//! JSON.

use std::time::UNIX_EPOCH;

use urlseen_fingerprint::same::TrackingList;
use urlseen_redis::protocol::value;
use urlseen_storage::{ArchiveState, Look, SegmentLook, Snapshot, look};

use crate::cli::prelude::*;
use crate::cli::status::{about_rate, lost};
use crate::report::Lists;

/// Prints the contents of a folder.
pub(in crate::cli) fn show(dir: &Path, as_json: bool) -> anyhow::Result<Outcome> {
    anyhow::ensure!(dir.is_dir(), "there is no storage folder {}", dir.display());
    let look = look(dir)?;
    let json = as_json.then(|| format!("{:#}", to_json(&look)));
    answer(json, |out| print(&look, dir, out))?;
    // While a daemon uses the folder, damage is not an error: the daemon may still be writing the
    // last record of the log.
    let is_whole = look.damages.is_empty() || look.is_held;
    Ok(if is_whole { Outcome::Done } else { Outcome::BadInput })
}

fn print(look: &Look, dir: &Path, out: impl Write) -> io::Result<()> {
    let Look { header, is_held, holder, snapshots, segments, archive, last, bytes, damages } = look;
    let mut rows = Rows::new(out, [11, 0]);
    rows.row("folder", format!("{}, {}", dir.display(), BinaryBytes(*bytes)))?;
    match (is_held, holder) {
        (true, Some(holder)) => rows.row("in use by", holder)?,
        (true, None) => rows.row("in use by", "an unknown process")?,
        (false, _) => rows.row("in use by", "no process")?,
    }
    let Some(header) = header else { return rows.row("filter", "none: the folder is new") };
    let StorageSpec { crawl, filter } = &header.spec;
    let FilterSpec { parameters, fingerprint } = filter;
    let FingerprintSpec { algorithm, canonical, keep_fragments, drop_tracking, same } = fingerprint;
    rows.row("crawl", crawl)?;
    let id = header.filter;
    rows.row("filter", format!("{id}, {}", settings::described(parameters)))?;
    let fragments = if *keep_fragments { "kept" } else { "dropped" };
    let computed = format!("by the algorithm {algorithm}, {canonical}, fragments {fragments}");
    rows.row("computed", computed)?;
    if *drop_tracking != TrackingList::None {
        rows.row("tracking", format!("parameters of the list {drop_tracking} are dropped"))?;
    }
    if !same.is_empty() {
        rows.row("same", same)?;
    }
    for snapshot in snapshots {
        let Snapshot { name, bytes, last, finished, .. } = snapshot;
        let keys = HumanCount(snapshot.keys());
        let (size, time) = (BinaryBytes(*bytes), time(*finished));
        rows.row("snapshot", format!("{name}: {size}, fingerprints: {keys}, {last}, {time}"))?;
    }
    for SegmentLook { name, bytes, records, fingerprints, last, .. } in segments {
        let (size, keys) = (BinaryBytes(*bytes), HumanCount(*fingerprints));
        let records = HumanCount(*records);
        let text = format!("{name}: {size}, fingerprints: {keys}, records: {records}, {last}");
        rows.row("log", text)?;
    }
    let ArchiveState { is_on, parts, bytes, lacks_before } = archive;
    if *is_on || *parts > 0 {
        let size = BinaryBytes(*bytes);
        let extent = match lacks_before {
            None => "with the log it is complete".to_owned(),
            Some(from) => format!("it lacks fingerprints from before {from}"),
        };
        let ended = if *is_on { "" } else { "; storage.archive is false now" };
        let text = format!("{parts} files: {size}; {extent}{ended}");
        rows.row("archive", text)?;
    }
    match last {
        Some(last) => rows.row("ends at", last)?,
        None => rows.row("ends at", "unknown: no record is readable")?,
    }
    damages.iter().try_for_each(|damage| rows.row("damaged", damage))
}

fn to_json(look: &Look) -> Value {
    let Look { header, is_held, holder, snapshots, segments, archive, last, bytes, damages } = look;
    let header = header.as_ref().map(|header| {
        let StorageSpec { crawl, filter } = &header.spec;
        let parameters = &filter.parameters;
        let mut shown = json!({
            "crawl": crawl,
            "filter": header.filter.to_string(),
            "kind": filter.kind().name(),
            "capacity": parameters.capacity(),
            "error_rate": parameters.field::<f64>("filter.error_rate"),
            "bytes": parameters.bytes(),
            "imported": parameters.is_imported(),
            "algorithm": filter.fingerprint.algorithm.name(),
            "canonical": filter.fingerprint.canonical.name(),
            "keep_fragments": filter.fingerprint.keep_fragments,
            "drop_tracking": filter.fingerprint.drop_tracking.name(),
            "same": filter.fingerprint.same,
        });
        for (name, number) in parameters.figures() {
            shown[name] = json!(number);
        }
        shown
    });
    let snapshot = |it: &Snapshot| {
        json!({
            "name": it.name, "bytes": it.bytes, "keys": it.keys(), "first": it.first,
            "last": it.last, "begun": time(it.begun), "finished": time(it.finished),
        })
    };
    json!({
        "header": header,
        "bytes": bytes,
        "in_use": is_held,
        "holder": holder,
        "snapshots": snapshots.iter().map(snapshot).collect::<Vec<_>>(),
        "log": segments,
        "archive": archive,
        "last": last,
        "damages": damages.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// Formats a time by RFC 3339.
fn time(milliseconds: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(milliseconds);
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Prints the state of a crawl in Redis.
pub(in crate::cli) fn show_in_redis(config: &Config, as_json: bool) -> anyhow::Result<Outcome> {
    let (opened, estimate, (head, holder), lists) = runtime()?.block_on(async {
        let (mut link, opened) = find(config).await?;
        let estimate = opening::estimate(&mut link, &opened.filter).await?;
        let protocol = config.protocol();
        let place = protocol.look(&mut link).await?;
        let mut lengths = [None; 4];
        for (length, ask) in lengths.iter_mut().zip(protocol.lengths()) {
            *length = Some(value("a length", link.call(&ask).await?)?);
        }
        let [source, processing, sink, rejected] = lengths;
        let lists = Lists { source, processing, sink, rejected, age_seconds: None };
        anyhow::Ok((opened, estimate, place, lists))
    })?;
    let (filter, bytes) = (&config.filter, opened.bytes());
    let (keys, error_rate) = (estimate.keys, estimate.error_rate);
    let lost_urls = config.filter_spec()?.parameters.lost_urls(keys).ok();
    let state = json!({
        "crawl": config.crawl.name,
        "redis": config.redis.url.to_string(),
        "head": head,
        "holder": holder,
        "lists": lists,
        "filter": {
            "id": opened.definition.id.to_string(), "key": filter.key,
            "kind": filter.kind.name(), "keys": keys, "capacity": filter.capacity,
            "error_rate": error_rate, "lost_urls": lost_urls, "bytes": bytes,
        },
    });
    answer(as_json.then(|| format!("{state:#}")), |out| {
        let mut rows = Rows::new(out, CRAWL);
        rows.row("crawl", &config.crawl.name)?;
        rows.row("redis", &config.redis.url)?;
        rows.row(
            "batch",
            head.map_or_else(|| "none was committed".to_owned(), |it| it.to_string()),
        )?;
        rows.row("run by", holder.map_or_else(|| "no daemon".to_owned(), |it| it.to_string()))?;
        status::lists(&mut rows, &lists)?;
        let share = 100.0 * keys as f64 / filter.capacity as f64;
        let (number, size) = if opened.definition.spec.parameters.is_exact() {
            (HumanCount(keys).to_string(), "exact".to_owned())
        } else {
            let size = format!(
                "{share:.1} % of {}; error rate now {}; up to {}",
                HumanCount(filter.capacity),
                about_rate(error_rate),
                BinaryBytes(bytes)
            );
            (format!("about {}", HumanCount(keys)), size)
        };
        let (kind, key) = (filter.kind.name(), &filter.key);
        rows.number("filter", number, format!("fingerprints, {size}; {kind} at {key}"))?;
        lost(&mut rows, lost_urls)
    })
}
