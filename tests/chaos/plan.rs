//! What a round does: everything in it follows from one number.

use std::time::Duration;

use fastrand::Rng;

use crate::daemon::Settings;
use crate::proxy::{Act, Direction, Fault, Weather};
use crate::server::Persistence;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub(crate) enum Kind {
    /// kill -9 of the daemon
    KillDaemon,
    /// kill -9 of the daemon soon after its start
    KillInRecovery,
    /// kill -9 of the daemon while it writes a snapshot
    KillInSnapshot,
    /// SIGTERM to the daemon
    StopDaemon,
    /// SIGSTOP to the daemon for a while
    PauseDaemon,
    /// kill -9 of Redis
    CrashRedis,
    /// kill -9 of both
    CrashBoth,
    /// Redis put back to older data while the daemon runs
    RollBackRunning,
    /// Redis put back to older data while the daemon is down
    RollBackDown,
    /// the connection cut after some bytes
    Cut,
    /// the connection stalled after some bytes
    Stall,
    /// the connection cut, and what was sent on it delivered late
    Late,
    /// items pushed to the claimed ones by somebody else
    Meddle,
}

impl Kind {
    pub(crate) fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether no daemon runs any more after it.
    pub(crate) fn ends_daemon(self) -> bool {
        matches!(
            self,
            Self::KillDaemon
                | Self::KillInRecovery
                | Self::KillInSnapshot
                | Self::StopDaemon
                | Self::CrashBoth
                | Self::RollBackDown
        )
    }
}

/// How often each kind is drawn, against the others.
const WEIGHTS: &[(Kind, u32)] = &[
    (Kind::KillDaemon, 22),
    (Kind::KillInRecovery, 8),
    (Kind::KillInSnapshot, 8),
    (Kind::StopDaemon, 3),
    (Kind::PauseDaemon, 3),
    (Kind::CrashRedis, 8),
    (Kind::CrashBoth, 6),
    (Kind::RollBackRunning, 5),
    (Kind::RollBackDown, 5),
    (Kind::Cut, 24),
    (Kind::Stall, 3),
    (Kind::Late, 10),
    (Kind::Meddle, 3),
];

/// A round.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) persistence: Persistence,
    pub(crate) settings: Settings,
    /// How many of 100 items are new.
    pub(crate) new_percent: u8,
    pub(crate) steps: Vec<Step>,
}

/// A fault, and what is before it.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// How many items are fed.
    pub(crate) feed: u64,
    /// Redis saves, where saves are how it keeps its data.
    pub(crate) save: bool,
    /// A copy of Redis's data is taken, to be put back later.
    pub(crate) copy: bool,
    pub(crate) weather: Weather,
    /// The fault strikes once so much of what waits, of 1000, is gone.
    pub(crate) progress: u64,
    /// And so much later.
    pub(crate) delay: Duration,
    pub(crate) kind: Kind,
    /// What the network does, where the fault is of that kind.
    pub(crate) network: Option<Fault>,
    /// A number for whatever else the fault has to choose.
    pub(crate) draw: u64,
}

impl Plan {
    /// The round of this seed: so many steps, of these kinds only if there are any.
    pub(crate) fn draw(seed: u64, steps: usize, kinds: &[Kind]) -> Self {
        let mut random = Rng::with_seed(seed);
        let persistence =
            [Persistence::Always, Persistence::EverySecond, Persistence::Saves][random.usize(0..3)];
        let new_percent = [5, 30, 30, 60][random.usize(0..4)];
        let mut settings = Settings::draw(&mut random);
        // Batches enough for the fault to strike among them.
        let feed = (settings.batch * random.u64(10..60)).clamp(200, 15_000);
        let steps: Vec<Step> = (0..steps).map(|_| Step::draw(&mut random, feed, kinds)).collect();
        let items: u64 = steps.iter().map(|step| step.feed).sum();
        // At the error rate of the settings; past it false positives would pass for losses. Twice:
        // what Redis forgot is fed again, and differs.
        settings.capacity = (2 * items * u64::from(new_percent) / 100).max(1000);
        Self { seed, persistence, settings, new_percent, steps }
    }
}

impl Step {
    fn draw(random: &mut Rng, feed: u64, kinds: &[Kind]) -> Self {
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

fn draw_kind(random: &mut Rng, kinds: &[Kind]) -> Kind {
    let drawn = WEIGHTS.iter().filter(|(kind, _)| kinds.is_empty() || kinds.contains(kind));
    let sum: u32 = drawn.clone().map(|(_, weight)| weight).sum();
    let mut at = random.u32(0..sum);
    for &(kind, weight) in drawn {
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
    // Evenly by order of size: into a command, a batch, and behind several.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_follows_from_its_seed() {
        let plan = |seed| format!("{:?}", Plan::draw(seed, 50, &[]));
        assert_eq!(plan(1), plan(1));
        assert_ne!(plan(1), plan(2));
    }

    #[test]
    fn only_the_wanted_kinds_are_drawn_and_all_of_them() {
        let kinds = |wanted: &[Kind]| {
            let plan = Plan::draw(1, 2_000, wanted);
            let mut kinds: Vec<Kind> = plan.steps.iter().map(|step| step.kind).collect();
            kinds.sort();
            kinds.dedup();
            kinds
        };
        assert_eq!(kinds(&[Kind::Cut, Kind::Late]), [Kind::Cut, Kind::Late]);
        assert_eq!(kinds(&[]).len(), WEIGHTS.len());
    }
}
