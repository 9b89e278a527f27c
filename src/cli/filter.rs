//! `urlseen filter`: the lines that were not seen before, from files or a pipe.

use std::io::{self, BufWriter, IsTerminal};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use urlseen::config::{Emit, ItemForm, SeedChoice};
use urlseen::engine::Engine;
use urlseen::filter::{Capacity, ErrorRate, Fullness, Sizing};
use urlseen::fingerprint::Algorithm;
use urlseen::input::Place;
use urlseen::item::{Options, Unreadable};
use urlseen::pipe::{self, Audience, Count, PipeError, Print};
use urlseen::telemetry::Console;

use super::fingerprint::parse_algorithm;
use super::{Outcome, start};

/// How much output is gathered before it is written, in bytes.
const BUFFER: usize = 1 << 17;

/// Print the lines that were not seen before, as received, in order.
///
/// A line is a URL, a request in JSON, a fingerprint, or a fingerprint, a tab and anything. Two
/// lines are the same if their requests are: `http://a/?y&x` is `http://A:/?x=&y=#top`. A line
/// that cannot be read is named on standard error, and the exit status is 1 at the end.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the lines that were seen before instead
    #[arg(long)]
    invert: bool,
    /// How many different lines the filter is made for: 5000000, 1e9, 200M
    #[arg(long, value_name = "N", default_value = "10M")]
    capacity: Capacity,
    /// The share of unseen lines that may be taken for seen once so many are in it
    #[arg(long, value_name = "P", default_value = "1e-6")]
    error_rate: ErrorRate,
    /// What lines look like: auto, url, json, fingerprint or tab
    #[arg(long, value_name = "FORM", default_value = "auto")]
    item: ItemForm,
    /// How fingerprints are computed
    #[arg(long, value_name = "NAME", default_value_t, value_parser = parse_algorithm())]
    algorithm: Algorithm,
    /// Take URLs that differ in their fragments only for different ones
    #[arg(long)]
    keep_fragments: bool,
    /// The seed of the filter's hash, for runs that must be alike; drawn at random otherwise
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u32>,
    /// How many threads judge; as many as there are processors otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: Option<u8>,
    /// Print what was counted on standard error at the end
    #[arg(long)]
    stats: bool,
    /// Where lines are read from, plain, .gz or .zst; `-` is standard input, the default
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let sizing = Sizing::new(args.capacity, args.error_rate);
    let items = Options {
        form: args.item,
        emit: Emit::Item,
        algorithm: args.algorithm,
        keep_fragments: args.keep_fragments,
    };
    let seed = args.seed.map_or(SeedChoice::Random, SeedChoice::Fixed);
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = args.threads.map_or(cores.min(64), usize::from);
    let mut engine = start::engine(&sizing, seed, items, threads)?;
    let print = if args.invert { Print::Seen } else { Print::Unseen };
    let mut output = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    let fullness = Fullness::new(sizing);
    let mut teller = Teller { console: Console::new(), sizing, fullness, started: Instant::now() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let files = args.files.clone();
    let result = runtime.block_on(pipe::run(files, &mut engine, print, &mut output, &mut teller));
    teller.console.clear();
    let count = match result {
        // Whoever read the output has all they wanted.
        Err(PipeError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(Outcome::Done);
        }
        other => other?,
    };
    if args.stats {
        let Count { lines, unseen, bad } = count;
        let seconds = teller.started.elapsed().as_secs_f64();
        eprintln!("{lines} lines, {unseen} unseen, {bad} not readable, {seconds:.2} s");
    }
    Ok(if count.bad > 0 { Outcome::BadInput } else { Outcome::Done })
}

/// Tells what goes on on standard error.
struct Teller {
    console: Console,
    sizing: Sizing,
    fullness: Fullness,
    started: Instant,
}

impl Audience for Teller {
    fn bad_line(&mut self, place: Place<'_>, reason: &Unreadable) {
        self.console.say(&format!("urlseen: {place}: {reason}"));
    }

    fn progress(&mut self, count: &Count, engine: &Engine) {
        let keys = engine.gauges().keys();
        if let Some(crossing) = self.fullness.observe(&keys) {
            self.console.say(&format!("urlseen: {crossing}"));
        }
        // A line of progress between printed lines would be in the way.
        if !self.console.is_terminal() || io::stdout().is_terminal() {
            return;
        }
        let fill = 100.0 * keys.iter().sum::<u64>() as f64 / self.sizing.capacity().get() as f64;
        let rate = count.lines as f64 / self.started.elapsed().as_secs_f64();
        let Count { lines, unseen, .. } = count;
        self.console
            .show(format!("{lines} lines, {unseen} unseen, {rate:.0}/s, filter {fill:.1} % full"));
    }

    fn is_reading(&self) -> bool {
        let stdout = io::stdout();
        let mut output = [PollFd::new(&stdout, PollFlags::empty())];
        let answered = poll(&mut output, Some(&Timespec::default()));
        answered.is_err() || !output[0].revents().contains(PollFlags::ERR)
    }
}
