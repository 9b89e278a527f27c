//! `urlseen rejects` while other programs change the lists, processes die, or Redis refuses
//! commands.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use redis::{Commands, Connection};
use rustix::process::Signal;
use urlseen_cli::config::{Config, Sources};
use urlseen_redis::protocol::{Fate, RejectsList};
use urlseen_redis::reject::Reject;

use super::{ASIDE, Lists, NO_TAB, REJECTED, SOURCE, numbers};
use crate::util::wait::{SOON, wait_until};

/// Checks that each number exists exactly once in all lists together.
#[track_caller]
fn assert_all_there(lists: &mut Lists, count: usize) {
    let found = [lists.source_items(), lists.rejected_items()].concat();
    assert_eq!(found.len(), count, "lost or doubled");
    let found = found.iter().map(|item| item.parse().unwrap()).collect::<BTreeSet<usize>>();
    assert!(found.into_iter().eq(0..count), "lost and doubled");
}

#[test]
fn rejects_that_are_added_during_a_requeue_are_kept() {
    const AT_FIRST: usize = 50_000;
    for arguments in [&["requeue"][..], &["requeue", "--reason", NO_TAB]] {
        let mut lists = Lists::new();
        lists.reject_numbers(0..AT_FIRST);
        let mut run = lists.run(arguments).start();
        let mut next = AT_FIRST;
        while run.is_running() {
            lists.reject_numbers(next..next + 10);
            next += 10;
        }
        let output = run.output(SOON);
        assert_eq!(output.code(), Some(0), "{output:?}");
        assert_all_there(&mut lists, next);
        assert_eq!(lists.len(ASIDE), 0);
        let (source, rejected) = (lists.source_items(), lists.rejected_items());
        // All of the first rejects are gone, or every second one.
        let step = if arguments.contains(&NO_TAB) { 2 } else { 1 };
        let begun = source.len() * step;
        let kept = (1..begun).step_by(2).filter(|_| step == 2);
        assert!((AT_FIRST..=next).contains(&begun), "{begun} of {next}");
        assert!(source == numbers((0..begun).step_by(step)));
        assert!(rejected == numbers(kept.chain(begun..next)));
    }
}

#[test]
fn a_killed_command_loses_and_repeats_nothing() {
    const COUNT: usize = 60_000;
    let mut lists = Lists::new();
    lists.reject_numbers(0..COUNT);
    let mut killed = 0;
    for round in 0..10 {
        let before = lists.len(SOURCE);
        let reason = if round % 2 == 0 { NO_TAB } else { "" };
        let mut run = lists.run(&["requeue", "--reason", reason]).start();
        let target = before + 50 + 397 * round;
        wait_until(SOON, "progress", || lists.len(SOURCE) >= target || !run.is_running());
        if run.is_running() {
            run.signal(Signal::KILL);
        }
        killed += usize::from(run.output(SOON).code().is_none());
        assert_all_there(&mut lists, COUNT);
        let listed = lists.run(&["list", "--limit", "0"]).output();
        assert_eq!(listed.text().lines().count(), COUNT - lists.len(SOURCE), "{listed:?}");
    }
    assert!(killed > 5, "{killed} of 10 were killed in the middle");
    let output = lists.run(&["requeue"]).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert_eq!((lists.len(SOURCE), lists.len(REJECTED), lists.len(ASIDE)), (COUNT, 0, 0));
    assert_all_there(&mut lists, COUNT);
}

/// After the command has read the rejects, and before it moves them, another program moves one
/// reject or all rejects.
#[test]
fn rejects_changed_meanwhile_are_read_again() {
    type Change = fn(&mut Connection);
    const COUNT: usize = 2000;
    let changes: [(Change, usize); 3] = [
        (|connection| move_first(connection, ASIDE), COUNT),
        (|connection| move_first(connection, REJECTED), COUNT - 1),
        (|connection| connection.rename(ASIDE, REJECTED).unwrap(), 0),
    ];
    for (change, gone) in changes {
        let mut lists = Lists::new();
        lists.reject_numbers(0..COUNT);
        let set = vec![format!("redis.url={}", lists.server.url())];
        let config = Config::load(Sources { set, ..Sources::default() }).unwrap();
        let (mut connection, is_changed) = (lists.server.connection(), Cell::new(false));
        let connection = RefCell::new(&mut connection);
        let wanted = |_: &Reject| {
            if !is_changed.replace(true) {
                change(&mut connection.borrow_mut());
            }
            true
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sorted = runtime.block_on(async {
            let list = RejectsList::open(&config.redis.url, config.keys(), config.list()).await;
            list.unwrap().sort(Fate::Requeue, wanted, |_, _| ()).await
        });
        assert_eq!(sorted.unwrap().gone, gone as u64);
        assert_all_there(&mut lists, COUNT);
        assert_eq!((lists.len(SOURCE), lists.len(ASIDE)), (gone, 0));
    }
}

/// Moves the first reject that the command has set aside to the end of a list.
fn move_first(connection: &mut Connection, to: &str) {
    let mut command = redis::cmd("LMOVE");
    command.arg(ASIDE).arg(to).arg("LEFT").arg("RIGHT").exec(connection).unwrap();
}

#[test]
fn two_commands_at_once_lose_and_repeat_nothing() {
    const COUNT: usize = 30_000;
    let mut lists = Lists::new();
    lists.reject_numbers(0..COUNT);
    let start = || lists.run(&["requeue"]).start();
    for run in [start(), start(), start()] {
        let output = run.output(SOON);
        assert_eq!(output.code(), Some(0), "{output:?}");
    }
    assert_all_there(&mut lists, COUNT);
    let output = lists.run(&["requeue"]).output();
    assert_eq!(output.code(), Some(0), "{output:?}");
    assert_eq!(lists.len(SOURCE), COUNT);
}
