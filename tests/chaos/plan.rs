//! Plan of a round. Its seed determines all of it.

use std::time::Duration;

use fastrand::Rng;

use crate::daemon::{FilterPlace, Settings};
use crate::proxy::{Act, Direction, Fault, Weather};
use crate::server::Persistence;

/// Kind of fault. The comments are the help of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub(crate) enum Kind {
    /// the daemon is killed (SIGKILL) at any time
    KillDaemon,
    /// the daemon is killed (SIGKILL) soon after its start
    KillInRecovery,
    /// the daemon is killed (SIGKILL) while it writes a snapshot
    KillInSnapshot,
    /// the daemon is stopped (SIGTERM)
    StopDaemon,
    /// the daemon is paused (SIGSTOP) for some time
    PauseDaemon,
    /// the Redis server is killed (SIGKILL)
    CrashRedis,
    /// the daemon and Redis are killed (SIGKILL)
    CrashBoth,
    /// Redis gets older data while the daemon runs
    RollBackRunning,
    /// Redis gets older data while no daemon runs
    RollBackDown,
    /// a connection is cut after some bytes
    Cut,
    /// a connection stalls after some bytes
    Stall,
    /// a connection is cut, and the bytes that were sent on it arrive late
    Late,
    /// another program adds items to the claimed ones
    Meddle,
    /// a bit of the log or a snapshot is flipped while no daemon runs
    FlipBit,
    /// the end of the log is cut off while no daemon runs
    TearLog,
    /// an old copy of the storage folder is restored
    OldFolder,
    /// a second daemon is started beside the first
    SecondDaemon,
    /// the daemon is killed or stopped while a standby waits
    TakeOver,
    /// the daemon is paused (SIGSTOP) until its lease has ended
    Freeze,
    /// the disk with the storage folder is full
    DiskFull,
    /// syncs of the daemon fail
    SyncFails,
}

impl Kind {
    /// Returns true if the fault damages the storage folder or its disk.
    fn is_of_folder(self) -> bool {
        matches!(
            self,
            Self::KillInSnapshot
                | Self::FlipBit
                | Self::TearLog
                | Self::OldFolder
                | Self::DiskFull
                | Self::SyncFails
        )
    }

    pub(crate) fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Kinds of faults. Each is drawn in proportion to its weight.
const WEIGHTS: &[(Kind, u32)] = &[
    (Kind::KillDaemon, 220),
    (Kind::KillInRecovery, 80),
    (Kind::KillInSnapshot, 80),
    (Kind::StopDaemon, 30),
    (Kind::PauseDaemon, 30),
    (Kind::CrashRedis, 80),
    (Kind::CrashBoth, 60),
    (Kind::RollBackRunning, 60),
    (Kind::RollBackDown, 60),
    (Kind::Cut, 240),
    (Kind::Stall, 30),
    (Kind::Late, 100),
    (Kind::Meddle, 30),
    (Kind::FlipBit, 50),
    (Kind::TearLog, 50),
    (Kind::OldFolder, 40),
    (Kind::SecondDaemon, 15),
    (Kind::TakeOver, 40),
    // This fault takes as long as a lease lasts.
    (Kind::Freeze, 7),
    (Kind::DiskFull, 30),
    (Kind::SyncFails, 15),
];

/// Sequence of events of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// random faults, one after the other
    Faults,
    /// two histories with the same number of batches
    Histories,
}

impl Scenario {
    pub(crate) fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Chooses the scenario by the seed. Fifteen of sixteen seeds give random faults.
    fn of_seed(seed: u64) -> Self {
        match seed % 16 {
            1 => Self::Histories,
            _ => Self::Faults,
        }
    }
}

/// Plan of a round. All values are drawn from its seed.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) scenario: Scenario,
    pub(crate) persistence: Persistence,
    pub(crate) settings: Settings,
    /// Percentage of items that are new.
    pub(crate) new_percent: u8,
    /// True if the storage folder is on its own small disk.
    pub(crate) own_disk: bool,
    pub(crate) steps: Vec<Step>,
}

/// Fault with its preparation.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Number of items to feed before the fault.
    pub(crate) feed: u64,
    /// True if Redis saves its data before the fault. This has an effect only if Redis has the
    /// persistence `Saves`.
    pub(crate) save: bool,
    /// True if a copy of Redis's data is taken before the fault. A later fault can restore this
    /// copy.
    pub(crate) copy: bool,
    pub(crate) weather: Weather,
    /// Share of the waiting items, in thousandths, that must be committed before the fault strikes.
    pub(crate) progress: u64,
    /// Further delay after this progress, before the fault strikes.
    pub(crate) delay: Duration,
    pub(crate) kind: Kind,
    /// Fault of the network, if `kind` is a fault of the network.
    pub(crate) network: Option<Fault>,
    /// Random number for all other choices of the fault.
    pub(crate) draw: u64,
}

impl Plan {
    /// Draws the round of this seed, with this number of steps. `scenario` replaces the drawn
    /// scenario. If `kinds` is not empty, only these kinds of faults are drawn.
    pub(crate) fn draw(
        seed: u64,
        scenario: Option<Scenario>,
        steps: usize,
        kinds: &[Kind],
        place: FilterPlace,
    ) -> Self {
        let mut random = Rng::with_seed(seed);
        // Without a folder, the scenarios in which a folder lacks batches are impossible.
        let by_seed = || match (kinds, place) {
            ([], FilterPlace::Local) => Scenario::of_seed(seed),
            _ => Scenario::Faults,
        };
        let scenario = scenario.unwrap_or_else(by_seed);
        if scenario != Scenario::Faults {
            return Self::of_scenario(seed, scenario, &mut random);
        }
        let persistence =
            [Persistence::Always, Persistence::EverySecond, Persistence::Saves][random.usize(0..3)];
        let new_percent = [5, 30, 30, 60][random.usize(0..4)];
        let mut settings = Settings::draw(&mut random, place);
        // Enough batches are fed for the fault to strike between them.
        let feed = (settings.batch * random.u64(10..60)).clamp(200, 15_000);
        let steps: Vec<Step> = {
            let drawn = drawn(kinds, place);
            (0..steps).map(|_| Step::draw(&mut random, feed, &drawn)).collect()
        };
        let items: u64 = steps.iter().map(|step| step.feed).sum();
        // The filter must stay below its capacity, because false positives would look like lost
        // items. The capacity is doubled, because items that Redis lost are fed again with other
        // keys.
        settings.capacity = (2 * items * u64::from(new_percent) / 100).max(1000);
        let own_disk = steps.iter().any(|step| step.kind == Kind::DiskFull);
        Self { seed, scenario, persistence, settings, new_percent, own_disk, steps }
    }

    /// Plans a round with a scenario. Scenarios replace the data of Redis, and count batches.
    fn of_scenario(seed: u64, scenario: Scenario, random: &mut Rng) -> Self {
        let mut settings = Settings::draw(random, FilterPlace::Local);
        settings.batch = random.u64(4..12);
        settings.capacity = 20_000;
        Self {
            seed,
            scenario,
            persistence: Persistence::Saves,
            settings,
            new_percent: 60,
            own_disk: false,
            steps: Vec::new(),
        }
    }
}

impl Step {
    fn draw(random: &mut Rng, feed: u64, kinds: &[(Kind, u32)]) -> Self {
        let kind = draw_kind(random, kinds);
        Self {
            feed: random.u64(feed / 2..=feed * 3 / 2),
            save: random.u8(0..3) == 0,
            copy: random.u8(0..4) == 0,
            weather: draw_weather(random),
            progress: random.u64(0..900),
            delay: Duration::from_micros(random.u64(0..1500)),
            kind,
            network: draw_network(random, kind),
            draw: random.u64(..),
        }
    }
}

/// Returns the kinds to draw from, with their weights.
fn drawn(kinds: &[Kind], place: FilterPlace) -> Vec<(Kind, u32)> {
    // Without a folder, faults of the folder are impossible.
    let is_drawn = |kind: Kind| {
        (place == FilterPlace::Local || !kind.is_of_folder())
            && (kinds.is_empty() || kinds.contains(&kind))
    };
    WEIGHTS.iter().copied().filter(|&(kind, _)| is_drawn(kind)).collect()
}

fn draw_kind(random: &mut Rng, kinds: &[(Kind, u32)]) -> Kind {
    let sum: u32 = kinds.iter().map(|(_, weight)| weight).sum();
    let mut at = random.u32(0..sum);
    for &(kind, weight) in kinds {
        if at < weight {
            return kind;
        }
        at -= weight;
    }
    unreachable!("the number is below the sum of the weights")
}

fn draw_weather(random: &mut Rng) -> Weather {
    match random.u8(0..8) {
        0 => Weather { piece: Some(random.usize(1..200)), delay: Duration::ZERO },
        1 => Weather { piece: None, delay: Duration::from_micros(random.u64(100..3000)) },
        _ => Weather::default(),
    }
}

fn draw_network(random: &mut Rng, kind: Kind) -> Option<Fault> {
    let direction = [Direction::ToServer, Direction::ToClient][random.usize(0..2)];
    // Small and large numbers of bytes are equally probable, on a logarithmic scale. So faults
    // strike within a command, within a batch, and after several batches.
    let magnitude = random.u32(1..18);
    let bytes = random.u64(0..1 << magnitude);
    let (direction, act) = match kind {
        Kind::Cut => (direction, Act::Cut),
        Kind::Stall => (direction, Act::Stall(Duration::from_millis(random.u64(1..800)))),
        Kind::Late => (Direction::ToServer, Act::Late(Duration::from_millis(random.u64(0..200)))),
        _ => return None,
    };
    Some(Fault { direction, bytes, act })
}
