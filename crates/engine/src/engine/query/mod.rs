//! Queries of clients about single fingerprints, and the dispatcher that answers them.
//!
//! Each client holds an [`Asker`]. The task that runs the filter holds the [`QueryDispatcher`],
//! which passes the questions to the engine. An answer that changes the filter is given after the
//! log has the change.

mod asking;

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use crate::engine::Engine;
use crate::engine::question::{Answer, Answers, Question, Wanted};
use crate::engine::store::{Storage, Write};
use urlseen_filter::Fill;
use urlseen_fingerprint::Fingerprint;
use urlseen_storage::{Change, Logged};

/// Maximum number of waiting queries. A further query waits until there is room.
const WAITING_MAX: usize = 256;

/// Once a group has this number of questions, no further query joins the group. The changes of a
/// group share a sync of the log.
const GROUP: usize = 4096;

/// Handle with which a client asks the dispatcher.
#[derive(Debug, Clone)]
pub struct Asker(mpsc::Sender<Query>);

/// Questions of one client.
#[derive(Debug)]
pub(crate) struct Query {
    questions: Vec<Question>,
    extra: Extra,
    reply: oneshot::Sender<Reply>,
}

/// Further request of a query, carried out after all questions of the query are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// Nothing except the answers.
    Nothing,
    /// Report the number of keys in the filter.
    Fill,
    /// Empty the filter permanently.
    Empty,
}

/// Reply to the query of a client.
#[derive(Debug)]
pub struct Reply {
    /// Answers to the questions, in order.
    pub answers: Vec<Answer>,
    /// Fill after the questions, if the query asked for the fill, or asked to empty the filter. If
    /// the query emptied the filter, this is the fill just before that.
    pub fill: Option<Fill>,
}

/// Dispatcher, which passes questions to the engine, and answers to the clients.
#[derive(Debug)]
pub struct QueryDispatcher {
    queries: mpsc::Receiver<Query>,
    /// Groups that were sent to the engine, oldest first.
    groups: VecDeque<Group>,
    /// Number of the next group.
    next: u64,
    /// Queries whose questions are answered, and whose further request is not carried out yet.
    pub(super) extras: VecDeque<Member>,
    /// True if additions are refused because the filter is full.
    pub is_full: bool,
    /// Maximum number of fingerprints that were forgotten and have not passed again.
    tombstones_max: usize,
    /// Counts of the questions answered so far.
    pub asked: Asked,
}

/// Questions that are passed to the engine together.
#[derive(Debug)]
struct Group {
    number: u64,
    members: Vec<Member>,
    questions: Vec<Question>,
    /// Kinds of changes that are refused for this group.
    refused: Refused,
}

/// Query as a part of a group.
#[derive(Debug)]
pub(super) struct Member {
    range: Range<usize>,
    /// Further request of the query.
    pub(super) extra: Extra,
    answers: Vec<Answer>,
    reply: oneshot::Sender<Reply>,
}

/// Returns a dispatcher, and the handle with which clients send queries to it. `tombstones_max` is
/// the maximum number of fingerprints that were forgotten and have not passed again.
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
    /// Asks, and waits for the answers. Returns `None` if the run ends before the answers. In that
    /// case, it is unknown whether the fingerprints were added.
    pub async fn ask(&self, questions: Vec<Question>, extra: Extra) -> Option<Reply> {
        let (reply, replied) = oneshot::channel();
        self.0.send(Query { questions, extra, reply }).await.ok()?;
        replied.await.ok()
    }
}

impl QueryDispatcher {
    /// Waits for a query, or forever if there are no clients. Nothing is lost when the future is
    /// dropped.
    pub(crate) async fn next(&mut self) -> Query {
        match self.queries.recv().await {
            Some(query) => query,
            None => std::future::pending().await,
        }
    }

    /// Passes the daemon's own questions to the engine.
    ///
    /// # Panics
    /// If the engine has no room for another group of questions.
    pub fn put(
        &mut self,
        questions: Vec<Question>,
        engine: &mut Engine,
    ) -> oneshot::Receiver<Reply> {
        let (reply, replied) = oneshot::channel();
        self.hand_on(Query { questions, extra: Extra::Nothing, reply }, engine);
        replied
    }

    /// Passes the query that [`QueryDispatcher::next`] returned, and all waiting queries, to the
    /// engine.
    ///
    /// # Panics
    /// If the engine has no room for another group of questions.
    pub(crate) fn hand_on(&mut self, first: Query, engine: &mut Engine) {
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
            forgets: forgets > 0 && engine.tombstones() + forgets > self.tombstones_max,
        };
        if refused.adds || refused.forgets {
            let asked: Vec<Question> = questions.iter().map(|it| refused.without(it)).collect();
            engine.ask(number, &asked);
        } else {
            engine.ask(number, &questions);
        }
        self.groups.push_back(Group { number, members, questions, refused });
    }

    /// Processes the answers to a group. If the answers change the filter, the changes go to the
    /// log first, and [`Self::finish`] continues after that. Answers without a change are given at
    /// once if no earlier answers wait for the log.
    pub(crate) fn hand_over(
        &mut self,
        mut answers: Answers,
        storage: Option<&mut Storage>,
        engine: &mut Engine,
    ) {
        let changes = self.changes(&mut answers);
        // Clients are answered in order, so answers without a change wait for earlier changes.
        let waits = self.groups.front().is_some_and(|first| first.number != answers.group);
        match storage.filter(|_| !changes.is_empty() || waits) {
            Some(storage) => storage.write(Write::Changes(answers, changes)),
            None => self.finish(answers, None, engine),
        }
    }

    /// Answers the refused changes with [`Answer::Full`], and returns the other changes.
    fn changes(&self, answers: &mut Answers) -> Vec<(Change, Fingerprint)> {
        let group = self.groups.iter().find(|group| group.number == answers.group);
        let Some(Group { questions, refused, .. }) = group else { return Vec::new() };
        let answered = questions.iter().zip(&mut answers.answers);
        let changes = answered.filter_map(|(Question { wanted, fingerprint }, answer)| {
            let (change, is_refused) = match (wanted, &answer) {
                (Wanted::Add, Answer::Unseen) => (Change::Add, refused.adds),
                (Wanted::Forget, Answer::Seen) => (Change::Forget, refused.forgets),
                _ => return None,
            };
            if is_refused {
                *answer = Answer::Full;
                return None;
            }
            Some((change, fingerprint.clone()))
        });
        changes.collect()
    }

    /// Sets the changes of these answers in the filter, and replies to the queries. `logged` is the
    /// end of the log after these changes; `None` if the log does not have them.
    pub(super) fn finish(&mut self, answers: Answers, logged: Option<Logged>, engine: &mut Engine) {
        engine.remember(logged);
        let Answers { answers, .. } = answers;
        let group = self.groups.pop_front().expect("answers come in the order of their groups");
        for (question, &answer) in group.questions.iter().zip(&answers) {
            self.asked.count(question.wanted, answer);
        }
        for mut member in group.members {
            let answers = answers[member.range.clone()].to_vec();
            if member.extra == Extra::Nothing {
                // The client may have dropped the receiver.
                let _ = member.reply.send(Reply { answers, fill: None });
            } else {
                member.answers = answers;
                self.extras.push_back(member);
            }
        }
    }

    /// Returns true if the next action is to empty the filter.
    pub(super) fn is_emptying(&self) -> bool {
        self.extras.front().is_some_and(|member| member.extra == Extra::Empty)
    }
}

impl Member {
    /// Replies with the answers and the fill. Ignores a client that has dropped the receiver.
    pub(super) fn reply(self, fill: Fill) {
        let Self { answers, reply, .. } = self;
        let _ = reply.send(Reply { answers, fill: Some(fill) });
    }
}

/// Counts of answered questions.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Questions answered "seen", among those that test or add.
    pub seen: u64,
    /// Questions answered "unseen". An addition among them has added the fingerprint.
    pub unseen: u64,
    /// Questions whose change was refused, because the filter had no room for the change.
    pub full: u64,
    /// Fingerprints that were forgotten, so that they pass again.
    pub forgotten: u64,
}

impl Asked {
    /// Counts all answered questions.
    pub fn all(&self) -> u64 {
        self.seen + self.unseen + self.full + self.forgotten
    }

    /// Adds the counts of another run.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            seen: self.seen + other.seen,
            unseen: self.unseen + other.unseen,
            full: self.full + other.full,
            forgotten: self.forgotten + other.forgotten,
        }
    }

    fn count(&mut self, wanted: Wanted, answer: Answer) {
        *match (wanted, answer) {
            (Wanted::Forget, Answer::Seen) => &mut self.forgotten,
            (Wanted::Forget, Answer::Unseen) => return,
            (_, Answer::Seen) => &mut self.seen,
            (_, Answer::Unseen) => &mut self.unseen,
            (_, Answer::Full) => &mut self.full,
        } += 1;
    }
}

/// Kinds of changes that are refused, because the filter has no room. For a refused change, the
/// fingerprint is only tested.
#[derive(Debug, Clone, Copy)]
struct Refused {
    adds: bool,
    forgets: bool,
}

impl Refused {
    fn without(self, question: &Question) -> Question {
        let Question { wanted, fingerprint } = question.clone();
        let is_refused = match wanted {
            Wanted::Add => self.adds,
            Wanted::Forget => self.forgets,
            Wanted::Test => false,
        };
        Question { wanted: if is_refused { Wanted::Test } else { wanted }, fingerprint }
    }
}

#[cfg(test)]
mod asking_tests;
