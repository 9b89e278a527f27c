//! The pipe: lines in, unseen lines out, with nothing but this process.
//!
//! What is unseen is remembered once it is written out, so that nothing counts as seen that
//! nobody has got.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::engine::store::Local;
use crate::engine::{Engine, EngineError};
use crate::flow::input::{self, Block, InputError};
use crate::item::batch::{Batch, Judged};

/// Blocks that are read and wait to be judged.
const READ_AHEAD: usize = 4;

/// Blocks that are being judged. Enough to keep all threads busy; twice as many were 5 % slower, as
/// the set of what is in flight no longer stayed in the processor's caches.
const JUDGING_MAX: usize = 4;

/// How often progress is told.
const TELL: Duration = Duration::from_millis(200);

/// Why the pipe broke.
#[derive(Debug, thiserror::Error)]
pub enum PipeError {
    /// On the reading side.
    #[error(transparent)]
    Input(#[from] InputError),
    /// On the writing side.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// What is kept of the filter.
    #[error("the storage folder cannot be written: {0}. What is not in it is printed again")]
    Storage(io::Error),
    /// In the middle.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The thread that reads could not be started.
    #[error("no thread could be started: {0}; is the limit on processes (ulimit -u) too low?")]
    Thread(io::Error),
}

/// Lines counted.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct PipeCount {
    /// All lines.
    pub lines: u64,
    /// Lines not seen before, or not to be checked.
    pub unseen: u64,
    /// Lines that could not be read.
    pub bad: u64,
}

/// What a pipe is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Print {
    /// Print lines that were not seen before.
    Unseen,
    /// Print lines that were.
    Seen,
}

/// Who is told about a pipe's work while it goes on.
pub trait PipeAudience {
    /// A line cannot be read: where it stands, and why.
    fn bad_line(&mut self, place: input::LinePlace<'_>, reason: &crate::item::Unreadable);
    /// So much was done; `engine` knows how full the filter is.
    fn progress(&mut self, count: &PipeCount, engine: &Engine);
    /// Something went wrong that the pipe goes on without.
    fn trouble(&mut self, words: &str);
    /// Whether anybody still reads the output. Asked from time to time, as a pipe without a reader
    /// is otherwise noticed only with the next unseen line, which may be long in coming.
    fn is_reading(&self) -> bool;
}

/// Reads the lines of `files`, judges them, and writes those asked for to `output` as received, in
/// order. Each block is flushed, so that a reader sees what there is. Where the input fails, what
/// was read before is judged and written first.
///
/// # Panics
/// If `store` is judging batches that were submitted before.
pub async fn run(
    files: Vec<PathBuf>,
    store: &mut Local,
    print: Print,
    output: &mut impl Write,
    audience: &mut impl PipeAudience,
) -> Result<PipeCount, PipeError> {
    let mut blocks = read(files)?;
    let mut judging: VecDeque<Block> = VecDeque::new();
    let mut count = PipeCount::default();
    let mut end = None;
    let mut tell = tokio::time::interval(TELL);
    tell.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while end.is_none() || !judging.is_empty() {
        tokio::select! {
            judged = store.engine.judged(), if !judging.is_empty() => {
                let judged = judged?;
                let block = judging.pop_front().expect("every batch was a block");
                write(&judged, print, output).map_err(PipeError::Output)?;
                // Written down once it is printed: whoever kills this in between sees the lines of
                // one block again, and misses none.
                store.add(&judged).map_err(PipeError::Storage)?;
                tell_no_snapshot(store.tend(), audience);
                for (index, (_, reason)) in judged.rejected_at().zip(judged.rejects()) {
                    audience.bad_line(block.place(index), reason);
                }
                count.lines += judged.items().len() as u64;
                count.unseen += judged.onward_len() as u64;
                count.bad += judged.rejects().len() as u64;
            }
            block = blocks.recv(), if end.is_none() && judging.len() < JUDGING_MAX => match block {
                None => end = Some(Ok(())),
                Some(Err(error)) => end = Some(Err(error)),
                Some(Ok(mut block)) => {
                    store.engine.submit(Batch::new(std::mem::take(&mut block.lines)));
                    judging.push_back(block);
                }
            },
            _ = tell.tick() => {
                audience.progress(&count, &store.engine);
                if !audience.is_reading() {
                    return Err(PipeError::Output(io::ErrorKind::BrokenPipe.into()));
                }
            }
        }
    }
    store.engine.settled().await?;
    tell_no_snapshot(store.wait_for_snapshot().and_then(Result::err), audience);
    store.rest_as_it_is().map_err(PipeError::Storage)?;
    audience.progress(&count, &store.engine);
    end.unwrap_or(Ok(()))?;
    Ok(count)
}

fn tell_no_snapshot(error: Option<io::Error>, audience: &mut impl PipeAudience) {
    if let Some(error) = error {
        audience.trouble(&format!("no snapshot could be taken ({error}); the log grows on"));
    }
}

/// Reads blocks ahead, on a thread of its own.
fn read(files: Vec<PathBuf>) -> Result<mpsc::Receiver<Result<Block, InputError>>, PipeError> {
    let (hand_over, blocks) = mpsc::channel(READ_AHEAD);
    let life = move || {
        for block in input::blocks(files) {
            let failed = block.is_err();
            // Nobody takes it any more: the pipe has ended.
            if hand_over.blocking_send(block).is_err() || failed {
                return;
            }
        }
    };
    std::thread::Builder::new().name("reader".to_owned()).spawn(life).map_err(PipeError::Thread)?;
    Ok(blocks)
}

fn write(batch: &Batch<Judged>, print: Print, output: &mut impl Write) -> io::Result<()> {
    match print {
        Print::Unseen => write_lines(batch.onward(), output),
        Print::Seen => write_lines(batch.seen(), output),
    }?;
    output.flush()
}

fn write_lines<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    output: &mut impl Write,
) -> io::Result<()> {
    for line in lines {
        output.write_all(line)?;
        output.write_all(b"\n")?;
    }
    Ok(())
}
