//! Clients that let the daemon forget items while batches with these items are in flight.

use std::time::Duration;

use tokio::time::sleep;

use super::items::{self, ITEMS, Treatment};
use super::oracle::Tally;
use super::world::World;
use urlseen_engine::engine::query::{Extra, Reply};
use urlseen_engine::engine::{Answer, Question, Wanted};
use urlseen_engine::item::{Identity, Reader};

/// Number of different items that are forgotten.
const FORGOTTEN: u32 = 5;

/// Maximum number of attempts to forget items without a new session of the daemon meanwhile.
const ATTEMPTS: usize = 3;

impl World {
    /// Feeds items, and asks the daemon to forget them meanwhile. Checks that each item passes
    /// once, and once more for each answer that it was seen and is forgotten. So an item that was
    /// in flight when it was forgotten must not be set by its commit. Half of the checks also kill
    /// the daemon after the commits: then the log must lead to the same filter.
    pub(super) async fn forget_in_flight(&self) {
        if self.data().is_shared {
            return;
        }
        for _ in 0..ATTEMPTS {
            self.all_done().await;
            self.later(1).await;
            let start = self.any_item();
            let numbers = (start..).map(|number| number % ITEMS);
            let is_filtered = |number: &u32| items::treatment(*number) == Treatment::Filtered;
            let numbers: Vec<_> = numbers.filter(is_filtered).take(FORGOTTEN as usize).collect();
            if self.forget_these(&numbers).await.is_some() {
                return;
            }
        }
    }

    /// Makes one check. Returns `None` without a result if the server returned with other data, or
    /// if a new session began while batches were in flight. Such a session aborts batches, and
    /// their items pass again without another answer.
    async fn forget_these(&self, numbers: &[u32]) -> Option<()> {
        self.forget(numbers.iter().copied());
        self.all_done().await;
        let (before, loads, sessions) = {
            let data = self.data();
            (Tally::of(&data.state), data.loads, data.sessions)
        };
        let mut expected = vec![1; numbers.len()];
        for _ in 0..=self.draw(3) {
            let some = |_| numbers[self.number(numbers.len())];
            self.feed((0..2 * FORGOTTEN).map(some));
            sleep(Duration::from_micros(self.draw(10_000))).await;
            let answers = self.ask_to_forget(numbers).await?.answers;
            for (expected, answer) in expected.iter_mut().zip(answers) {
                *expected += usize::from(answer == Answer::Seen);
            }
        }
        self.all_done().await;
        if self.data().sessions != sessions {
            return None;
        }
        if self.draw(2) == 0 {
            self.note(|| "the daemon is killed after it has forgotten items".to_owned());
            self.kill();
        }
        self.feed(numbers.iter().copied());
        self.all_done().await;
        if self.data().loads != loads {
            return None;
        }
        let after = Tally::of(&self.data().state);
        for (&number, expected) in numbers.iter().zip(expected) {
            let index = number as usize;
            let times = after.emitted[index] - before.emitted[index];
            assert_eq!(times, expected, "{number} was forgotten while it could be in flight");
        }
        self.data().forgotten_in_flight += 1;
        Some(())
    }

    /// Asks the daemon to forget items, as a client of its endpoint does. Returns `None` if the
    /// daemon ends before its answers.
    async fn ask_to_forget(&self, numbers: &[u32]) -> Option<Reply> {
        let (asker, questions) = {
            let data = &mut *self.data();
            let mut reader = Reader::new(data.reading.clone().expect("the crawl has begun"));
            let mut questions = Vec::new();
            for &number in numbers {
                data.forgets[number as usize] += 1;
                let item = items::item(number);
                let Ok(Identity::Fingerprint(fingerprint)) =
                    reader.read(&item).map(|item| item.identity)
                else {
                    panic!("{number} has no fingerprint");
                };
                questions.push(Question { wanted: Wanted::Forget, fingerprint });
            }
            (data.asker.clone()?, questions)
        };
        let reply = asker.ask(questions, Extra::Nothing).await;
        self.note(|| format!("asked to forget {numbers:?}: {reply:?}"));
        reply
    }
}
