//! Events of a run: items arrive, and faults happen to the server, the disk and the daemon.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::expiry;
use super::items::{self, ITEMS, Treatment};
use super::oracle::Tally;
use super::state::State;
use super::world::World;
use crate::report::Live;
use urlseen_storage::testing::Fault;

/// Kind of event in a run, other than the arrival of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A command or a reply gets lost, or comes late.
    Break,
    /// The server refuses commands for a while.
    Refuse,
    /// The server is slow. It can be so slow that the lease lapses.
    Slow,
    /// All connections break.
    Cut,
    /// The server returns with older data.
    RollBack,
    /// The server returns with any earlier data, even if a rollback had discarded this data.
    OtherHistory,
    /// Another program moves a claimed item back to the source.
    Meddle,
    /// Another program holds the lease for a while.
    Usurp,
    /// The daemon is killed at a random moment.
    Kill,
    /// The threads of the daemon are slow.
    Lag,
    /// Items are put on the list of items to forget.
    Forget,
    /// A request to the disk fails, or the disk is full.
    FailDisk,
    /// The disk answers nothing for a while.
    HangDisk,
    /// The machine of the daemon loses its power.
    LosePower,
    /// Replicas do not acknowledge writes in time.
    LagReplicas,
    /// A replica takes over, with the data that it last acknowledged.
    FailOver,
    /// Nothing happens for up to eight generations.
    Wait,
}

pub(super) const KINDS: [Kind; 17] = [
    Kind::Break,
    Kind::Refuse,
    Kind::Slow,
    Kind::Cut,
    Kind::RollBack,
    Kind::OtherHistory,
    Kind::Meddle,
    Kind::Usurp,
    Kind::Kill,
    Kind::Lag,
    Kind::Forget,
    Kind::FailDisk,
    Kind::HangDisk,
    Kind::LosePower,
    Kind::LagReplicas,
    Kind::FailOver,
    Kind::Wait,
];

/// Number of items that are fed once more at the end.
const AGAIN: u32 = 16;

impl World {
    /// Feeds items and triggers events. Then checks the filter once more, and asks the daemon to
    /// stop once all items are processed.
    pub(super) async fn happen(&self) -> Infallible {
        for _ in 0..4 + self.draw(12) {
            let count = self.draw(30);
            self.feed((0..count).map(|_| self.any_item()));
            sleep(Duration::from_millis(self.draw(2000))).await;
            let kinds = self.data().kinds.clone();
            for kind in kinds {
                if self.draw(3) == 0 {
                    if kind == Kind::Wait {
                        expiry::wait(self).await;
                    }
                    self.strike(kind);
                    sleep(Duration::from_micros(self.draw(20_000))).await;
                }
            }
            let data = &mut *self.data();
            if data.state.head.is_some() {
                data.saves.push(data.state.clone());
            }
        }
        {
            let data = &mut *self.data();
            data.is_calm = true;
            data.disk.hangs_until = None;
            data.disk.disk.mend();
        }
        // With a limit, it is not certain that a forgotten item passes again.
        if self.data().limit.is_none() {
            while !self.ask_again().await {}
            self.forget_in_flight().await;
        }
        self.expire().await;
        self.let_through_at_a_start().await;
        self.data().is_over = true;
        loop {
            // The server may still return with older data, if the daemon refuses the present data.
            self.ask_to_stop(self.is_done());
            sleep(Duration::from_secs(1)).await;
        }
    }

    pub(super) fn any_item(&self) -> u32 {
        self.data().random.u32(..ITEMS)
    }

    pub(super) fn feed(&self, numbers: impl Iterator<Item = u32>) {
        for number in numbers {
            let (item, data) = (items::item(number), &mut *self.data());
            data.state.fed.push(item.clone());
            data.state.source.push_back(item);
        }
        self.fed().notify_waiters();
    }

    pub(super) fn forget(&self, numbers: impl Iterator<Item = u32>) {
        for number in numbers {
            let (item, data) = (items::item(number), &mut *self.data());
            data.state.told.push(item.clone());
            data.state.forget.push_back(item);
        }
    }

    /// Returns true if all items are processed.
    pub(super) fn is_done(&self) -> bool {
        let State { source, processing, forget, forgetting, .. } = &self.data().state;
        [source, processing, forget, forgetting].into_iter().all(VecDeque::is_empty)
    }

    /// Returns true if all items are processed and no more are fed.
    pub(super) fn is_over(&self) -> bool {
        self.data().is_over && self.is_done()
    }

    pub(super) fn live(&self) -> Live {
        let data = self.data();
        data.live.as_ref().expect("a daemon").borrow().clone()
    }

    pub(super) async fn wait_until(&self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            sleep(Duration::from_micros(100)).await;
        }
    }

    /// Asks the daemons to stop once all items are processed.
    pub(super) async fn wind_up(&self) -> Infallible {
        self.data().is_over = true;
        loop {
            self.ask_to_stop(self.is_done());
            sleep(Duration::from_secs(1)).await;
        }
    }

    pub(super) async fn all_done(&self) {
        while !self.is_done() {
            sleep(Duration::from_millis(500)).await;
        }
    }

    /// Feeds some items, lets the daemon forget half of them, and feeds all of them again. Checks
    /// that the forgotten items pass once more, and that no other items do. Returns false if the
    /// server returned with other data meanwhile.
    async fn ask_again(&self) -> bool {
        // Waits until the list of items to forget is empty, so that the daemon forgets none of them
        // during the check.
        self.all_done().await;
        self.later(1).await;
        let loads = self.data().loads;
        let start = self.any_item();
        let numbers = (0..AGAIN).map(|index| (start + index) % ITEMS);
        self.feed(numbers.clone());
        self.all_done().await;
        let forgets = !self.data().is_shared;
        let is_forgotten = |number: u32| forgets && number.is_multiple_of(2);
        let is_filtered = |number: u32| items::treatment(number) == Treatment::Filtered;
        let before = Tally::of(&self.data().state);
        self.forget(numbers.clone().filter(|&it| is_filtered(it) && is_forgotten(it)));
        self.all_done().await;
        self.feed(numbers.clone());
        self.all_done().await;
        if self.data().loads != loads {
            return false;
        }
        let after = Tally::of(&self.data().state);
        for number in numbers.filter(|&it| is_filtered(it)) {
            let times = after.emitted[number as usize] - before.emitted[number as usize];
            let expected = usize::from(is_forgotten(number));
            assert_eq!(times, expected, "{number} was fed again, forgotten: {expected}");
        }
        true
    }

    fn strike(&self, kind: Kind) {
        self.count();
        match kind {
            Kind::Break
            | Kind::Refuse
            | Kind::Slow
            | Kind::Lag
            | Kind::LagReplicas
            | Kind::Wait => {}
            Kind::Cut => self.cut(),
            Kind::FailOver => self.fail_over(),
            Kind::RollBack | Kind::OtherHistory => self.roll_back(kind == Kind::OtherHistory),
            Kind::Meddle => {
                let data = &mut *self.data();
                let State { processing, source, .. } = &mut data.state;
                source.extend(processing.pop_back());
                data.note(|| "an item goes back".to_owned());
            }
            Kind::Usurp => {
                let data = &mut *self.data();
                let until = Instant::now() + Duration::from_millis(data.random.u64(..4000));
                data.state.lease = Some(("f".repeat(32), until));
                data.note(|| "another program takes the lease".to_owned());
            }
            Kind::Kill => self.kill(),
            Kind::Forget => {
                // With a filter in Redis, the list is not read.
                if !self.data().is_shared {
                    let count = self.draw(6);
                    self.forget((0..count).map(|_| self.any_item()));
                }
            }
            Kind::FailDisk => {
                let fault = [Fault::Failing, Fault::Full, Fault::Killed][self.number(3)];
                let step = self.number(12);
                let data = &mut *self.data();
                if data.disk.is_faulty {
                    return;
                }
                data.note(|| format!("the disk will fail: {fault:?}"));
                data.disk.disk.fault_at(step, fault);
                data.disk.is_faulty = true;
            }
            Kind::HangDisk => {
                let seconds = self.draw(20);
                let data = &mut *self.data();
                data.note(|| format!("the disk hangs for {seconds} s"));
                data.disk.hangs_until = Some(Instant::now() + Duration::from_secs(seconds));
            }
            Kind::LosePower => {
                self.note(|| "the machine loses its power".to_owned());
                self.data().disk.loses_power = true;
                self.kill();
            }
        }
    }

    /// Makes the server return with an earlier state. With `any`, the state can be so old that the
    /// folder does not allow a recovery to it.
    fn roll_back(&self, any: bool) {
        {
            let data = &mut *self.data();
            let mut saves = data.saves.clone();
            saves.retain(|save| any || data.is_certain(save));
            if saves.is_empty() {
                return;
            }
            let number = data.random.usize(..saves.len());
            data.load(saves.swap_remove(number));
        }
        self.cut();
    }

    /// Handles a daemon that refused to continue with the server's data. Checks that the daemon
    /// could not have recovered its filter to this data. Then makes the server return with data for
    /// which the daemon can recover its filter.
    pub(super) fn refused(&self, why: &str) {
        {
            let data = &mut *self.data();
            assert!(!data.is_shared && !data.history.is_led, "refused without a reason: {why}");
            data.note(|| format!("refused: {why}"));
            let last = data.saves.iter().rfind(|save| data.is_certain(save)).cloned();
            data.load(last.expect("the folder leads to its beginning"));
        }
        self.cut();
    }
}
