//! Queue of a filter: its batches to read and judge, and its other steps. Any thread may do them.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

use crossbeam_channel::Sender;
use tokio::sync::mpsc;

use super::judge::Judge;
use super::question::Answers;
use super::reading::Reading;
use super::threads::{EngineError, Work};
use crate::item::batch::{Batch, Judged};
use urlseen_filter::KeyHash;

/// Number of items or keys after which a thread turns to another filter.
const TURN: usize = 8192;

/// Number of waiting steps at which a recovery waits before it adds another one.
const STEPS_MAX: usize = 8;

/// Cost of a step other than a batch, in items.
const STEP: usize = 64;

/// Change or question that the judge carries out as a whole, before the next one.
type Step = Box<dyn FnOnce(&mut Judge) + Send>;

/// Result of a step of the judge.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A batch is judged, after all earlier ones.
    Judged(Batch<Judged>),
    /// A group of questions is answered.
    Answers(Answers),
}

/// Result of the judge, in the order of its steps. If the filter has no room for a batch, this
/// batch and the later ones are not judged.
pub(super) type Done = Result<Heard, EngineError>;

/// Queue of a filter, with its judge. One thread at a time has the judge; others read meanwhile.
///
/// Steps are done in their order, and batches are judged in theirs. A waiting step goes before a
/// waiting batch, whichever came first: so no batch overtakes a step.
pub(super) struct Queue {
    /// The judge; `None` after the end of the engine.
    judge: Mutex<Option<Judge>>,
    waiting: Mutex<Waiting>,
    /// Signals that steps were taken.
    taken: Condvar,
    /// Line of the work for threads.
    line: Sender<Work>,
    /// Number of threads that may work for this queue; none if a simulation does.
    pub(super) threads: usize,
    tell: mpsc::UnboundedSender<Done>,
}

/// Work that waits. Its length is bounded: by the batches and groups that the engine lets in, by
/// the begins of expiry, by [`STEPS_MAX`] during a recovery, and by callers that wait for their
/// reply.
#[derive(Default)]
struct Waiting {
    steps: VecDeque<Step>,
    /// Batches that are not judged, oldest first.
    batches: VecDeque<Arc<Reading>>,
    /// Parts of these batches that no thread reads yet.
    unread: VecDeque<(Arc<Reading>, usize)>,
    /// Number of places of this queue in the line, or at work.
    called: usize,
    has_ended: bool,
}

/// Result of a look for work of the judge.
enum Look {
    /// A step of this cost was done.
    Done(usize),
    /// Neither a step nor a batch that is read waits.
    Idle,
    /// Another thread has the judge. It looks again after its step.
    Busy,
}

/// The judge, in the hands of a task.
#[derive(Debug)]
pub(super) struct Free<'a> {
    queue: &'a Arc<Queue>,
    /// `None` only in a drop.
    judge: Option<MutexGuard<'a, Option<Judge>>>,
}

impl Queue {
    pub(super) fn new(
        judge: Judge,
        line: Sender<Work>,
        threads: usize,
        tell: mpsc::UnboundedSender<Done>,
    ) -> Self {
        let judge = Mutex::new(Some(judge));
        Self { judge, waiting: Mutex::default(), taken: Condvar::new(), line, threads, tell }
    }

    /// Reads and judges a short batch, if the judge is free, no other work waits, and the filter
    /// has room. Returns false if the batch is not judged.
    pub(super) fn judge_now(self: &Arc<Self>, reading: &Reading) -> bool {
        let Some(mut free) = self.free().filter(|_| self.waiting().batches.is_empty()) else {
            return false;
        };
        let judged = free.step(|judge| {
            let part = reading.read(0);
            let has_room = judge.has_room_for(part.key_hashes.iter().map(KeyHash::shard));
            reading.add(0, part);
            if has_room {
                self.judge(judge, reading);
            }
            has_room
        });
        judged.unwrap_or(true)
    }

    /// Adds a batch to judge, and to read unless it is read.
    pub(super) fn add_batch(self: &Arc<Self>, reading: Arc<Reading>) {
        let mut waiting = self.waiting();
        if !waiting.has_ended {
            let parts = if reading.is_done() { 0 } else { reading.parts() };
            waiting.unread.extend((0..parts).map(|part| (Arc::clone(&reading), part)));
            waiting.batches.push_back(reading);
            self.call(&mut waiting, parts.max(1));
        }
    }

    /// Adds a step of the judge.
    pub(super) fn add(self: &Arc<Self>, step: impl FnOnce(&mut Judge) + Send + 'static) {
        let mut waiting = self.waiting();
        if !waiting.has_ended {
            waiting.steps.push_back(Box::new(step));
            self.call(&mut waiting, 1);
        }
    }

    /// Does a step at once if the judge is free and the step is short. Otherwise adds it.
    pub(super) fn add_or_do(
        self: &Arc<Self>,
        is_short: impl FnOnce(&mut Judge) -> bool,
        step: impl FnOnce(&mut Judge) + Send + 'static,
    ) {
        if let Some(mut free) = self.free()
            && free.step(is_short) == Some(true)
        {
            free.step(step);
        } else {
            self.add(step);
        }
    }

    /// Adds a step of a recovery, as soon as few steps wait.
    pub(super) fn add_later(self: &Arc<Self>, step: impl FnOnce(&mut Judge) + Send + 'static) {
        if self.threads == 0 {
            self.with(step);
            return;
        }
        let waiting = self.waiting();
        let is_long = |waiting: &mut Waiting| waiting.steps.len() >= STEPS_MAX;
        let waiting = self.taken.wait_while(waiting, is_long);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
        self.add(step);
    }

    /// Adds a step, and waits for its result; `None` if the judge has ended.
    pub(super) fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        step: impl FnOnce(&mut Judge) -> T + Send + 'static,
    ) -> Option<T> {
        if self.threads == 0 {
            return self.with(step);
        }
        let (reply, replied) = crossbeam_channel::bounded(1);
        self.add(move |judge| drop(reply.send(step(judge))));
        replied.recv().ok()
    }

    /// Waits for the judge, and does the waiting steps and then `step` on the thread of the caller.
    /// `None` if the judge has ended.
    pub(super) fn with<T>(self: &Arc<Self>, step: impl FnOnce(&mut Judge) -> T) -> Option<T> {
        let judge = self.judge.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = Free { queue: self, judge: Some(judge) };
        loop {
            let next = self.next_step(&mut self.waiting());
            let Some(next) = next else { return free.step(step) };
            free.step(next);
        }
    }

    /// Returns the judge if it is free and no step waits.
    fn free(self: &Arc<Self>) -> Option<Free<'_>> {
        if self.threads == 0 {
            return None;
        }
        let judge = Some(self.try_judge()?);
        let free = Free { queue: self, judge };
        let is_idle = self.waiting().steps.is_empty();
        is_idle.then_some(free)
    }

    /// Sends a result of the judge. Ignores a receiver that is gone.
    pub(super) fn tell(&self, done: Done) {
        let _ = self.tell.send(done);
    }

    /// Does work that waits, until a thread should turn to another filter. Returns true if there
    /// was any.
    pub(super) fn turn(self: &Arc<Self>) -> bool {
        let mut done = 0;
        while done < if self.threads == 0 { 1 } else { TURN } {
            match self.work() {
                Some(cost) => done += cost,
                None => return done > 0,
            }
        }
        let _ = self.line.send(Work::Queue(Arc::clone(self)));
        true
    }

    /// Does the next work, and returns its cost. If there is none, this place in the line is gone.
    fn work(self: &Arc<Self>) -> Option<usize> {
        loop {
            let look = self.judge_next();
            if let Look::Done(cost) = look {
                return Some(cost);
            }
            let mut waiting = self.waiting();
            if let Some((reading, part)) = waiting.unread.pop_front() {
                drop(waiting);
                let read = catch_unwind(AssertUnwindSafe(|| reading.read(part)));
                let Ok(read) = read else {
                    self.end_by_panic();
                    return Some(1);
                };
                let cost = read.cost();
                // A thread looks for read batches under this lock. So it looked before this, or it
                // finds the batch.
                let waiting = self.waiting();
                reading.add(part, read);
                drop(waiting);
                return Some(cost);
            }
            if !(matches!(look, Look::Idle) && waiting.is_judging_due()) {
                waiting.called -= 1;
                return None;
            }
        }
    }

    /// Does the next step of the judge, unless another thread has the judge.
    fn judge_next(self: &Arc<Self>) -> Look {
        let Some(mut judge) = self.try_judge() else { return Look::Busy };
        let mut waiting = self.waiting();
        if let Some(step) = self.next_step(&mut waiting) {
            drop(waiting);
            self.guarded(&mut judge, step);
            return Look::Done(STEP);
        }
        let Some(reading) = waiting.batches.pop_front_if(|reading| reading.is_done()) else {
            return Look::Idle;
        };
        drop(waiting);
        let cost = reading.batch.items.len().max(1);
        self.guarded(&mut judge, |judge| self.judge(judge, &reading));
        Look::Done(cost)
    }

    /// Takes the next step. A recovery that waits goes on when half of its steps are taken: to wake
    /// it for each of them would cost more than the steps.
    fn next_step(&self, waiting: &mut Waiting) -> Option<Step> {
        let step = waiting.steps.pop_front();
        if waiting.steps.len() == STEPS_MAX / 2 {
            self.taken.notify_all();
        }
        step
    }

    fn judge(&self, judge: &mut Judge, reading: &Reading) {
        self.tell(judge.judge(reading).map(Heard::Judged).map_err(EngineError::Full));
    }

    /// Does a step. A panic ends the judge.
    fn guarded<T>(
        &self,
        judge: &mut Option<Judge>,
        step: impl FnOnce(&mut Judge) -> T,
    ) -> Option<T> {
        let done = catch_unwind(AssertUnwindSafe(|| judge.as_mut().map(step)));
        done.unwrap_or_else(|_| {
            *judge = None;
            self.end_by_panic();
            None
        })
    }

    /// Ends the work, and frees the memory of the filter. Waits for a step that is being done.
    pub(super) fn end(&self) {
        self.drop_work();
        let judge = self.judge.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(judge);
    }

    fn end_by_panic(&self) {
        self.drop_work();
        self.tell(Err(EngineError::Panicked));
    }

    fn drop_work(&self) {
        let mut waiting = self.waiting();
        let called = waiting.called;
        let dropped = std::mem::replace(
            &mut *waiting,
            Waiting { called, has_ended: true, ..Waiting::default() },
        );
        drop(waiting);
        drop(dropped);
        self.taken.notify_all();
    }

    /// Lines up for up to `most` more threads.
    fn call(self: &Arc<Self>, waiting: &mut Waiting, most: usize) {
        for _ in 0..most.min(self.threads.max(1).saturating_sub(waiting.called)) {
            waiting.called += 1;
            let _ = self.line.send(Work::Queue(Arc::clone(self)));
        }
    }

    fn try_judge(&self) -> Option<MutexGuard<'_, Option<Judge>>> {
        match self.judge.try_lock() {
            Ok(judge) => Some(judge),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Free<'_> {
    /// Does a step. A panic ends the judge.
    pub(super) fn step<T>(&mut self, step: impl FnOnce(&mut Judge) -> T) -> Option<T> {
        let judge = self.judge.as_mut().expect("until the drop");
        self.queue.guarded(judge, step)
    }
}

impl Drop for Free<'_> {
    /// Calls a thread if work of the judge has come meanwhile.
    fn drop(&mut self) {
        drop(self.judge.take());
        let mut waiting = self.queue.waiting();
        if waiting.is_judging_due() {
            // A thread that found the judge away may be leaving.
            waiting.called += 1;
            let _ = self.queue.line.send(Work::Queue(Arc::clone(self.queue)));
        }
    }
}

impl Waiting {
    fn is_judging_due(&self) -> bool {
        let is_done = self.batches.front().is_some_and(|reading| reading.is_done());
        !self.steps.is_empty() || is_done
    }
}

impl Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("judge", &self.judge).finish_non_exhaustive()
    }
}
