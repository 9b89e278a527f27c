//! Tests of questions that the engine answers while it judges batches.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::engine::tests::{batch, engine, engine_with_few_keys, fingerprints, onward, urls};
use crate::engine::*;

fn questions(wanted: Wanted, numbers: impl IntoIterator<Item = u32>) -> Vec<Question> {
    let all = fingerprints(&urls(numbers)).into_iter();
    all.map(|fingerprint| Question { wanted, fingerprint }).collect()
}

/// Asks, and returns all answers. Counts a group that is to be remembered.
async fn ask(engine: &mut Engine, questions: &[Question], to_remember: &mut usize) -> Vec<Answer> {
    engine.ask(0, questions);
    let Heard::Answers(answers) = engine.heard().await.unwrap() else { panic!("no answers") };
    *to_remember += 1;
    answers.answers
}

fn remember(engine: &mut Engine, groups: &mut usize) {
    for _ in 0..std::mem::take(groups) {
        engine.remember(None);
    }
}

#[tokio::test]
async fn answers_come_before_the_batches_that_were_judged_after_them() {
    for threads in [1, 2, 5] {
        let mut engine = engine(threads);
        for round in 0..200 {
            let number = round * 10;
            engine.ask(7, &questions(Wanted::Add, number..number + 8));
            engine.submit(batch(&urls(number..number + 10)));
            if round % 2 == 0 {
                // Both results are probably ready before the test receives one.
                engine.caught_up().await.unwrap();
            }
            let Heard::Answers(_) = engine.heard().await.unwrap() else {
                panic!("the batch overtook the answers that it depends on");
            };
            engine.remember(None);
            let judged = engine.judged().await.unwrap();
            assert_eq!(onward(&judged), urls([number + 8, number + 9]));
            engine.settle(Logged::START);
        }
    }
}

#[tokio::test]
async fn a_forgotten_fingerprint_passes_once() {
    let mut engine = engine(2);
    let mut asked = 0;
    ask(&mut engine, &questions(Wanted::Add, 0..3), &mut asked).await;
    remember(&mut engine, &mut asked);
    let forget = questions(Wanted::Forget, [0, 0, 1, 9]);
    let answers = ask(&mut engine, &forget, &mut asked).await;
    assert_eq!(answers, [Answer::Seen, Answer::Unseen, Answer::Seen, Answer::Unseen]);
    remember(&mut engine, &mut asked);
    assert_eq!(engine.tombstones(), 2);
    engine.submit(batch(&urls([0, 0, 2])));
    assert_eq!(onward(&engine.judged().await.unwrap()), urls([0]));
    // The batch is aborted, so the key passes again. The next batch with that key is committed.
    engine.abort();
    engine.submit(batch(&urls([0, 0])));
    assert_eq!(onward(&engine.judged().await.unwrap()), urls([0]));
    engine.settle(Logged::START);
    let add = ask(&mut engine, &questions(Wanted::Add, [0, 1, 1]), &mut asked).await;
    assert_eq!(add, [Answer::Seen, Answer::Unseen, Answer::Seen]);
    remember(&mut engine, &mut asked);
    engine.caught_up().await.unwrap();
    assert_eq!(engine.tombstones(), 0);
    assert_eq!(engine.handle.gauge.fill().counted, 3);
}

/// Model of the seen keys. If a key is not committed yet, the model has the batch in flight that
/// contains it.
#[derive(Default)]
struct Model {
    seen: HashMap<u128, Option<u64>>,
    /// The batches in flight, oldest first.
    batches: VecDeque<u64>,
    next: u64,
}

impl Model {
    /// Returns true if the key was not seen.
    fn add(&mut self, key: u128, batch: Option<u64>) -> bool {
        let is_new = !self.seen.contains_key(&key);
        self.seen.entry(key).or_insert(batch);
        is_new
    }

    fn commit(&mut self) {
        let oldest = self.batches.pop_front();
        for batch in self.seen.values_mut().filter(|batch| **batch == oldest) {
            *batch = None;
        }
    }

    fn drop_batches(&mut self) {
        self.batches.clear();
        self.seen.retain(|_, batch| batch.is_none());
    }
}

#[tokio::test]
async fn random_operations_in_random_order_agree_with_a_model() {
    for threads in [1, 2, 4] {
        agrees_with_a_model(engine(threads), 60).await;
    }
}

/// Rule G5: a forgotten key is not set again, also if another URL with the same key is in flight.
#[tokio::test]
async fn urls_with_the_same_key_are_forgotten_together() {
    for threads in [1, 2, 4] {
        let engine = engine_with_few_keys(threads);
        let keys: HashSet<_> = (0..400).map(|number| key(&engine, number)).collect();
        assert!((350..400).contains(&keys.len()), "{} keys", keys.len());
        agrees_with_a_model(engine, 400).await;
    }
}

/// Returns the key of a URL.
fn key(engine: &Engine, number: u32) -> u128 {
    engine.handle.hasher.key_hash(&fingerprints(&urls([number]))[0]).id()
}

/// Compares the engine with a model. The operations have URLs with numbers below `most`.
async fn agrees_with_a_model(mut engine: Engine, most: u32) {
    let mut random = fastrand::Rng::with_seed(11);
    let keys: Vec<_> = (0..most).map(|number| key(&engine, number)).collect();
    let key = |number: u32| keys[number as usize];
    let (mut model, mut asked) = (Model::default(), 0);
    for step in 0..3000 {
        let mut some = |count: u32| -> Vec<u32> {
            (0..random.u32(1..=count)).map(|_| random.u32(0..most)).collect()
        };
        match step % 7 {
            0 | 3 if engine.uncommitted < 4 => {
                let numbers = some(most / 10);
                engine.submit(batch(&urls(numbers.clone())));
                let own = model.next;
                model.next += 1;
                model.batches.push_back(own);
                let is_new = |&number: &u32| model.add(key(number), Some(own));
                let unseen: Vec<u32> = numbers.into_iter().filter(is_new).collect();
                assert_eq!(onward(&engine.judged().await.unwrap()), urls(unseen));
            }
            1 | 4 if engine.uncommitted > 0 => {
                engine.settle(Logged::START);
                model.commit();
            }
            2 => {
                let numbers = some(most / 15);
                let add = questions(Wanted::Add, numbers.clone());
                let answers = ask(&mut engine, &add, &mut asked).await;
                for (number, answer) in numbers.into_iter().zip(answers) {
                    let is_new = model.add(key(number), None);
                    assert_eq!(answer == Answer::Unseen, is_new, "step {step}");
                }
            }
            5 => {
                let numbers = some(most / 20);
                let forget = questions(Wanted::Forget, numbers.clone());
                let answers = ask(&mut engine, &forget, &mut asked).await;
                for (number, answer) in numbers.into_iter().zip(answers) {
                    let was_seen = model.seen.remove(&key(number)).is_some();
                    assert_eq!(answer == Answer::Seen, was_seen, "step {step}");
                }
            }
            6 => {
                let test = questions(Wanted::Test, 0..most);
                for (number, answer) in (0..).zip(ask(&mut engine, &test, &mut asked).await) {
                    let is_seen = model.seen.contains_key(&key(number));
                    assert_eq!(answer == Answer::Seen, is_seen, "{number} at step {step}");
                }
            }
            _ => {}
        }
        if step % 50 == 49 {
            engine.abort();
            model.drop_batches();
        }
        if !engine.has_room_to_ask() || step % 5 == 0 {
            remember(&mut engine, &mut asked);
        }
    }
}
