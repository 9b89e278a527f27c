//! Begins the generations of a filter whose fingerprints expire, and sweeps expired ones.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval, sleep};

use super::Engine;
use super::store::Storage;
use urlseen_core::filter::generation::Generation;
use urlseen_core::storage::{Clocks, GenerationClock, Moment};

/// Time between two looks at the clock. After each one, the judge frees some slots.
const LOOK: Duration = Duration::from_millis(100);

/// Generations of a filter at work.
#[derive(Debug)]
pub(super) struct Generating {
    clock: GenerationClock,
    /// Generation that began last, or whose begin is being logged.
    begun: Generation,
    looks: Interval,
    clocks: fn() -> Clocks,
}

impl Generating {
    /// Continues after the start of a generation. `clocks` reads the clocks of this machine.
    pub(super) fn new(clock: GenerationClock, begun: Generation, clocks: fn() -> Clocks) -> Self {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { clock, begun, looks, clocks }
    }

    /// Returns the moment at which a later generation begins.
    pub(super) fn begin_of(&self, generation: Generation) -> Moment {
        self.clock.begin_of(generation)
    }

    /// Waits until it is time to look at the clock; forever if there are no generations. Nothing is
    /// lost when the future is dropped.
    pub(super) async fn due(generations: Option<&mut Self>) -> &mut Self {
        let Some(generations) = generations else { return std::future::pending().await };
        let next = generations.begin_of(generations.begun.later(1)).since_boot();
        let left = next.saturating_sub((generations.clocks)().moment.since_boot());
        tokio::select! {
            _ = generations.looks.tick() => {}
            // A generation that begins late would let URLs pass too early. The clock that begins it
            // need not agree with this timer.
            () = sleep(left), if !left.is_zero() => {}
        }
        generations
    }

    /// Begins a generation that is due, and returns it. If there is a folder, its log gets the
    /// start first. Frees some slots of expired keys.
    pub(super) fn look(
        &mut self,
        storage: Option<&Storage>,
        engine: &mut Engine,
    ) -> Option<Generation> {
        if engine.gauge().generations().is_some_and(|it| it.expired > 0) {
            engine.sweep();
        }
        let due = self.clock.generation_at((self.clocks)().moment);
        if due <= self.begun {
            return None;
        }
        self.begun = due;
        if let Some(storage) = storage {
            storage.begin_generation(due);
            return None;
        }
        engine.begin_generation(due);
        Some(due)
    }
}

impl Engine {
    /// Returns the generation that began last; [`Generation::FOREVER`] if none has begun.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// Begins a generation. The log already has its begin.
    pub(crate) fn begin_generation(&mut self, generation: Generation) {
        self.generation = generation;
        self.handle.queue.add(move |judge| judge.filter.kind().begin_generation(generation));
    }

    /// Makes the judge free some slots of expired keys, unless it still has to do so.
    pub(crate) fn sweep(&mut self) {
        if Arc::strong_count(&self.sweeping) == 1 {
            let token = Arc::clone(&self.sweeping);
            self.handle.queue.add(move |judge| {
                if let Some(ages) = judge.filter.kind().ages() {
                    ages.sweep();
                }
                drop(token);
            });
        }
    }
}
