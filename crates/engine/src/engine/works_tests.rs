//! Tests of [`Works`] while the disk does not answer.

use crossbeam_channel::bounded;
use tempfile::TempDir;

use super::query::{self, Asker, Extra};
use super::store::{Keeping, Local};
use super::tests::{batch, engine, engine_for, urls};
use super::*;
use urlseen_filter::choice::Fsync;
use urlseen_filter::{FilterSpec, Kind, Parameters, Seed, Sizing};
use urlseen_fingerprint::Request;
use urlseen_fingerprint::{Algorithm, Fingerprint, Fingerprinter};
use urlseen_storage::{Folder, Head, StoragePolicy, StorageSpec};

pub(crate) fn works(folder: &TempDir) -> (Works, Asker) {
    let sizing = Sizing::new("10000".parse().unwrap(), "1e-12".parse().unwrap());
    let filter = FilterSpec {
        parameters: Parameters::native(&sizing, Some(Seed::new(1))),
        fingerprint: Algorithm::Scrapy.into(),
    };
    let keeping = Keeping {
        spec: StorageSpec { crawl: "works".to_owned(), filter },
        policy: StoragePolicy { fsync: Fsync::Always, ..StoragePolicy::default() },
        emit_again: false,
    };
    let mut local = Local::kept(engine(2), Folder::open(folder.path()).unwrap(), keeping);
    local.recover_to(None, None).unwrap();
    let (asker, dispatcher) = query::open(0);
    (local.work(dispatcher).unwrap(), asker)
}

/// Returns a filter that grows, without a folder.
pub(crate) fn growing() -> Works {
    let value = |name| match name {
        "filter.capacity" | "filter.seed" => Some("1".to_owned()),
        "filter.grow_to" => Some("10000000".to_owned()),
        "filter.error_rate" => Some("1e-9".to_owned()),
        _ => None,
    };
    let engine = engine_for(Kind::TWO_CHOICE.read(&value).unwrap(), 1);
    Works::new(engine, None, query::open(0).1)
}

pub(crate) fn question(wanted: Wanted, number: u32) -> Question {
    let url = &urls([number])[0];
    let fingerprint: Fingerprint =
        Fingerprinter::new(Algorithm::Scrapy).fingerprint(&Request::get(url)).unwrap();
    Question { wanted, fingerprint }
}

/// Logs a judged batch. Panics if a batch is already ready.
fn log(works: &mut Works, event: Result<Event, WorksError>) {
    match event.unwrap() {
        Event::Judged(batch) => works.log(batch),
        Event::Ready(_) => panic!("ready before the log has it"),
        _ => {}
    }
}

/// Processes events until `answer` is ready. Panics if a batch becomes ready before that.
async fn answered<T>(works: &mut Works, answer: impl Future<Output = T>) -> T {
    let mut answer = std::pin::pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return answer,
            event = works.next(true) => log(works, event),
        }
    }
}

/// Point 4 of the proof in ARCHITECTURE.md: a batch is logged before its commit. Catches two
/// errors: a task that waits for a disk that does not answer, and a task that continues without the
/// log.
#[test]
fn a_disk_that_does_not_answer_stops_commits_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (mut works, asker) = works(&folder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (answer, hang) = bounded::<()>(0);
        let storage = works.storage.as_ref().unwrap();
        // Blocks the thread of the folder, like a disk that does not answer.
        let hanging = storage.call(move |_| hang.recv());
        for numbers in [0..10, 5..15, 10..20] {
            works.engine.submit(batch(&urls(numbers)));
        }
        // A query without changes needs no disk.
        let reply =
            answered(&mut works, asker.ask(vec![question(Wanted::Test, 99)], Extra::Nothing)).await;
        assert_eq!(reply.unwrap().answers, [Answer::Unseen]);
        // An addition is answered after the log has it.
        let adding = asker.ask(vec![question(Wanted::Add, 50)], Extra::Nothing);
        let mut adding = std::pin::pin!(adding);
        let mut asked = 0;
        // The query is accepted, and then its addition is handed to the log.
        while asked < 2 {
            tokio::select! {
                biased;
                _ = &mut adding => panic!("answered before the log has it"),
                event = works.next(true) => {
                    asked += usize::from(matches!(event, Ok(Event::Asked)));
                    log(&mut works, event);
                }
            }
        }
        answer.send(()).unwrap();
        hanging.await.unwrap().unwrap();
        let (mut base, mut added) = (Head::START, Vec::new());
        while added.len() < 3 {
            match works.next(false).await.unwrap() {
                Event::Judged(batch) => works.log(batch),
                Event::Ready(batch) => {
                    assert_eq!(batch.base(), base);
                    base = batch.head();
                    added.push(batch.findings.added.len());
                }
                _ => {}
            }
        }
        assert_eq!(added, [10, 5, 5]);
        let reply = answered(&mut works, adding).await;
        assert_eq!(reply.unwrap().answers, [Answer::Unseen]);
        assert_eq!((works.in_progress(), works.is_asked()), (0, false));
    });
}
