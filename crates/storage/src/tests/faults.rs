//! Faults at every step of a crawl: the process is killed there, the step fails, or the disk is
//! full. The next process must find everything that counts, and nothing else.

use urlseen_filter::choice::Fsync;

use super::super::inspect::look_on;
use super::random::{Random, seeds};
use super::testing::Fault;
use super::world::{Op, World};

/// Every kind of step, most of them in several states of the folder.
const CRAWL: &[Op] = &[
    Op::Append,
    Op::Append,
    Op::Adds,
    Op::Commit,
    Op::Append,
    Op::Adds,
    Op::Cut,
    Op::Append,
    Op::CommitButOne,
    Op::Snapshot { split: false },
    Op::Append,
    Op::Adds,
    Op::Append,
    Op::Commit,
    Op::Snapshot { split: true },
    Op::Append,
    Op::Roll,
    Op::Adds,
    Op::CommitButOne,
    Op::Close,
    Op::Append,
    Op::Commit,
    Op::Snapshot { split: false },
    Op::Append,
    Op::Commit,
    Op::Append,
    Op::Adds,
    Op::Roll,
    Op::Append,
    Op::Adds,
    Op::Reopen,
    Op::Snapshot { split: true },
    Op::RollBack(2),
    Op::Append,
    Op::Commit,
    Op::Rebase,
    Op::Append,
    Op::Commit,
    Op::Append,
    Op::Reopen,
];

/// Runs the crawl until its end or the fault.
fn crawl(world: &mut World) {
    let _ = world.start().and_then(|()| CRAWL.iter().try_for_each(|&op| world.apply(op)));
}

/// Folders that keep all snapshots, that keep the newest, and that also have an archive.
const KEPT: [Kept; 3] = [Kept::All, Kept::Newest, Kept::Archive];

#[derive(Debug, Clone, Copy)]
enum Kept {
    All,
    Newest,
    Archive,
}

impl Kept {
    fn world(self, fsync: Fsync) -> World {
        match self {
            Self::All => World::new(fsync, true, 1),
            Self::Newest => World::new(fsync, false, 1),
            Self::Archive => World::new(fsync, false, 1).archived(),
        }
    }
}

/// Returns the number of steps of the crawl.
fn steps(fsync: Fsync, kept: Kept) -> usize {
    let mut world = kept.world(fsync);
    world.start().unwrap();
    for &op in CRAWL {
        world.apply(op).unwrap();
    }
    world.check_all();
    let has_archive = world.disk.files().keys().any(|name| name.starts_with("archive-"));
    assert_eq!(has_archive, matches!(kept, Kept::Archive));
    world.disk.steps()
}

/// Continues for a few steps after the fault.
fn go_on(world: &mut World) {
    world.start().expect("it can start again");
    for op in [Op::Append, Op::Adds, Op::Commit, Op::Snapshot { split: true }, Op::Append] {
        world.apply(op).expect("it goes on");
    }
    world.stop();
    world.check_all();
}

/// Step 4 of the proof in ARCHITECTURE.md: every batch that was written before a kill is there.
#[test]
fn killed_at_every_step_nothing_is_lost() {
    for kept in KEPT {
        for step in 0..steps(Fsync::Never, kept) {
            let mut world = kept.world(Fsync::Never);
            world.disk.fault_at(step, Fault::Killed);
            crawl(&mut world);
            assert!(world.disk.has_struck(), "step {step}");
            world.put_disk(world.disk.after_kill(), false);
            world.check_all();
            go_on(&mut world);
        }
    }
}

/// Step 4 of the proof in ARCHITECTURE.md: every batch that was synced before a crash is there, and
/// a batch that was lost without a sync is noticed and counted.
#[test]
fn without_power_at_every_step_nothing_synced_is_lost() {
    let cases = [
        (Fsync::Always, Kept::Newest),
        (Fsync::Always, Kept::Archive),
        (Fsync::Never, Kept::Newest),
    ];
    for (fsync, kept) in cases {
        for (step, seed) in (0..steps(fsync, kept)).flat_map(|step| [(step, 0), (step, 1)]) {
            let mut world = kept.world(fsync);
            world.disk.fault_at(step, Fault::Killed);
            crawl(&mut world);
            let mut random = Random::new(1000 * seed + step as u64);
            let disk = world.disk.after_power_loss(&mut random.draw());
            world.put_disk(disk, fsync == Fsync::Never);
            world.check_all();
            go_on(&mut world);
        }
    }
}

/// After a cut, the adds behind it say that all earlier records are on the disk. A record that the
/// disk lost must not count as damaged because of them.
#[test]
fn a_cut_without_power_makes_no_lost_record_count_as_damaged() {
    let ops =
        [Op::Append, Op::Append, Op::Commit, Op::Roll, Op::Adds, Op::Append, Op::Adds, Op::Cut];
    for (step, seed) in (0..40).flat_map(|step| (0..16).map(move |seed| (step, seed))) {
        let mut world = World::new(Fsync::Never, false, 1);
        world.start().unwrap();
        world.disk.fault_at(step, Fault::Killed);
        let _ = ops.iter().try_for_each(|&op| world.apply(op));
        let mut random = Random::new(1000 * seed + step as u64);
        let disk = world.disk.after_power_loss(&mut random.draw());
        world.put_disk(disk, true);
        world.check_all();
    }
}

#[test]
fn a_failed_step_loses_nothing() {
    for fault in [Fault::Failing, Fault::Full] {
        for (fsync, kept) in [
            (Fsync::Never, Kept::Newest),
            (Fsync::Never, Kept::Archive),
            (Fsync::Always, Kept::Newest),
        ] {
            for step in 0..steps(fsync, kept) {
                let mut world = kept.world(fsync);
                world.disk.fault_at(step, fault);
                crawl(&mut world);
                assert!(world.disk.has_struck(), "step {step}");
                world.disk.mend();
                world.stop();
                world.check_all();
                let lost = world.disk.after_power_loss(&mut Random::new(step as u64).draw());
                if fsync == Fsync::Always {
                    world.put_disk(lost, false);
                    world.check_all();
                }
                go_on(&mut world);
            }
        }
    }
}

/// A daemon refuses a damaged folder if Redis knows nothing of the crawl. So a crash before the
/// first batch must not damage the folder.
#[test]
fn a_crash_before_the_first_batch_leaves_no_damage() {
    for fault in [Fault::Killed, Fault::Full] {
        for step in 0..40 {
            let mut world = World::new(Fsync::Always, false, 1);
            world.disk.fault_at(step, fault);
            let _ = world.start();
            for seed in 0..8 {
                let mut random = Random::new(1000 * seed + step as u64);
                let disk = world.disk.after_power_loss(&mut random.draw());
                let damages = look_on(&disk.dir()).unwrap().damages;
                assert_eq!(damages, [], "{fault:?} at step {step}, seed {seed}");
            }
        }
    }
}

/// Steps 5, 6 and 7 of the proof in ARCHITECTURE.md: the folder recovers to any head that Redis may
/// know, and continues there.
#[test]
fn random_crawls_recover_from_random_faults() {
    for seed in seeds(400) {
        println!("TEST_SEED={seed}");
        let mut random = Random::new(seed);
        let fsync = [Fsync::Never, Fsync::Always][random.below(2)];
        let mut world = World::new(fsync, random.once_in(2), seed);
        if random.once_in(2) {
            world = world.archived();
        }
        world.start().unwrap();
        for _ in 0..40 {
            let op = match random.below(16) {
                0 | 1 => Op::Adds,
                2 | 3 => Op::Commit,
                4 => Op::CommitButOne,
                5 => Op::Roll,
                6 | 7 => Op::Snapshot { split: random.once_in(2) },
                8 => Op::Cut,
                9 => Op::Close,
                10 => Op::Reopen,
                11 => Op::RollBack(random.below(4)),
                12 if random.once_in(3) => Op::Rebase,
                _ => Op::Append,
            };
            if random.once_in(4) {
                let fault = [Fault::Killed, Fault::Failing, Fault::Full][random.below(3)];
                world.disk.fault_at(random.below(12), fault);
            }
            if world.apply(op).is_ok() && !random.once_in(20) {
                world.disk.mend();
                continue;
            }
            // Either the machine loses power, or the process is killed.
            if random.once_in(2) {
                let disk = world.disk.after_power_loss(&mut random.draw());
                world.put_disk(disk, fsync == Fsync::Never);
            } else {
                world.put_disk(world.disk.after_kill(), false);
            }
            world.check_all();
            while world.start().is_err() {
                world.put_disk(world.disk.after_kill(), false);
            }
        }
        world.stop();
        world.check_all();
    }
}
