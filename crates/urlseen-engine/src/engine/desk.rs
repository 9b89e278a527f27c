//! The desk: where those who ask about single fingerprints meet whoever runs the filter.
//!
//! Clients hold an [`Asker`] each. The run has the [`Desk`], hands on what was asked to the engine,
//! has what that changes written down, and answers then, not before.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use crate::engine::store::{Change, Local, Unfit};
use crate::engine::{Answer, Answers, Died, Engine, Heard, Question, Whole, Wish};
use urlseen_core::storage::descriptors::Waits;

/// How many inquiries may wait; whoever has another one waits to hand it in.
const WAITING_MAX: usize = 256;

/// About how many questions are asked at once: what a record of the log and a sync are shared by.
const GROUP: usize = 4096;

/// Whoever asks.
#[derive(Debug, Clone)]
pub struct Asker(mpsc::Sender<Inquiry>);

/// What somebody wants to know.
#[derive(Debug)]
pub struct Inquiry {
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
    Counts,
    /// That the filter be emptied, for good.
    Empty,
}

/// What somebody gets to know.
#[derive(Debug)]
pub struct Reply {
    /// To each question, in order.
    pub answers: Vec<Answer>,
    /// How much the filter held behind all that; where it was emptied, before that.
    pub counts: Option<Counts>,
}

/// How much a filter holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// Fingerprints.
    pub keys: u64,
    /// What a filter in one piece says of itself.
    pub whole: Option<Whole>,
}

/// Questions answered.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// With "seen", where that was all that was wanted, or it was to be added.
    pub seen: u64,
    /// With "unseen"; those that were to be added are.
    pub unseen: u64,
    /// With "there is no room".
    pub full: u64,
    /// Fingerprints that are to pass once more.
    pub forgotten: u64,
}

/// Where the inquiries come in.
#[derive(Debug)]
pub struct Desk {
    inquiries: mpsc::Receiver<Inquiry>,
    /// What was asked of the engine, oldest first.
    groups: VecDeque<Group>,
    /// The number of the next of them.
    next: u64,
    /// Answered, but for what else is wanted.
    extras: VecDeque<Member>,
    /// Nothing is added any more.
    is_full: bool,
    /// How many may be forgotten and not have passed again.
    forgotten_max: usize,
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

/// An inquiry in a group.
#[derive(Debug)]
struct Member {
    range: Range<usize>,
    extra: Extra,
    answers: Vec<Answer>,
    reply: oneshot::Sender<Reply>,
}

/// A desk, and who asks there. So many fingerprints may be forgotten and not have passed again.
pub fn open(forgotten_max: usize) -> (Asker, Desk) {
    let (ask, inquiries) = mpsc::channel(WAITING_MAX);
    let desk = Desk {
        inquiries,
        groups: VecDeque::new(),
        next: 0,
        extras: VecDeque::new(),
        is_full: false,
        forgotten_max,
        asked: Asked::default(),
    };
    (Asker(ask), desk)
}

impl Asker {
    /// Asks, and waits for the answers; `None` where the run ends before they are there. What was
    /// to be added may have been, then.
    pub async fn ask(&self, questions: Vec<Question>, extra: Extra) -> Option<Reply> {
        let (reply, replied) = oneshot::channel();
        self.0.send(Inquiry { questions, extra, reply }).await.ok()?;
        replied.await.ok()
    }
}

impl Desk {
    /// Waits for somebody to ask; for ever if nobody can. Nothing is lost when the future is
    /// dropped.
    pub async fn next(&mut self) -> Inquiry {
        match self.inquiries.recv().await {
            Some(inquiry) => inquiry,
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
        self.hand_on(Inquiry { questions, extra: Extra::Nothing, reply }, engine);
        replied
    }

    /// Asks the engine what [`Desk::next`] gave, and all else that waits.
    ///
    /// # Panics
    /// If the engine has no room to be asked.
    pub fn hand_on(&mut self, first: Inquiry, engine: &mut Engine) {
        let (mut members, mut questions) = (Vec::new(), Vec::new());
        let mut take = |inquiry: Inquiry| {
            let Inquiry { questions: more, extra, reply } = inquiry;
            let range = questions.len()..questions.len() + more.len();
            questions.extend(more);
            members.push(Member { range, extra, answers: Vec::new(), reply });
            questions.len()
        };
        let mut count = take(first);
        while count < GROUP
            && let Ok(inquiry) = self.inquiries.try_recv()
        {
            count = take(inquiry);
        }
        let number = self.next;
        self.next += 1;
        let forgets = questions.iter().filter(|it| it.wish == Wish::Forget).count();
        let refused = Refused {
            adds: self.is_full,
            forgets: forgets > 0 && engine.gauges().forgotten() + forgets > self.forgotten_max,
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

    /// Takes what a thread has answered: has written down what that changes, and replies to
    /// whoever has all answers then.
    pub fn answered(&mut self, answers: Answers, store: &mut Local) -> io::Result<()> {
        let Answers { group, owner, answers } = answers;
        let Some(group) = self.groups.iter_mut().find(|other| other.number == group) else {
            // Asked for the sake of what else is wanted.
            return store.record(owner, std::iter::empty());
        };
        let questions = &group.questions;
        let changes = answers.iter().filter_map(|&(place, answer)| {
            let Question { wish, fingerprint } = &questions[place as usize];
            let change = match (wish, answer) {
                (Wish::Add, Answer::Unseen) if !group.refused.adds => Change::Add,
                (Wish::Forget, Answer::Seen) if !group.refused.forgets => Change::Forget,
                _ => return None,
            };
            Some((change, fingerprint.clone()))
        });
        store.record(owner, changes)?;
        for (place, answer) in answers {
            let wish = questions[place as usize].wish;
            let answer = match (wish, answer) {
                (Wish::Add, Answer::Unseen) if group.refused.adds => Answer::Full,
                (Wish::Forget, Answer::Seen) if group.refused.forgets => Answer::Full,
                (_, answer) => answer,
            };
            self.asked.count(wish, answer);
            group.answers[place as usize] = answer;
        }
        group.left -= 1;
        self.finish_groups();
        Ok(())
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
                    let _ = member.reply.send(Reply { answers, counts: None });
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

    /// Does what is wanted beside answers. Only where no batches are judged can the filter be
    /// emptied.
    ///
    /// # Errors
    /// Where the filter cannot be emptied, or is lost.
    pub async fn do_extras(&mut self, store: &mut Local) -> Result<(), DeskError> {
        while let Some(Member { extra, answers, reply, .. }) = self.extras.pop_front() {
            if extra == Extra::Empty {
                self.drain(store).await?;
            }
            // What was added before is set.
            store.engine.settled().await?;
            let gauges = store.engine.gauges();
            let counts = Counts { keys: gauges.keys().iter().sum(), whole: gauges.whole() };
            if extra == Extra::Empty {
                empty(store).await.map_err(|unfit| DeskError::Unfit(Box::new(unfit)))?;
            }
            let _ = reply.send(Reply { answers, counts: Some(counts) });
        }
        Ok(())
    }

    /// Waits until all that was asked is answered, where no batches are judged.
    pub async fn drain(&mut self, store: &mut Local) -> Result<(), DeskError> {
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
async fn empty(store: &mut Local) -> Result<(), Unfit> {
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

impl Asked {
    /// How many that are.
    pub fn all(&self) -> u64 {
        self.seen + self.unseen + self.full + self.forgotten
    }

    fn count(&mut self, wish: Wish, answer: Answer) {
        *match (wish, answer) {
            (Wish::Forget, Answer::Seen) => &mut self.forgotten,
            (Wish::Forget, Answer::Unseen) => return,
            (_, Answer::Seen) => &mut self.seen,
            (_, Answer::Unseen) => &mut self.unseen,
            (_, Answer::Full) => &mut self.full,
        } += 1;
    }
}

/// What of a group of questions is only looked up, as there is no room for it.
#[derive(Debug, Clone, Copy)]
struct Refused {
    adds: bool,
    forgets: bool,
}

impl Refused {
    fn without(self, question: &Question) -> Question {
        let Question { wish, fingerprint } = question.clone();
        let is_refused = match wish {
            Wish::Add => self.adds,
            Wish::Forget => self.forgets,
            Wish::Test => false,
        };
        Question { wish: if is_refused { Wish::Test } else { wish }, fingerprint }
    }
}

/// Why nobody is answered any more.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    /// The engine cannot go on.
    #[error(transparent)]
    Died(#[from] Died),
    /// What is added cannot be written down.
    #[error("the log cannot be written: {0}")]
    Log(#[from] io::Error),
    /// The filter cannot be emptied.
    #[error(transparent)]
    Unfit(Box<Unfit>),
}
