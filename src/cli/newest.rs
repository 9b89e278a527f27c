//! Newest rejects, drops and items over a limit, as lines for `urlseen status --watch`.

use std::io::{self, Write};

use super::rows::{CRAWL, Rows};
use crate::admin::Sample;
use crate::admin::printable::printable;

/// Fates of the shown items, each with the name of its first row.
const SHOWN: [(&str, &str); 3] =
    [("rejected", "rejected"), ("dropped", "dropped"), ("over-limit", "over limit")];

/// Maximum number of shown items of each fate.
const MOST: usize = 10;

/// Prints the newest items of each fate in at most `lines` lines, but at least one item of each.
pub(super) fn print(mut samples: Vec<Sample>, lines: usize, out: impl Write) -> io::Result<()> {
    samples.sort_by_key(|sample| std::cmp::Reverse(sample.number));
    let fates = SHOWN.iter().filter(|(fate, _)| of(&samples, fate).next().is_some()).count();
    let most = (lines / fates.max(1)).clamp(1, MOST);
    let mut rows = Rows::new(out, CRAWL);
    SHOWN
        .iter()
        .try_for_each(|(fate, name)| rows.each(name, of(&samples, fate).take(most).map(text)))
}

/// Returns the items with this fate.
fn of<'a>(samples: &'a [Sample], fate: &'a str) -> impl Iterator<Item = &'a Sample> {
    samples.iter().filter(move |sample| sample.fate == fate)
}

/// Describes an item: the time in UTC, the reason or the rule, and the item.
fn text(sample: &Sample) -> String {
    let time = humantime::format_rfc3339_seconds(sample.time).to_string();
    let time = time.split('T').next_back().unwrap_or_default();
    let why = sample.reason.as_ref().or(sample.rule.as_ref()).map_or("", String::as_str);
    let item = sample.item.clone().into_bytes().unwrap_or_default();
    format!("{time}  {why}: {}", printable(&item, None))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::admin::ItemText;

    fn sample(number: u64, fate: &str, why: &str) -> Sample {
        Sample {
            number,
            time: SystemTime::UNIX_EPOCH + Duration::from_secs(3600 + number),
            fate: fate.to_owned(),
            rule: (fate != "rejected").then(|| why.to_owned()),
            reason: (fate == "rejected").then(|| why.to_owned()),
            same_as: None,
            item: ItemText::of(format!("\u{1b}{number}").as_bytes()),
        }
    }

    #[test]
    fn each_fate_has_its_newest_items_in_equal_parts_of_the_lines() {
        let mut samples: Vec<_> = (1..=30).map(|number| sample(number, "seen", "")).collect();
        samples.extend((31..=60).map(|number| sample(number, "dropped", "mail")));
        samples.push(sample(61, "rejected", "no URL"));
        samples.rotate_left(40);
        let shown = |lines| {
            let mut out = Vec::new();
            print(samples.clone(), lines, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let expected = "\
rejected     01:01:01Z  no URL: \\u{1b}61
dropped      01:01:00Z  mail: \\u{1b}60
             01:00:59Z  mail: \\u{1b}59
";
        assert_eq!(shown(5), expected);
        let least = expected.split_inclusive('\n').take(2).collect::<String>();
        assert_eq!(shown(0), least);
        assert_eq!(shown(1000).lines().count(), 11);
    }
}
