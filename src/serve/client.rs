//! Connection of a client: commands in, replies out.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::BytesMut;

use super::command::Command;
use super::connection::{BUFFER, Connection};
use super::framing::{Framing, FramingError, FramingLimits};
use super::reply::{self, Reply, ReplyShape, Version, shown};
use super::session::{self, ClientSession};
use super::session::{Received, Transaction};
use super::table::find;
use super::{ServerState, about, bloom};
use crate::config::ItemForm;
use urlseen_engine::engine::query::{self, Asker, Extra};
use urlseen_engine::engine::{Answer, Question, Wanted};
use urlseen_engine::item::{Form, Identity, Reader};
use urlseen_filter::Fill;
use urlseen_fingerprint::Fingerprint;

/// Limit on a client's commands in one batch, and also on the questions of these commands. Only the
/// last command of a batch can exceed the limit on questions.
const AT_ONCE: usize = 4096;

/// Number of received bytes from which on a thread of the filter reads them. The task of the client
/// would hold up the lease and the commits of the crawl; to wake a thread for less costs more.
const LONG: usize = 1 << 16;

/// Connected client, with the state of its session and of its transaction.
pub(crate) struct Client {
    state: Arc<ServerState>,
    asker: Asker,
    connection: Connection,
    framing: Framing,
    reader: Reader,
    session: ClientSession,
    /// Commands that the client sent after `MULTI`; `None` outside of a transaction.
    transaction: Option<Transaction>,
    /// Commands that `EXEC` runs before any other command of the client.
    pending: VecDeque<Received>,
    is_leaving: bool,
}

/// Reply that the client waits for.
enum Due {
    /// Finished reply, and its number of bytes. These bytes come next in the batch's `said`.
    Said(usize),
    /// Reply that is made of the next `count` answers, in the protocol version of its command.
    /// `known` lists the positions of members whose answers need no question, with the answers: an
    /// unfiltered member counts as unseen, and a member that a rule drops counts as seen.
    Answers {
        version: Version,
        shape: ReplyShape,
        wanted: Wanted,
        count: usize,
        known: Vec<(usize, Answer)>,
    },
    /// Reply about the fill of the filter after all questions. It is the last reply of a batch.
    Fill(Box<dyn FnOnce(Fill) -> Reply + Send>),
    /// Reply to a command that empties the filter. It is the last reply of a batch.
    Emptied,
}

/// Replies to commands that are answered together.
#[derive(Default)]
struct Batch {
    due: Vec<Due>,
    questions: Vec<Question>,
    /// Replies that do not depend on an answer. They are stored in encoded form, which takes less
    /// memory.
    said: BytesMut,
}

impl Batch {
    fn say(&mut self, reply: &Reply, version: Version) {
        let begin = self.said.len();
        reply.write(version, &mut self.said);
        self.due.push(Due::Said(self.said.len() - begin));
    }

    /// Starts an array of the next `count` replies.
    fn say_array_of(&mut self, count: usize) {
        let begin = self.said.len();
        reply::line(&mut self.said, '*', count);
        self.due.push(Due::Said(self.said.len() - begin));
    }

    /// Returns the request that the filter gets in addition to the batch's questions.
    fn extra(&self) -> Extra {
        match self.due.last() {
            Some(Due::Fill(_)) => Extra::Fill,
            Some(Due::Emptied) => Extra::Empty,
            _ => Extra::Nothing,
        }
    }

    /// Returns true if the batch takes no further command.
    fn is_enough(&self) -> bool {
        self.due.len() >= AT_ONCE
            || self.questions.len() >= AT_ONCE
            || self.said.len() >= BUFFER
            || self.extra() != Extra::Nothing
    }
}

impl Client {
    pub(super) fn new(
        state: Arc<ServerState>,
        asker: Asker,
        id: u64,
        connection: Connection,
    ) -> Self {
        Self {
            asker,
            connection,
            framing: Framing::default(),
            reader: state.reader.clone(),
            session: ClientSession::new(Arc::clone(&state), id),
            transaction: None,
            pending: VecDeque::new(),
            is_leaving: false,
            state,
        }
    }

    /// Serves the client until the client leaves, is too slow, or sends bytes that are not a
    /// command.
    pub(super) async fn run(self) -> io::Result<()> {
        let mut client = Box::new(self);
        loop {
            let batch;
            (client, batch) = client.gathered().await?;
            let is_all = batch.due.is_empty();
            if !is_all {
                client.answer(batch).await;
                if client.session.is_known {
                    client.connection.greeting_end = None;
                }
            }
            // Limits the memory for the replies to a client that does not read its replies.
            let replies = client.connection.replies.len();
            if replies >= BUFFER || is_all && replies > 0 {
                client.connection.send().await?;
            }
            if !is_all {
                continue;
            }
            if client.is_leaving {
                return client.connection.close().await;
            }
            if client.connection.receive().await? == 0 {
                return Ok(());
            }
        }
    }

    /// Gathers received commands into a batch. The batch is empty if no command is complete.
    async fn gathered(mut self: Box<Self>) -> io::Result<(Box<Self>, Batch)> {
        let pending: usize = self.pending.iter().map(|(bytes, _)| bytes.len()).sum();
        let is_long = pending + self.connection.received.len() >= LONG;
        let threads = is_long.then(|| self.state.threads.clone());
        let gather = move || {
            let mut batch = Batch::default();
            self.gather(&mut batch);
            (self, batch)
        };
        match threads {
            Some(threads) => threads.run(gather).await.map_err(io::Error::other),
            None => Ok(gather()),
        }
    }

    /// Appends received commands to a batch, until the batch has enough or no command is complete.
    fn gather(&mut self, batch: &mut Batch) {
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
            let spec = find(spoken[0]);
            let command = match Command::parse(spec, &spoken) {
                Ok(command) => command,
                Err(refusal) => {
                    batch.say(&refusal, self.session.version);
                    if let Some(transaction) = &mut self.transaction {
                        transaction.commands = None;
                    }
                    // An unknown command in a line is probably another protocol, such as HTTP. Its
                    // later lines could be commands of an attacker, so the connection ends.
                    self.is_leaving |= words.are_inline() && spec.is_none();
                    continue;
                }
            };
            let refusal = self.refusal(&command, spec.map_or(&[], |spec| spec.keys_of(&spoken)));
            let is_in_transaction = self.transaction.is_some() && !is_pending;
            if is_in_transaction && !command.is_for_transactions() {
                drop(command);
                self.put_off(refusal, (received, words), batch);
            } else if let Some(refusal) = refusal {
                batch.say(&refusal, self.session.version);
            } else {
                self.take(command, batch);
            }
        }
    }

    /// Returns the next complete command. After bytes that are not a command, marks the client as
    /// leaving.
    fn next_received(&mut self, batch: &mut Batch) -> Option<Received> {
        let limits =
            if self.session.is_known { self.state.limits } else { FramingLimits::STRANGER };
        match self.framing.next(&self.connection.received, limits) {
            Ok(framed) => {
                let (words, len) = framed?;
                Some((self.connection.received.split_to(len).freeze(), words))
            }
            Err(broken) => {
                if broken == FramingError::Http {
                    self.state.warn_of_http(self.connection.peer);
                } else {
                    batch.say(&Reply::error(format!("ERR {broken}")), self.session.version);
                }
                self.is_leaving = true;
                None
            }
        }
    }

    /// Returns the error for a command that the client may not run.
    fn refusal(&self, command: &Command<'_>, keys: &[&[u8]]) -> Option<Reply> {
        if !self.session.is_known && !command.is_for_strangers() {
            return Some(Reply::error("NOAUTH Authentication required."));
        }
        let unknown = keys.iter().find(|key| !self.state.serves(key));
        unknown.map(|key| session::unserved(key))
    }

    /// Keeps a command until `EXEC`, unless there is a refusal.
    fn put_off(&mut self, refusal: Option<Reply>, command: Received, batch: &mut Batch) {
        let most = self.state.limits.bytes;
        let Some(transaction) = &mut self.transaction else { return };
        let reply = match refusal {
            Some(refusal) => {
                transaction.commands = None;
                refusal
            }
            None if transaction.push(command, most) => Reply::Simple("QUEUED"),
            None => Reply::error("ERR the transaction has more than serve.request_bytes"),
        };
        batch.say(&reply, self.session.version);
    }

    /// Runs `EXEC`: the kept commands become the next commands of the client.
    fn execute(&mut self, batch: &mut Batch) {
        let refusal = match self.transaction.take().map(|it| it.commands) {
            None => "ERR EXEC without MULTI",
            Some(None) => "EXECABORT Transaction discarded because of previous errors.",
            Some(Some(commands)) => {
                batch.say_array_of(commands.len());
                self.pending = commands.into();
                return;
            }
        };
        batch.say(&Reply::error(refusal), self.session.version);
    }

    /// Runs one command, or adds its questions to the batch.
    fn take(&mut self, command: Command<'_>, batch: &mut Batch) {
        let reply = match command {
            Command::Ask { wanted, members, shape } => {
                return self.ask(wanted, &members, shape, batch);
            }
            Command::Card => {
                return batch.due.push(Due::Fill(Box::new(|fill| Reply::count(fill.keys))));
            }
            Command::Info { field } => {
                let version = self.session.version;
                let info = move |fill| bloom::info(field, &fill, version);
                return batch.due.push(Due::Fill(Box::new(info)));
            }
            Command::Delete if self.state.settings.allow_delete => {
                return batch.due.push(Due::Emptied);
            }
            Command::Delete => Reply::error(
                "NOPERM urlseen does not empty the filter: serve.allow_delete is false. Set \
                 SCHEDULER_PERSIST = True if this is scrapy-redis closing a spider",
            ),
            Command::Say(reply) => reply,
            Command::Hello(hello) => self.session.hello(&hello),
            Command::Auth { user, password } => self.session.auth(user, password),
            Command::Client { subcommand, rest } => self.session.client(subcommand, &rest),
            Command::ServerInfo => Reply::bulk(about::info(&self.state)),
            Command::Multi if self.transaction.is_some() => {
                Reply::error("ERR MULTI calls can not be nested")
            }
            Command::Multi => {
                self.transaction = Some(Transaction::new());
                Reply::OK
            }
            Command::Exec => return self.execute(batch),
            Command::Discard if self.transaction.take().is_some() => Reply::OK,
            Command::Discard => Reply::error("ERR DISCARD without MULTI"),
            Command::Quit => {
                self.is_leaving = true;
                Reply::OK
            }
        };
        batch.say(&reply, self.session.version);
    }

    /// For each member of a command, appends a question to the batch.
    fn ask(&mut self, wanted: Wanted, members: &[&[u8]], shape: ReplyShape, batch: &mut Batch) {
        let (version, questions) = (self.session.version, &mut batch.questions);
        let (begin, mut known) = (questions.len(), Vec::new());
        for (place, bytes) in members.iter().enumerate() {
            match self.reader.read(bytes).map(|item| item.identity) {
                Ok(Identity::Fingerprint(fingerprint)) => {
                    questions.push(Question { wanted, fingerprint });
                }
                Ok(Identity::Unfiltered) => known.push((place, Answer::Unseen)),
                Ok(Identity::Dropped(_)) => known.push((place, Answer::Seen)),
                // Members of sets and of RedisBloom can be any text. With the form `auto`, a member
                // that is not a readable item is used as a fingerprint.
                Err(_) if self.state.items.form == Form::Item(ItemForm::Auto) => {
                    let fingerprint = Fingerprint::from_text(bytes);
                    questions.push(Question { wanted, fingerprint });
                }
                Err(unreadable) => {
                    questions.truncate(begin);
                    let refusal = format!(
                        "ERR {} cannot be read, and nothing was done: {unreadable}",
                        shown(bytes)
                    );
                    return batch.say(&Reply::error(refusal), version);
                }
            }
        }
        let count = questions.len() - begin;
        batch.due.push(Due::Answers { version, shape, wanted, count, known });
    }

    /// Asks the filter the questions of a batch, and writes all replies.
    async fn answer(&mut self, batch: Batch) {
        let extra = batch.extra();
        let Batch { due, questions, mut said } = batch;
        let reply = if questions.is_empty() && extra == Extra::Nothing {
            Some(query::Reply { answers: Vec::new(), fill: None })
        } else {
            self.asker.ask(questions, extra).await
        };
        let Some(query::Reply { answers, fill }) = reply else {
            // The log may already hold fingerprints that these commands added.
            self.is_leaving = true;
            return self.reply(&Reply::error(
                "LOADING urlseen is ending, and the result of this command is unknown; send the \
                 command again after urlseen has started",
            ));
        };
        let mut answers = answers.into_iter();
        for due in due {
            match due {
                Due::Said(len) => {
                    self.connection.replies.extend_from_slice(&said.split_to(len));
                }
                Due::Answers { version, shape, wanted, count, known } => {
                    let mut own: Vec<Answer> = answers.by_ref().take(count).collect();
                    for (place, answer) in known {
                        own.insert(place, answer);
                    }
                    reply::to_answers(shape, wanted, &own)
                        .write(version, &mut self.connection.replies);
                }
                Due::Fill(reply) => {
                    if let Some(fill) = fill {
                        self.reply(&reply(fill));
                    }
                }
                Due::Emptied => self.reply(&Reply::Number(1)),
            }
        }
    }

    fn reply(&mut self, reply: &Reply) {
        reply.write(self.session.version, &mut self.connection.replies);
    }
}
