//! `urlseen limits list`: the groups with items over a limit, or these items.

use std::collections::BTreeMap;
use std::io::Write;

use indicatif::HumanCount;
use serde::Serialize;

use super::super::Outcome;
use super::{OverLimitList, Wanted, each, told_of};
use crate::admin::ItemText;
use crate::admin::printable::{json_line, printable, say, stdout};
use crate::crawl::over_limit::OverLimitReason;

/// Group with items on the over-limit list.
#[derive(Serialize)]
struct Group {
    limit: String,
    group: String,
    items: u64,
    /// One of the items, as received.
    example: ItemText,
}

/// Item on the over-limit list.
#[derive(Serialize)]
struct Listed {
    fingerprint: String,
    #[serde(flatten)]
    reason: OverLimitReason,
    item: ItemText,
}

/// Prints the groups with items over a limit, those with most items first.
pub(super) async fn groups(
    mut list: OverLimitList,
    wanted: &Wanted,
    most: usize,
    json: bool,
) -> anyhow::Result<Outcome> {
    let mut found = BTreeMap::<_, (u64, Vec<u8>)>::new();
    let foreign = each(&mut list, wanted, async |_, items| {
        for (_, item) in items {
            let OverLimitReason { limit, group, .. } = item.reason;
            let (items, example) = found.entry((limit, group)).or_default();
            (*items, *example) = (*items + 1, item.item);
        }
        Ok(())
    })
    .await?;
    let mut groups: Vec<_> = found.into_iter().collect();
    groups.sort_by_key(|(_, (items, _))| std::cmp::Reverse(*items));
    let hidden = if most == 0 { 0 } else { groups.len().saturating_sub(most) };
    groups.truncate(groups.len() - hidden);
    let mut out = stdout();
    if !json {
        writeln!(out, "{:>12}  {:<24}  group, with an example", "items", "limit")?;
    }
    for ((limit, group), (items, example)) in groups {
        let line = if json {
            json_line(&Group { limit, group, items, example: ItemText::of(&example) })?
        } else {
            let limit = printable(limit.as_bytes(), None);
            let group = printable(group.as_bytes(), None);
            let example = printable(&example, None);
            let items = HumanCount(items).to_string();
            format!("{items:>12}  {limit:<24}  {group}  {example}")
        };
        writeln!(out, "{line}")?;
    }
    if hidden > 0 {
        say(format_args!("{hidden} groups with fewer items are not shown; --most 0 shows all"));
    }
    Ok(told_of(foreign, &list))
}

/// Prints items over a limit.
pub(super) async fn items(
    mut list: OverLimitList,
    wanted: &Wanted,
    most: usize,
    json: bool,
) -> anyhow::Result<Outcome> {
    let most = if most == 0 { usize::MAX } else { most };
    let (mut out, mut shown, mut hidden) = (stdout(), 0, 0);
    let foreign = each(&mut list, wanted, async |_, items| {
        for (fingerprint, item) in items {
            if shown == most {
                hidden += 1;
                continue;
            }
            shown += 1;
            let reason = item.reason;
            let fingerprint = String::from_utf8_lossy(&fingerprint).into_owned();
            let line = if json {
                json_line(&Listed { fingerprint, reason, item: ItemText::of(&item.item) })?
            } else {
                let OverLimitReason { limit, group, time } = reason;
                let why = printable(format!("{limit}: {group}").as_bytes(), None);
                format!("{time}  {}   ({why})", printable(&item.item, None))
            };
            writeln!(out, "{line}")?;
        }
        Ok(())
    })
    .await?;
    if hidden > 0 {
        say(format_args!("{} more items are not shown; --most 0 shows all", HumanCount(hidden)));
    }
    Ok(told_of(foreign, &list))
}
