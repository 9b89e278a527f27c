//! The dispatcher: where those who ask about single fingerprints meet whoever runs the filter.
//!
//! Clients hold an [`Asker`] each. The run has the [`QueryDispatcher`], hands on what was asked to
//! the engine, has what that changes written down, and answers then, not before.

mod asked;

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use crate::engine::store::{Change, Local, MismatchError, Recorded, Storage};
use crate::engine::{Answer, Answers, Engine, EngineError, Heard, Question, Wanted};
use urlseen_core::filter::Fill;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_core::storage::Position;
use urlseen_core::storage::descriptors::Waits;

pub use asked::Asked;
use asked::Refused;

/// How many queries may wait; whoever has another one waits to hand it in.
const WAITING_MAX: usize = 256;

/// About how many questions are asked at once: what a record of the log and a sync are shared by.
const GROUP: usize = 4096;

/// Whoever asks.
#[derive(Debug, Clone)]
pub struct Asker(mpsc::Sender<Query>);

/// What somebody wants to know.
#[derive(Debug)]
pub struct Query {
    questions: Vec<Question>,
    extra: Extra,
    reply: oneshot::Sender<Reply>,
}

/// What is wanted beside answers, once all questions are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// Nothing.
    Nothing,
    /// How much the filter holds.
    Fill,
    /// That the filter be emptied, for good.
    Empty,
}

/// What somebody gets to know.
#[derive(Debug)]
pub struct Reply {
    /// To each question, in order.
    pub answers: Vec<Answer>,
    /// How much the filter held behind all that; where it was emptied, before that.
    pub fill: Option<Fill>,
}

/// Where the queries come in.
#[derive(Debug)]
pub struct QueryDispatcher {
    queries: mpsc::Receiver<Query>,
    /// What was asked of the engine, oldest first.
    groups: VecDeque<Group>,
    /// The number of the next of them.
    next: u64,
    /// Answered, but for what else is wanted.
    extras: VecDeque<Member>,
    /// Nothing is added any more.
    is_full: bool,
    /// How many may be forgotten and not have passed again.
    tombstones_max: usize,
    asked: Asked,
}

/// Questions that are asked at once.
#[derive(Debug)]
struct Group {
    number: u64,
    /// Threads that have not answered.
    left: usize,
    members: Vec<Member>,
    questions: Vec<Question>,
    answers: Vec<Answer>,
    /// What nobody could have, as there was no room.
    refused: Refused,
}

/// An query in a group.
#[derive(Debug)]
struct Member {
    range: Range<usize>,
    extra: Extra,
    answers: Vec<Answer>,
    reply: oneshot::Sender<Reply>,
}

/// A dispatcher, and who asks there. So many fingerprints may be forgotten and not have passed
/// again.
pub fn open(tombstones_max: usize) -> (Asker, QueryDispatcher) {
    let (ask, queries) = mpsc::channel(WAITING_MAX);
    let dispatcher = QueryDispatcher {
        queries,
        groups: VecDeque::new(),
        next: 0,
        extras: VecDeque::new(),
        is_full: false,
        tombstones_max,
        asked: Asked::default(),
    };
    (Asker(ask), dispatcher)
}

impl Asker {
    /// Asks, and waits for the answers; `None` where the run ends before they are there. What was
    /// to be added may have been, then.
    pub async fn ask(&self, questions: Vec<Question>, extra: Extra) -> Option<Reply> {
        let (reply, replied) = oneshot::channel();
        self.0.send(Query { questions, extra, reply }).await.ok()?;
        replied.await.ok()
    }
}

impl QueryDispatcher {
    /// Waits for somebody to ask; for ever if nobody can. Nothing is lost when the future is
    /// dropped.
    pub async fn next(&mut self) -> Query {
        match self.queries.recv().await {
            Some(query) => query,
            None => std::future::pending().await,
        }
    }

    /// Asks the engine on behalf of the run itself; what comes back is the reply to be.
    ///
    /// # Panics
    /// If the engine has no room to be asked.
    pub fn put(
        &mut self,
        questions: Vec<Question>,
        engine: &mut Engine,
    ) -> oneshot::Receiver<Reply> {
        let (reply, replied) = oneshot::channel();
        self.hand_on(Query { questions, extra: Extra::Nothing, reply }, engine);
        replied
    }

    /// Asks the engine what [`QueryDispatcher::next`] gave, and all else that waits.
    ///
    /// # Panics
    /// If the engine has no room to be asked.
    pub fn hand_on(&mut self, first: Query, engine: &mut Engine) {
        let (mut members, mut questions) = (Vec::new(), Vec::new());
        let mut take = |query: Query| {
            let Query { questions: more, extra, reply } = query;
            let range = questions.len()..questions.len() + more.len();
            questions.extend(more);
            members.push(Member { range, extra, answers: Vec::new(), reply });
            questions.len()
        };
        let mut count = take(first);
        while count < GROUP
            && let Ok(query) = self.queries.try_recv()
        {
            count = take(query);
        }
        let number = self.next;
        self.next += 1;
        let forgets = questions.iter().filter(|it| it.wanted == Wanted::Forget).count();
        let refused = Refused {
            adds: self.is_full,
            forgets: forgets > 0 && engine.gauges().tombstones() + forgets > self.tombstones_max,
        };
        let left = if refused.adds || refused.forgets {
            let asked: Vec<Question> = questions.iter().map(|it| refused.without(it)).collect();
            engine.ask(number, &asked, false)
        } else {
            engine.ask(number, &questions, false)
        };
        let answers = vec![Answer::Unseen; questions.len()];
        self.groups.push_back(Group { number, left, members, questions, answers, refused });
        self.finish_groups();
    }

    /// Takes what a thread has answered: writes down what that changes, and replies to whoever has
    /// all answers then.
    pub fn answered(&mut self, answers: Answers, store: &mut Local) -> io::Result<()> {
        let at = store.record(self.changes(&answers))?;
        self.finish(answers, Some(at), &mut store.engine);
        Ok(())
    }

    /// The same where a thread writes: the answers come back by [`QueryDispatcher::recorded`]. What
    /// changes nothing waits as well, as all who ask are answered in order.
    pub(crate) fn hand_over(
        &mut self,
        answers: Answers,
        storage: &mut Storage,
        engine: &mut Engine,
    ) {
        let changes = self.changes(&answers);
        if changes.is_empty() && storage.answers() == 0 {
            self.finish(answers, None, engine);
        } else {
            storage.record(answers, changes);
        }
    }

    /// The log has all changes: has them set, and replies to whoever has all answers then.
    pub(crate) fn recorded(&mut self, recorded: Recorded, engine: &mut Engine) {
        let Recorded { answers, at } = recorded;
        self.finish(answers, Some(at), engine);
    }

    fn changes(&self, answers: &Answers) -> Vec<(Change, Fingerprint)> {
        let group = self.groups.iter().find(|group| group.number == answers.group);
        // Without a group it was asked for the sake of what else is wanted.
        let Some(Group { questions, refused, .. }) = group else { return Vec::new() };
        let changes = answers.answers.iter().filter_map(|&(place, answer)| {
            let Question { wanted, fingerprint } = &questions[place as usize];
            let change = match (wanted, answer) {
                (Wanted::Add, Answer::Unseen) if !refused.adds => Change::Add,
                (Wanted::Forget, Answer::Seen) if !refused.forgets => Change::Forget,
                _ => return None,
            };
            Some((change, fingerprint.clone()))
        });
        changes.collect()
    }

    fn finish(&mut self, answers: Answers, at: Option<Position>, engine: &mut Engine) {
        let Answers { group, owner, answers } = answers;
        // What is logged and not committed lies before it, and is not in the filter.
        engine.remember(owner, at.filter(|_| engine.uncommitted() == 0));
        let Some(group) = self.groups.iter_mut().find(|other| other.number == group) else {
            return;
        };
        for (place, answer) in answers {
            let wanted = group.questions[place as usize].wanted;
            let answer = match (wanted, answer) {
                (Wanted::Add, Answer::Unseen) if group.refused.adds => Answer::Full,
                (Wanted::Forget, Answer::Seen) if group.refused.forgets => Answer::Full,
                (_, answer) => answer,
            };
            self.asked.count(wanted, answer);
            group.answers[place as usize] = answer;
        }
        group.left -= 1;
        self.finish_groups();
    }

    /// Replies to those whose group is answered.
    fn finish_groups(&mut self) {
        self.groups.retain_mut(|group| {
            if group.left > 0 {
                return true;
            }
            for mut member in std::mem::take(&mut group.members) {
                let answers = group.answers[member.range.clone()].to_vec();
                if member.extra == Extra::Nothing {
                    // Whoever is gone wants none.
                    let _ = member.reply.send(Reply { answers, fill: None });
                } else {
                    member.answers = answers;
                    self.extras.push_back(member);
                }
            }
            false
        });
    }

    /// Whether somebody waits for more than answers.
    pub fn has_extras(&self) -> bool {
        !self.extras.is_empty()
    }

    /// Replies to those who want to know how much the filter holds. What was added before is set by
    /// then.
    pub(crate) async fn count(&mut self, engine: &mut Engine) -> Result<(), EngineError> {
        while let Some(Member { answers, reply, .. }) = self.extras.pop_front() {
            engine.settled().await?;
            let _ = reply.send(Reply { answers, fill: Some(engine.gauges().fill().counted()) });
        }
        Ok(())
    }

    /// Does what is wanted beside answers. Only where no batches are judged can the filter be
    /// emptied.
    ///
    /// # Errors
    /// Where the filter cannot be emptied, or is lost.
    pub async fn do_extras(&mut self, store: &mut Local) -> Result<(), QueryError> {
        while let Some(Member { extra, answers, reply, .. }) = self.extras.pop_front() {
            if extra == Extra::Empty {
                self.drain(store).await?;
            }
            // What was added before is set.
            store.engine.settled().await?;
            let fill = store.engine.gauges().fill().counted();
            if extra == Extra::Empty {
                empty(store).await.map_err(|unfit| QueryError::Mismatch(Box::new(unfit)))?;
            }
            let _ = reply.send(Reply { answers, fill: Some(fill) });
        }
        Ok(())
    }

    /// Waits until all that was asked is answered, where no batches are judged.
    pub async fn drain(&mut self, store: &mut Local) -> Result<(), QueryError> {
        while store.engine.asking() > 0 {
            if let Heard::Answers(answers) = store.engine.heard().await? {
                self.answered(answers, store)?;
            }
        }
        Ok(())
    }

    /// Whether nothing is added from now on: there is no room.
    pub fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }

    /// Whether that is so.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Questions answered so far.
    pub fn asked(&self) -> Asked {
        self.asked
    }
}

/// Empties the filter, for good; waits for file descriptors where there are none.
async fn empty(store: &mut Local) -> Result<(), MismatchError> {
    let (head, mut waits) = (store.empty()?, Waits::default());
    while let Err(unfit) = store.replace(head) {
        if !unfit.is_for_want_of_descriptors() {
            return Err(unfit);
        }
        let wait = waits.grow();
        warn!("the filter cannot be emptied: {unfit}. Trying again in {} s", wait.as_secs());
        tokio::time::sleep(wait).await;
    }
    Ok(())
}

/// Why nobody is answered any more.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The engine cannot go on.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What is added cannot be written down.
    #[error("the storage folder cannot be written: {0}")]
    Log(#[from] io::Error),
    /// The filter cannot be emptied.
    #[error(transparent)]
    Mismatch(Box<MismatchError>),
}
