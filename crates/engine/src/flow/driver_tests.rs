//! Tests of a flow while the disk does not answer.

use std::io;

use crossbeam_channel::bounded;
use tokio::sync::mpsc;

use super::driver::{Audience, Effect, Flow, Progress};
use super::feed::{Bad, Page, Pages};
use crate::engine::query::Extra;
use crate::engine::works_tests::{growing, question, works};
use crate::engine::{Answer, Wanted, Works};
use crate::item::batch::{Batch, Judged};

/// Number of unseen items in each batch whose effect has happened, in order.
struct Effects(mpsc::UnboundedSender<usize>);

impl Effect for Effects {
    fn apply(&mut self, _: &Page, batch: &Batch<Judged>) -> io::Result<()> {
        self.0.send(batch.findings.onward.len()).unwrap();
        Ok(())
    }
}

/// Audience that accepts no message.
struct Silent;

impl Audience for Silent {
    fn say(&mut self, words: &str) {
        panic!("{words}");
    }

    fn bad(&mut self, bad: &Bad) {
        panic!("{bad}");
    }

    fn progress(&mut self, _: &Progress) {}
}

fn page(numbers: std::ops::Range<u32>) -> Page {
    let urls: Vec<String> = numbers.map(|number| format!("http://example.com/{number}")).collect();
    Page { items: urls.iter().map(String::as_bytes).collect(), ..Page::default() }
}

/// Catches two errors: a flow that waits for the disk, and a flow that continues with the next
/// effect before the log has the previous batch.
#[test]
fn a_disk_that_does_not_answer_allows_one_effect_and_all_questions() {
    let folder = tempfile::tempdir().unwrap();
    let (mut works, asker) = works(&folder);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (answer, hang) = bounded::<()>(0);
        // Blocks the folder's thread, like a disk that does not answer.
        let hanging = works.storage.as_ref().unwrap().call(move |_| hang.recv());
        let (feed, receiver) = mpsc::channel(8);
        for numbers in [0..10, 5..15, 10..20] {
            feed.try_send(Ok(page(numbers))).unwrap();
        }
        let (effects, mut happened) = mpsc::unbounded_channel();
        let flow = Flow {
            works: &mut works,
            pages: Pages { expected: 0, receiver },
            effect: Some(&mut Effects(effects)),
            fill: None,
            remedy: "",
            audience: &mut Silent,
        };
        let clients = async {
            // A test changes nothing, so it needs no disk. The engine answers after it has judged
            // the pages.
            let mut is_seen = false;
            while !is_seen {
                let reply = asker.ask(vec![question(Wanted::Test, 19)], Extra::Nothing).await;
                is_seen = reply.unwrap().answers == [Answer::Seen];
            }
            assert_eq!(happened.recv().await, Some(10));
            // The flow has every judged batch now. It gets one more turn before the next check.
            tokio::task::yield_now().await;
            assert!(happened.is_empty());
            answer.send(()).unwrap();
            hanging.await.unwrap().unwrap();
            drop(feed);
            [happened.recv().await, happened.recv().await]
        };
        let (ended, later) = tokio::join!(flow.run(), clients);
        let (count, ended) = ended.unwrap();
        ended.unwrap();
        assert_eq!((count.read, count.new, count.seen), (30, 20, 10));
        assert_eq!(later, [Some(5), Some(5)]);
    });
}

/// Fails if the filter grows step by step while an import of known size adds its keys.
#[test]
fn an_import_lets_the_filter_grow_once() {
    let mut works = growing();
    let bytes = |works: &Works| works.engine.handle.gauge.fill().bytes;
    let before = bytes(&works);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime
        .block_on(async {
            let (feed, receiver) = mpsc::channel(1);
            feed.try_send(Ok(Page { read: 1, ..page(0..1000) })).unwrap();
            drop(feed);
            let pages = Pages { expected: 1000, receiver };
            let (fill, remedy) = (None, "");
            let works = &mut works;
            Flow { works, pages, effect: None, fill, remedy, audience: &mut Silent }.run().await
        })
        .unwrap()
        .1
        .unwrap();
    assert!(bytes(&works) > before + 1_000_000, "{} bytes", bytes(&works));
}
