//! State of a crawl whose filter is in Redis, as a table or as JSON.

use std::io::Write;

use crate::admin::printable::{json_text, stdout};
use crate::crawl::protocol::Protocol;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::json;
use urlseen_core::redis_filter::opening;
use urlseen_engine::config::Config;

use super::super::Outcome;
use super::super::context::{find, runtime};
use super::super::rows::{CRAWL, Rows};
use super::super::status::{about_rate, lost};

/// Prints the state of a crawl in Redis.
pub(in crate::cli) fn show(config: &Config, as_json: bool) -> anyhow::Result<Outcome> {
    let (opened, estimate, (head, holder), lists) = runtime()?.block_on(async {
        let (mut link, opened) = find(config, &config.redis_filter()?).await?;
        let estimate = opening::estimate(&mut link, &opened.filter).await?;
        let protocol = Protocol::new(config);
        let place = protocol.place(link.call(&protocol.look()).await?)?;
        let mut lists = [0; 4];
        for (length, ask) in lists.iter_mut().zip(protocol.lengths()) {
            *length = protocol.length(link.call(&ask).await?)?;
        }
        anyhow::Ok((opened, estimate, place, lists))
    })?;
    let (filter, bytes) = (&config.filter, opened.bytes());
    let (keys, error_rate) = (estimate.keys, estimate.error_rate);
    let lost_urls = config.filter_spec()?.parameters.lost_urls(keys).ok();
    let [source, processing, sink, rejected] = lists;
    if as_json {
        let status = json!({
            "crawl": config.crawl.name,
            "redis": config.redis.url.to_string(),
            "head": head,
            "holder": holder,
            "lists": {
                "source": source, "processing": processing, "sink": sink, "rejected": rejected,
            },
            "filter": {
                "id": opened.definition.id.to_string(), "key": filter.key,
                "kind": filter.kind.name(), "keys": keys, "capacity": filter.capacity,
                "error_rate": error_rate, "lost_urls": lost_urls, "bytes": bytes,
            },
        });
        writeln!(stdout(), "{}", json_text(&format!("{status:#}")))?;
        return Ok(Outcome::Done);
    }
    let mut rows = Rows::new(stdout(), CRAWL);
    rows.row("crawl", &config.crawl.name)?;
    rows.row("redis", &config.redis.url)?;
    rows.row("batch", head.map_or_else(|| "none was committed".to_owned(), |it| it.to_string()))?;
    rows.row("run by", holder.map_or_else(|| "no daemon".to_owned(), |it| it.to_string()))?;
    for (name, length) in
        [("source", source), ("processing", processing), ("sink", sink), ("rejects", rejected)]
    {
        rows.row(name, format!("{:>15}", HumanCount(length).to_string()))?;
    }
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
    lost(&mut rows, lost_urls)?;
    Ok(Outcome::Done)
}
