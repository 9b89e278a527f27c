//! `urlseen status --watch`, which draws the state of running daemons, and `urlseen tap`, which
//! prints their items.

use std::convert::Infallible;

use crate::admin::Sample;
use crate::admin::printable::terminal_size;
use crate::cli::overview::{self, Speeds};
use crate::cli::prelude::*;

/// Time between two drawings.
const PERIOD: Duration = Duration::from_secs(1);

/// Draws the state of the daemons of these crawls. Ends at SIGINT (Ctrl-C) or SIGTERM.
pub(super) fn watch(crawls: Vec<Config>) -> anyhow::Result<Outcome> {
    let daemons =
        crawls.into_iter().map(|config| Ok((config.number(), daemon_of(&config, "--watch")?)));
    let daemons = daemons.collect::<anyhow::Result<Vec<_>>>()?;
    refuse_if!(
        !io::stdout().is_terminal(),
        "--watch draws on a terminal, and standard output is not one: leave it out"
    );
    runtime()?.block_on(async {
        let mut stop = shutdown::listen().context("cannot listen for signals")?;
        let screen = Screen::open()?;
        tokio::select! {
            never = draw(screen, &daemons) => match never? {},
            _ = stop.wait_for(|stop| *stop) => Ok(Outcome::Done),
        }
    })
}

/// Draws until the terminal fails, or until a daemon gives an answer that cannot be used.
async fn draw(mut screen: Screen, daemons: &[(u16, AdminClient)]) -> anyhow::Result<Infallible> {
    let mut speeds = Speeds::default();
    loop {
        let mut text = Vec::new();
        let (mut found, mut newest) = (Vec::new(), Vec::new());
        for (number, client) in daemons {
            let asked = async { Ok((client.status::<Status>().await?, client.samples(0).await?)) };
            match asked.await {
                Ok((status, samples)) => {
                    found.push((*number, Some(status)));
                    newest.extend(samples);
                }
                Err(error @ (ClientError::NoDaemon { .. } | ClientError::Silent { .. })) => {
                    found.push((*number, None));
                    text.extend(format!("{error}; asking again\n\n").into_bytes());
                }
                Err(error) => return Err(error.into()),
            }
        }
        print(&found, &mut speeds, &mut text)?;
        let lines = String::from_utf8_lossy(&text).lines().count();
        print_newest(newest, screen.size().0.saturating_sub(lines), &mut text)?;
        screen.draw(&String::from_utf8_lossy(&text))?;
        tokio::time::sleep(PERIOD).await;
    }
}

/// Prints the state of one daemon, or an overview of several.
pub(super) fn print(
    found: &[(u16, Option<Status>)],
    speeds: &mut Speeds,
    text: impl Write,
) -> io::Result<()> {
    let counts = found.iter().filter_map(|(_, status)| Some(status.as_ref()?.counts));
    let counts = counts.reduce(Counts::and);
    let speed = counts.and_then(|counts| speeds.note(counts, Instant::now()));
    match found {
        [(_, None)] => Ok(()),
        [(_, Some(status))] => status::print(status, speed, text),
        _ => overview::print(found, speed, text),
    }
}

/// Fates of the shown items, each with the name of its first row.
const SHOWN: [(&str, &str); 3] =
    [("rejected", "rejected"), ("dropped", "dropped"), ("over-limit", "over limit")];

/// Maximum number of shown items of each fate.
const MOST: usize = 10;

/// Prints the newest items of each fate in at most `lines` lines, but at least one item of each.
fn print_newest(mut samples: Vec<Sample>, lines: usize, out: impl Write) -> io::Result<()> {
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
    format!("{time}  {why}: {}", sample.text)
}

/// Switches to a second screen, so that the lines of the shell stay, and hides the cursor.
const OPEN: &str = "\x1b[?1049h\x1b[?25l";
/// Shows the cursor, and switches back to the lines of the shell.
const CLOSE: &str = "\x1b[?25h\x1b[?1049l";
/// Moves to the first line.
const HOME: &str = "\x1b[H";
/// Clears the rest of a line.
const CLEAR_LINE: &str = "\x1b[K";
/// Clears the rest of the screen.
const CLEAR_REST: &str = "\x1b[J";

/// Rows and columns of a terminal that does not tell its size.
const USUAL: (usize, usize) = (24, 80);

/// Second screen of the terminal. Dropping it restores the lines of the shell.
pub(super) struct Screen(());

impl Screen {
    /// Switches the terminal to the second screen.
    fn open() -> io::Result<Self> {
        put(OPEN)?;
        Ok(Self(()))
    }

    /// Returns the number of rows and columns.
    pub(super) fn size(&self) -> (usize, usize) {
        terminal_size().unwrap_or(USUAL)
    }

    /// Draws a text in place of the last one. Lines that do not fit are cut. If the text does not
    /// fit, the last row has the number of the lines that are left out.
    pub(super) fn draw(&mut self, text: &str) -> io::Result<()> {
        let (height, width) = self.size();
        let count = text.lines().count();
        let shown = if count > height { height.saturating_sub(1) } else { count };
        let rest = format!("… {} more lines in a higher terminal", count - shown);
        let rest = (count > shown).then_some(&*rest);
        let lines = text.lines().take(shown).chain(rest).map(|line| {
            let line = printable(line.as_bytes(), Some(width));
            format!("{line}{CLEAR_LINE}")
        });
        let lines = lines.collect::<Vec<_>>().join("\n");
        put(&format!("{HOME}{lines}{CLEAR_REST}"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = put(CLOSE);
    }
}

fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Pause between two requests for new items.
const PAUSE: Duration = Duration::from_millis(200);

/// Show items of a running daemon: which pass, which do not, and why.
///
/// The command prints the newest items of each fate and each rule, and then further ones while the
/// daemon commits them. If there are too many, it prints only the last ones of each batch. The
/// command asks the daemon through the socket in the storage folder, so it must run as the user of
/// the daemon. A daemon whose filter is in Redis has no socket.
///
/// The fates are unseen, seen, unfiltered (`dont_filter`, or a rule of `[[pass]]`), dropped (a rule
/// of `[[drop]]`), over-limit (a rule of `[[limit]]`) and rejected.
///
/// Examples:
/// ```text
/// urlseen tap --fate dropped
/// urlseen tap --rule archives --once --json
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct TapArgs {
    #[command(flatten)]
    folder: FolderOptions,
    /// Show only items with this fate
    #[arg(long, value_name = "FATE", value_parser = FATES)]
    fate: Vec<String>,
    /// Show only items that this rule decided about
    #[arg(long, value_name = "NAME")]
    rule: Vec<String>,
    /// Print the newest items, and end
    #[arg(long)]
    once: bool,
    /// End after this number of items
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Print a JSON object for each item
    #[arg(long)]
    json: bool,
    /// Print the first bytes of each item, in place of method, URL, priority and callback
    #[arg(long)]
    raw: bool,
}

pub(super) fn tap(args: &TapArgs) -> anyhow::Result<Outcome> {
    let mut daemons = Vec::new();
    for config in args.folder.locate_all()? {
        daemons.push((daemon_of(&config, "urlseen tap")?, 0));
    }
    let (mut out, mut left) = (stdout(), args.count.unwrap_or(u64::MAX));
    loop {
        for (daemon, after) in &mut daemons {
            for sample in runtime()?.block_on(daemon.samples(*after))? {
                *after = sample.number;
                if left > 0 && args.shows(&sample) {
                    left -= 1;
                    writeln!(
                        out,
                        "{}",
                        if args.json { json_line(&sample)? } else { line(&sample, args.raw) }
                    )?;
                }
            }
        }
        out.flush()?;
        if args.once || left == 0 {
            return Ok(Outcome::Done);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Describes an item for people, or shows its bytes.
fn line(sample: &Sample, raw: bool) -> String {
    let Sample { time, fate, rule, reason, same_as, text, item, .. } = sample;
    let time = humantime::format_rfc3339_millis(*time);
    let item =
        if raw { item.clone().into_bytes().unwrap_or_default() } else { text.clone().into() };
    let rule = rule.as_ref().map(|rule| format!("   (the rule {rule:?})"));
    let reason = reason.as_ref().map(|reason| format!("   ({reason})"));
    let same_as = same_as.as_ref().map(|url| format!("   (the same as {url})"));
    let why = rule.or(reason).or(same_as).unwrap_or_default();
    let item = printable(&item, None);
    format!("{time}  {fate:<10}  {item}{}", printable(why.as_bytes(), None))
}

impl TapArgs {
    fn shows(&self, Sample { fate, rule, .. }: &Sample) -> bool {
        let has_rule = || rule.as_ref().is_some_and(|rule| self.rule.contains(rule));
        (self.fate.is_empty() || self.fate.contains(fate)) && (self.rule.is_empty() || has_rule())
    }
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
            text: format!("{number}"),
            url: None,
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
            print_newest(samples.clone(), lines, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let expected = "\
rejected     01:01:01Z  no URL: 61
dropped      01:01:00Z  mail: 60
             01:00:59Z  mail: 59
";
        assert_eq!(shown(5), expected);
        let least = expected.split_inclusive('\n').take(2).collect::<String>();
        assert_eq!(shown(0), least);
        assert_eq!(shown(1000).lines().count(), 11);
    }
}
