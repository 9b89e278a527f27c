//! Client connection: its commands and their replies.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::BytesMut;

use super::command::{self, Command, ReplyShape, shown};
use super::connection::{BUFFER, Connection};
use super::framing::{Framed, Framing, FramingError, FramingLimits};
use super::reply::{Reply, Version};
use super::session::{self, ClientSession};
use super::transaction::{Received, Transaction};
use super::{House, about, answer, bloom};
use urlseen_core::filter::Fill;
use urlseen_core::fingerprint::Fingerprint;
use urlseen_engine::config::ItemForm;
use urlseen_engine::engine::query::{self, Asker, Extra};
use urlseen_engine::engine::{Answer, Question, Wanted};
use urlseen_engine::item::{Form, Identity, Reader};

/// Approximate number of a client's questions in one batch, and the most commands in it.
const AT_ONCE: usize = 4096;

/// Client that is connected to the server.
pub struct Client {
    house: Arc<House>,
    asker: Asker,
    connection: Connection,
    framing: Framing,
    reader: Reader,
    session: ClientSession,
    /// Commands since `MULTI`.
    transaction: Option<Transaction>,
    /// Commands that `EXEC` runs before any other command of the client.
    pending: VecDeque<Received>,
    is_leaving: bool,
}

/// Reply that is due for commands.
enum Due {
    /// Finished reply, with its length in bytes.
    Said(usize),
    /// Reply to be made of `count` answers, in the protocol version of its command. `passing` lists
    /// the members that pass without a question.
    Answers {
        version: Version,
        shape: ReplyShape,
        wanted: Wanted,
        count: usize,
        passing: Vec<usize>,
    },
}

/// Commands that are answered together.
#[derive(Default)]
struct Batch {
    due: Vec<Due>,
    questions: Vec<Question>,
    /// Replies that depend on no answer, already encoded because that takes less memory.
    said: BytesMut,
}

impl Batch {
    fn say(&mut self, reply: Reply, version: Version) {
        let begin = self.said.len();
        reply.write(version, &mut self.said);
        self.due.push(Due::Said(self.said.len() - begin));
    }

    /// Starts an array of the next `count` replies.
    fn say_array_of(&mut self, count: usize) {
        let begin = self.said.len();
        self.said.extend_from_slice(format!("*{count}\r\n").as_bytes());
        self.due.push(Due::Said(self.said.len() - begin));
    }

    /// Returns true if the batch is large enough.
    fn is_enough(&self) -> bool {
        self.due.len() >= AT_ONCE || self.questions.len() >= AT_ONCE || self.said.len() >= BUFFER
    }
}

/// End of a batch: the server answers it before the next command.
enum Last {
    Nothing,
    /// Builds the reply of how full the filter is.
    Fill(Box<dyn FnOnce(Fill) -> Reply + Send>),
    /// Empties the whole filter.
    Empty,
}

impl Client {
    pub(super) fn new(house: Arc<House>, asker: Asker, id: u64, connection: Connection) -> Self {
        Self {
            asker,
            connection,
            framing: Framing::default(),
            reader: Reader::new(house.items),
            session: ClientSession::new(Arc::clone(&house), id),
            transaction: None,
            pending: VecDeque::new(),
            is_leaving: false,
            house,
        }
    }

    /// Serves the client until it leaves, is too slow, or sends bytes that are no command.
    pub(super) async fn run(mut self) -> io::Result<()> {
        loop {
            let is_all = !self.answer_some().await;
            if !is_all && self.session.is_known {
                self.connection.greeted();
            }
            // A client that does not read its replies can make the daemon keep only this many
            // bytes.
            if self.connection.replies.len() >= BUFFER
                || is_all && !self.connection.replies.is_empty()
            {
                self.connection.send().await?;
            }
            if !is_all {
                continue;
            }
            if self.is_leaving {
                return self.connection.close().await;
            }
            if self.connection.receive().await? == 0 {
                return Ok(());
            }
        }
    }

    /// Answers some of the commands that are complete. Returns true if there were any.
    async fn answer_some(&mut self) -> bool {
        if self.is_leaving {
            return false;
        }
        let mut batch = Batch::default();
        let last = self.gather(&mut batch);
        if batch.due.is_empty() && matches!(last, Last::Nothing) {
            return false;
        }
        self.answer(batch, last).await;
        true
    }

    /// Takes commands as long as they can be answered together.
    fn gather(&mut self, batch: &mut Batch) -> Last {
        while !batch.is_enough() && !self.is_leaving {
            let was_pending = self.pending.pop_front();
            let is_pending = was_pending.is_some();
            let Some((received, words)) = was_pending.or_else(|| self.next_received(batch)) else {
                break;
            };
            if words.len() == 0 {
                continue;
            }
            let spoken = words.of(&received);
            // These are bytes of another protocol, sent in the hope that a later line is a command.
            let is_noise = words.are_inline() && command::find(spoken[0]).is_none();
            let parsed = Command::parse(&spoken);
            let waits = |command: &Command<'_>| !is_pending && !command.is_for_transactions();
            if let (Ok(command), true) = (&parsed, self.transaction.is_some())
                && waits(command)
            {
                let refusal = self.refusal(command);
                drop(parsed);
                self.put_off(refusal, (received, words), batch);
                continue;
            }
            match parsed {
                Err(refusal) => {
                    batch.say(refusal, self.session.version);
                    if let Some(transaction) = &mut self.transaction {
                        transaction.fail();
                    }
                    self.is_leaving |= is_noise;
                }
                Ok(command) => match self.take(command, batch) {
                    Last::Nothing => {}
                    last => return last,
                },
            }
        }
        Last::Nothing
    }

    /// Returns the next complete command. If no further command can follow, marks the client as
    /// leaving.
    fn next_received(&mut self, batch: &mut Batch) -> Option<Received> {
        let limits =
            if self.session.is_known { self.house.limits } else { FramingLimits::STRANGER };
        match self.framing.next(&self.connection.received, limits) {
            Ok(framed) => {
                let Framed { words, len } = framed?;
                Some((self.connection.received.split_to(len).freeze(), words))
            }
            Err(broken) => {
                if broken == FramingError::Http {
                    self.house.alarm.raise(self.connection.peer);
                } else {
                    batch.say(Reply::error(format!("ERR {broken}")), self.session.version);
                }
                self.is_leaving = true;
                None
            }
        }
    }

    /// Returns the error for a command that the client may not run.
    fn refusal(&self, command: &Command<'_>) -> Option<Reply> {
        if !self.session.is_known && !command.is_for_strangers() {
            return Some(Reply::error("NOAUTH Authentication required."));
        }
        let unknown = command.keys().iter().find(|key| !self.house.serves(key));
        unknown.map(|key| session::unserved(key))
    }

    /// Keeps a command until `EXEC`, unless it is refused now.
    fn put_off(&mut self, refusal: Option<Reply>, command: Received, batch: &mut Batch) {
        let most = self.house.limits.bytes;
        let Some(transaction) = &mut self.transaction else { return };
        let reply = match refusal {
            Some(refusal) => {
                transaction.fail();
                refusal
            }
            None if transaction.push(command, most) => Reply::Simple("QUEUED"),
            None => Reply::error("ERR the transaction has more than serve.request_bytes"),
        };
        batch.say(reply, self.session.version);
    }

    /// Runs `EXEC`: the kept commands come before any other.
    fn execute(&mut self, batch: &mut Batch) {
        let refusal = match self.transaction.take().map(Transaction::commands) {
            None => "ERR EXEC without MULTI",
            Some(None) => "EXECABORT Transaction discarded because of previous errors.",
            Some(Some(commands)) => {
                batch.say_array_of(commands.len());
                self.pending = commands.into();
                return;
            }
        };
        batch.say(Reply::error(refusal), self.session.version);
    }

    /// Handles one command of the client.
    fn take(&mut self, command: Command<'_>, batch: &mut Batch) -> Last {
        if let Some(refusal) = self.refusal(&command) {
            batch.say(refusal, self.session.version);
            return Last::Nothing;
        }
        let reply = match command {
            Command::Ask { wanted, members, shape, .. } => {
                self.ask(wanted, &members, shape, batch);
                return Last::Nothing;
            }
            Command::Card { .. } => {
                return Last::Fill(Box::new(|fill| Reply::count(fill.keys)));
            }
            Command::Info { field, .. } => {
                let (expansion, version) = (self.house.expansion, self.session.version);
                return Last::Fill(Box::new(move |fill| {
                    let all = bloom::info(field, fill, expansion);
                    match (version, field) {
                        // Like RedisBloom, replies with the value alone.
                        (Version::Resp2, Some(_)) => {
                            Reply::Array(all.into_iter().map(|(_, value)| value).collect())
                        }
                        _ => Reply::Map(all),
                    }
                }));
            }
            Command::Delete { .. } if self.house.settings.allow_delete => return Last::Empty,
            Command::Delete { .. } => Reply::error(
                "NOPERM the filter is not to be emptied: serve.allow_delete is false. Set \
                 SCHEDULER_PERSIST = True if this is scrapy-redis closing a spider",
            ),
            Command::Reserve { .. } => Reply::error("ERR item exists"),
            Command::Ping { message: None } => Reply::Simple("PONG"),
            Command::Ping { message: Some(message) } | Command::Echo { message } => {
                Reply::bulk(message)
            }
            Command::Select { database } => session::select(database),
            Command::Hello(hello) => self.session.hello(&hello),
            Command::Auth { user, password } => self.session.auth(user, password),
            Command::Client { subcommand, rest } => self.session.client(subcommand, &rest),
            Command::ServerInfo => Reply::bulk(about::info(&self.house)),
            Command::Commands { subcommand, rest } => about::commands(subcommand, &rest),
            Command::Multi if self.transaction.is_some() => {
                Reply::error("ERR MULTI calls can not be nested")
            }
            Command::Multi => {
                self.transaction = Some(Transaction::default());
                Reply::Ok
            }
            Command::Exec => {
                self.execute(batch);
                return Last::Nothing;
            }
            Command::Discard if self.transaction.take().is_some() => Reply::Ok,
            Command::Discard => Reply::error("ERR DISCARD without MULTI"),
            Command::Quit => {
                self.is_leaving = true;
                Reply::Ok
            }
        };
        batch.say(reply, self.session.version);
        Last::Nothing
    }

    /// Turns the members of a command into questions.
    fn ask(&mut self, wanted: Wanted, members: &[&[u8]], shape: ReplyShape, batch: &mut Batch) {
        let (version, questions) = (self.session.version, &mut batch.questions);
        let (begin, mut passing) = (questions.len(), Vec::new());
        for (place, bytes) in members.iter().enumerate() {
            match self.reader.read(bytes).map(|item| item.identity) {
                Ok(Identity::Fingerprint(fingerprint)) => {
                    questions.push(Question { wanted, fingerprint });
                }
                Ok(Identity::Unfiltered) => passing.push(place),
                // Clients of sets and of RedisBloom have members of any kind: with the form `auto`,
                // a member in no form of an item is a key by itself.
                Err(_) if self.house.items.form == Form::Item(ItemForm::Auto) => {
                    let fingerprint = Fingerprint::from_text(bytes);
                    questions.push(Question { wanted, fingerprint });
                }
                Err(unreadable) => {
                    questions.truncate(begin);
                    let refusal = format!(
                        "ERR {} cannot be read, and nothing was done: {unreadable}",
                        shown(bytes)
                    );
                    return batch.say(Reply::error(refusal), version);
                }
            }
        }
        let count = questions.len() - begin;
        batch.due.push(Due::Answers { version, shape, wanted, count, passing });
    }

    /// Gets the answers to the questions, and writes all replies.
    async fn answer(&mut self, batch: Batch, last: Last) {
        let Batch { due, questions, mut said } = batch;
        let extra = match &last {
            Last::Nothing => Extra::Nothing,
            Last::Fill(_) => Extra::Fill,
            Last::Empty => Extra::Empty,
        };
        let reply = if questions.is_empty() && extra == Extra::Nothing {
            Some(query::Reply { answers: Vec::new(), fill: None })
        } else {
            self.asker.ask(questions, extra).await
        };
        let Some(query::Reply { answers, fill }) = reply else {
            // The log may already hold added fingerprints, so the result is unknown.
            self.is_leaving = true;
            return self.reply(Reply::error(
                "LOADING urlseen is ending, and has not said whether it added anything; ask again \
                 when it is back",
            ));
        };
        let mut answers = answers.into_iter();
        for due in due {
            match due {
                Due::Said(len) => self.connection.replies.extend_from_slice(&said.split_to(len)),
                Due::Answers { version, shape, wanted, count, passing } => {
                    let mut own: Vec<Answer> = answers.by_ref().take(count).collect();
                    for place in passing {
                        own.insert(place, Answer::Unseen);
                    }
                    answer::reply(shape, wanted, &own).write(version, &mut self.connection.replies);
                }
            }
        }
        match (last, fill) {
            (Last::Fill(reply), Some(fill)) => self.reply(reply(fill)),
            (Last::Empty, _) => self.reply(Reply::Number(1)),
            _ => {}
        }
    }

    fn reply(&mut self, reply: Reply) {
        reply.write(self.session.version, &mut self.connection.replies);
    }
}
