//! `urlseen filter`: prints the unseen lines of files or of a pipe.

use crate::cli::prelude::*;
use crate::cli::settings::FilterOptions;
use memchr::memmem;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use urlseen_engine::engine::WorksError;
use urlseen_engine::flow::driver::{Count, Effect, FlowError};
use urlseen_engine::flow::feed::Page;
use urlseen_engine::flow::reasons::{Reason, Reasons};
use urlseen_engine::flow::records::Records;
use urlseen_engine::item::batch::{Batch, Judged};
use urlseen_engine::item::key::NoKey;

/// Size of the output buffer, in bytes.
const BUFFER: usize = 1 << 17;

/// Maximum width of a line in a message, in columns.
const SHOWN: usize = 60;

/// Print each unseen line of the input, unchanged and in order.
///
/// A line is a URL, a request in JSON, a fingerprint, or a fingerprint with a tab and a payload.
/// Options name the URL in other lines, tables and sitemaps. Two lines are equal if they stand for
/// the same request. For example, `http://a/?y&x` is equal to `http://A:/?x=&y=#top`. The command
/// continues after lines that it cannot read. It prints the first such line for each reason, and at
/// the end the number of further ones. If there was one, the exit status is 1.
///
/// Examples:
/// ```text
/// urlseen filter --field request.endpoint katana.jsonl  # JSON lines. httpx: --field url
/// urlseen filter --find access.log           # the first URL of each line
/// urlseen filter --column url export.csv     # a column of a table
/// urlseen filter --sitemap sitemap.xml.gz    # the URLs of a sitemap
/// urlseen filter --seen a.txt b.txt          # lines of b.txt that a.txt lacks
/// urlseen filter --storage seen tonight.txt  # a list that grows each night
/// ```
#[derive(Debug, clap::Args)]
pub(super) struct FilterArgs {
    /// Print the seen lines in place of the unseen lines
    #[arg(long)]
    invert: bool,
    /// Remember the lines in this storage folder for the next run. The folder can be the storage
    /// folder of a crawl. A line counts as seen after it is printed. If the command is killed, the
    /// next run prints at most the last block of lines again. Default: no folder
    #[arg(long, value_name = "DIR")]
    storage: Option<PathBuf>,
    /// Count the lines of this file as seen, and do not print them. Can be given several times
    #[arg(long, value_name = "FILE")]
    seen: Vec<PathBuf>,
    #[command(flatten)]
    records: RecordOptions,
    #[command(flatten)]
    shape: FilterOptions,
    /// Form of the lines: auto, url, json, fingerprint or tab
    #[arg(long, value_name = "FORM", default_value = "auto", value_parser = form_of_lines)]
    item: ItemForm,
    /// Compare the bytes of the lines, or of the parts that an option names, and read no URLs. Give
    /// the option in each run with the same --storage
    #[arg(long, conflicts_with_all = ["item", "algorithm", "canonical_form", "keep_fragments"])]
    #[arg(conflicts_with_all = ["drop_tracking", "rules"])]
    raw: bool,
    /// Number of threads that test lines, from 1 to 64. Default: the number of processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: Option<u8>,
    /// At the end, print on standard error how many lines were read, unseen and invalid
    #[arg(long)]
    stats: bool,
    /// Files with lines, plain or compressed with gzip, Zstandard, xz or bzip2. `-` is standard
    /// input. Default: standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Parses the form of a line.
fn form_of_lines(word: &str) -> Result<ItemForm, String> {
    match word.parse::<ItemForm>() {
        Ok(ItemForm::Pickle) => {
            Err("a pickle can contain line feeds, so it cannot be a line: give requests as json"
                .to_owned())
        }
        form => form.map_err(|error| error.to_string()),
    }
}

pub(super) fn run(args: &FilterArgs) -> anyhow::Result<Outcome> {
    let (store, parameters) = store(args)?;
    let mut works = store.work(query::open(0).1).map_err(RunError::Thread)?;
    let output = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    let gauge = Arc::clone(&works.engine.handle.gauge);
    let started = Instant::now();
    let bar = Bar::counting("lines");
    let records = |files: &[PathBuf]| input::records(files.to_vec(), args.records.records());
    let mut lines = records(&args.files);
    if !args.seen.is_empty() {
        lines = records(&args.seen).seen_before(lines);
    }
    let reads_urls = matches!(args.item, ItemForm::Auto | ItemForm::Url) && !args.raw;
    let reads_urls = reads_urls && matches!(args.records.records(), Records::Lines);
    let mut printed = Printed {
        seen: args.invert,
        output,
        has_header: false,
        tails: reads_urls.then(Tails::default),
        unreadable: Reasons::default(),
        bar: bar.clone(),
    };
    // If standard output is a terminal, a line of progress would disturb the lines there.
    let is_quiet = io::stdout().is_terminal();
    let draw = |bar: &Bar, Progress { count: Count { read, new, .. }, .. }: &Progress| {
        let fill = 100.0 * gauge.fill().counted().share();
        let rate = *read as f64 / started.elapsed().as_secs_f64();
        if !is_quiet {
            let share = 100.0 * *new as f64 / (*read).max(1) as f64;
            bar.tell(format!(
                "{read} lines, {new} unseen ({share:.0} %), {rate:.0}/s, filter {fill:.1} % full"
            ));
        }
    };
    let mut teller = BarAudience::new(bar, draw);
    let flow = Flow {
        works: &mut works,
        pages: lines.spawn()?,
        effect: Some(&mut printed),
        fill: settings::fill_watch(&parameters),
        remedy: "Give a larger --capacity, or --kind two-choice with a --grow-to that suffices, \
                 and with --storage a new folder",
        audience: &mut teller,
    };
    let result = runtime()?.block_on(flow.run());
    teller.end(0, "");
    printed.sum_up();
    let (count, ended) = match result {
        // The program that reads the output has closed it, so it needs no more lines.
        Err(FlowError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(Outcome::Done);
        }
        Err(error @ FlowError::Works(WorksError::Log(_))) => {
            bail!("{error}. The next run prints again the lines that are not in the log")
        }
        other => other?,
    };
    ended?;
    if args.stats {
        let Count { read, new, bad, .. } = count;
        let seconds = started.elapsed().as_secs_f64();
        say(format_args!("{read} lines, {new} unseen, {bad} not readable, {seconds:.2} s"));
    }
    // In a log, lines without a URL are no fault.
    let without = printed.unreadable.count(&NoKey::NoUrl.into());
    Ok(if count.bad > without { Outcome::BadInput } else { Outcome::Done })
}

/// Maximum number of lines of a page that [`Tails`] looks at.
const SAMPLED: usize = 64;

/// Sample of lines, of which some have more text after their URL.
#[derive(Default)]
struct Tails {
    lines: usize,
    tabs: usize,
    blanks: usize,
}

impl Tails {
    fn add(&mut self, batch: &Batch<Judged>) {
        for line in batch.items.iter().take(SAMPLED) {
            let line = line.trim_ascii();
            let begin = memmem::find(line, b"://").unwrap_or(line.len());
            let has = |byte| memchr::memchr(byte, &line[begin..]).is_some();
            let is_url = bare_url(line).is_ok();
            self.lines += 1;
            self.tabs += usize::from(is_url && has(b'\t'));
            self.blanks += usize::from(is_url && has(b' '));
        }
    }

    /// Returns a warning if more than a tenth of the lines have more text.
    fn warning(&self) -> Option<String> {
        let Self { lines, tabs, blanks } = *self;
        let (count, what, option) = if tabs >= blanks {
            (tabs, "a tab", "--column 1 --delimiter tab")
        } else {
            (blanks, "a blank", "--find")
        };
        (count > 1 && 10 * count > lines).then(|| {
            format!(
                "{count} of {lines} sampled lines have {what} in the URL, which counts as a part \
                 of it. If other text follows the URL, use {option}"
            )
        })
    }
}

/// Prints the lines of each batch, unchanged and in order. Flushes the output after each batch, so
/// that the program that reads it gets the lines at once.
struct Printed<W> {
    /// True if the command prints the seen lines in place of the unseen lines.
    seen: bool,
    output: W,
    /// True after the header of a table is printed.
    has_header: bool,
    /// Sample of the lines, if the command reads whole lines as URLs.
    tails: Option<Tails>,
    /// Lines that cannot be read.
    unreadable: Reasons,
    bar: Bar,
}

impl<W> Printed<W> {
    /// Prints how many more lines cannot be read for each reason, and a warning about URLs.
    fn sum_up(&self) {
        for Reason { words, items, .. } in self.unreadable.iter().filter(|it| it.items > 1) {
            let lines = if *items == 2 { "line" } else { "lines" };
            say(format_args!("urlseen: {} more {lines}: {words}", HumanCount(items - 1)));
        }
        if let Some(warning) = self.tails.as_ref().and_then(Tails::warning) {
            say(format_args!("urlseen: {warning}"));
        }
    }
}

impl<W: Write> Printed<W> {
    fn print<'a>(&mut self, lines: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
        for line in lines {
            self.output.write_all(line)?;
            self.output.write_all(b"\n")?;
        }
        self.output.flush()
    }
}

impl<W: Write> Effect for Printed<W> {
    fn apply(&mut self, page: &Page, batch: &Batch<Judged>) -> io::Result<()> {
        self.unreadable.add(page, batch, |Reason { words, place, item, .. }| {
            let shown = printable(item, Some(SHOWN));
            let colon = if item.is_empty() { "" } else { ": " };
            self.bar.above(|| say(format_args!("urlseen: {place}: {words}{colon}{shown}")));
        });
        if let Some(tails) = &mut self.tails {
            tails.add(batch);
        }
        if page.is_seen {
            return Ok(());
        }
        if let Some(header) = page.header.as_deref().filter(|_| !self.has_header) {
            self.print(std::iter::once(header))?;
            self.has_header = true;
        }
        if self.seen { self.print(batch.seen()) } else { self.print(batch.onward()) }
    }

    fn check(&self) -> io::Result<()> {
        let stdout = io::stdout();
        let mut output = [PollFd::new(&stdout, PollFlags::empty())];
        let answered = poll(&mut output, Some(&Timespec::default()));
        let is_gone = answered.is_ok() && output[0].revents().contains(PollFlags::ERR);
        if is_gone { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
    }
}

/// Opens the filter, in a storage folder if the user named one.
fn store(args: &FilterArgs) -> anyhow::Result<(Local, Parameters)> {
    let folder = args.storage.as_deref().map(Folder::open).transpose()?;
    let spec = args.shape.spec(folder.as_ref().and_then(Folder::header))?;
    let FilterSpec { mut parameters, fingerprint } = spec.filter.clone();
    let form = if args.raw { Form::Raw } else { args.item.into() };
    let items = Options::new(form, fingerprint);
    let threads = Threads::start(args.threads.map_or(0, usize::from))?;
    let Some(folder) = folder else {
        let engine = start::engine(&mut parameters, items, threads)?;
        return Ok((Local::volatile(engine), parameters));
    };
    let mut store = start::kept(folder, settings::keeping(spec), items, threads)?;
    let how = store.recover()?;
    for warning in how.warnings() {
        say(format_args!("urlseen: {warning}"));
    }
    if args.stats {
        say(format_args!("{how}"));
    }
    Ok((store, parameters))
}
