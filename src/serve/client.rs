//! One client: its connection, and what it said of itself.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::command::{Command, Hello, Shape, shown};
use super::framing::{Framing, Limits};
use super::member::{self, Read};
use super::reply::{Reply, Version};
use super::{House, about, answer, filter};
use crate::desk::{self, Asker, Counts, Extra};
use crate::engine::{Answer, Question, Wish};
use crate::item::Reader;

/// How long a client may take to read what it is answered, before it is dropped.
const WRITE: Duration = Duration::from_secs(30);

/// How long the rest of a command may be in coming.
const REST: Duration = Duration::from_secs(30);

/// Bytes that are read at once, and kept from one command to the next.
const BUFFER: usize = 64 << 10;

/// About how many questions of a client are asked at once; and the most commands.
const AT_ONCE: usize = 4096;

/// A client that is connected.
pub(super) struct Client {
    house: Arc<House>,
    asker: Asker,
    id: u64,
    stream: TcpStream,
    received: BytesMut,
    replies: BytesMut,
    framing: Framing,
    reader: Reader,
    version: Version,
    name: Vec<u8>,
    /// Whether it may ask: it gave the password, or there is none.
    is_known: bool,
    is_leaving: bool,
}

/// What a command will be answered.
enum Due {
    /// This.
    Reply(Reply),
    /// What so many answers make of it; those of some members are known.
    Answers { shape: Shape, wish: Wish, count: usize, unfiltered: Vec<usize> },
}

/// Commands that are answered together.
#[derive(Default)]
struct Batch {
    /// In the version that was spoken then.
    due: Vec<(Version, Due)>,
    questions: Vec<Question>,
}

/// What ends a batch: it has to be answered before the command behind it.
enum Last {
    Nothing,
    /// What the filter holds makes the reply.
    Counts(Box<dyn FnOnce(Counts) -> Reply + Send>),
    /// The filter is to be emptied.
    Empty,
}

impl Client {
    pub(super) fn new(house: Arc<House>, asker: Asker, id: u64, stream: TcpStream) -> Self {
        Self {
            asker,
            id,
            stream,
            received: BytesMut::new(),
            replies: BytesMut::new(),
            framing: Framing::default(),
            reader: Reader::new(house.items),
            version: Version::Resp2,
            name: Vec::new(),
            is_known: house.password.is_none(),
            is_leaving: false,
            house,
        }
    }

    /// Answers until the client leaves, is too slow, or says what cannot be understood.
    pub(super) async fn run(mut self) -> io::Result<()> {
        loop {
            self.answer_all().await;
            if !self.replies.is_empty() {
                let write = self.stream.write_all(&self.replies);
                timeout(WRITE, write).await.map_err(|_| io::ErrorKind::TimedOut)??;
                self.replies.clear();
            }
            if self.is_leaving {
                return self.stream.shutdown().await;
            }
            if self.received.is_empty() && self.received.capacity() > BUFFER {
                self.received = BytesMut::new();
            }
            if self.replies.capacity() > BUFFER {
                self.replies = BytesMut::new();
            }
            self.received.reserve(4096);
            let is_waiting = self.received.is_empty();
            let read = self.stream.read_buf(&mut self.received);
            // Whoever has not begun a command may take all the time.
            let read = if is_waiting {
                read.await?
            } else {
                timeout(REST, read).await.map_err(|_| io::ErrorKind::TimedOut)??
            };
            if read == 0 {
                return Ok(());
            }
        }
    }

    /// Answers every command that is all there.
    async fn answer_all(&mut self) {
        while !self.is_leaving {
            let mut batch = Batch::default();
            let last = self.gather(&mut batch);
            if batch.due.is_empty() && matches!(last, Last::Nothing) {
                return;
            }
            self.answer(batch, last).await;
        }
    }

    /// Takes commands as long as they can be answered together.
    fn gather(&mut self, batch: &mut Batch) -> Last {
        while batch.due.len() < AT_ONCE && batch.questions.len() < AT_ONCE && !self.is_leaving {
            let limits = if self.is_known { self.house.limits } else { Limits::STRANGER };
            let framed = match self.framing.next(&self.received, limits) {
                Ok(None) => break,
                Ok(Some(framed)) => framed,
                Err(broken) => {
                    batch
                        .due
                        .push((self.version, Due::Reply(Reply::error(format!("ERR {broken}")))));
                    self.is_leaving = true;
                    break;
                }
            };
            let received = self.received.split_to(framed.len).freeze();
            if framed.words.len() == 0 {
                continue;
            }
            match Command::parse(&framed.words.of(&received)) {
                Err(refusal) => batch.due.push((self.version, Due::Reply(refusal))),
                Ok(command) => match self.take(command, batch) {
                    Last::Nothing => {}
                    last => return last,
                },
            }
        }
        Last::Nothing
    }

    /// Takes one command.
    fn take(&mut self, command: Command<'_>, batch: &mut Batch) -> Last {
        if !self.is_known && !command.is_for_strangers() {
            let refusal = Reply::error("NOAUTH Authentication required.");
            batch.due.push((self.version, Due::Reply(refusal)));
            return Last::Nothing;
        }
        if let Some(key) = command.keys().iter().find(|key| !self.house.serves(key)) {
            batch.due.push((self.version, Due::Reply(unserved(key))));
            return Last::Nothing;
        }
        let reply = match command {
            Command::Ask { wish, members, shape, .. } => {
                let due = self.ask(wish, &members, shape, &mut batch.questions);
                batch.due.push((self.version, due));
                return Last::Nothing;
            }
            Command::Card { .. } => {
                return Last::Counts(Box::new(|counts| filter::number(counts.keys)));
            }
            Command::Info { field, .. } => {
                let (filter, version) = (self.house.filter, self.version);
                return Last::Counts(Box::new(move |counts| {
                    let all = filter.info(field, counts);
                    match (version, field) {
                        // As RedisBloom has it: the value alone.
                        (Version::Resp2, Some(_)) => {
                            Reply::Array(all.into_iter().map(|(_, value)| value).collect())
                        }
                        _ => Reply::Map(all),
                    }
                }));
            }
            Command::Delete { .. } if self.house.allow_delete => return Last::Empty,
            Command::Delete { .. } => Reply::error(
                "NOPERM the filter is not to be emptied: serve.allow_delete is false. Set \
                 SCHEDULER_PERSIST = True if this is scrapy-redis closing a spider",
            ),
            Command::Reserve { .. } => Reply::error("ERR item exists"),
            Command::Ping { message: None } => Reply::Simple("PONG"),
            Command::Ping { message: Some(message) } | Command::Echo { message } => {
                Reply::bulk(message)
            }
            Command::Select { database } => select(database),
            Command::Hello(hello) => self.hello(&hello),
            Command::Auth { user, password } => self.auth(user, password),
            Command::Client { subcommand, rest } => self.client(subcommand, &rest),
            Command::ServerInfo => Reply::bulk(about::info(&self.house)),
            Command::Commands { subcommand, rest } => about::commands(subcommand, &rest),
            Command::Quit => {
                self.is_leaving = true;
                Reply::Ok
            }
        };
        batch.due.push((self.version, Due::Reply(reply)));
        Last::Nothing
    }

    /// Makes questions of a command's members.
    fn ask(
        &mut self,
        wish: Wish,
        members: &[&[u8]],
        shape: Shape,
        questions: &mut Vec<Question>,
    ) -> Due {
        let (begin, mut unfiltered) = (questions.len(), Vec::new());
        for (place, bytes) in members.iter().enumerate() {
            match member::read(&mut self.reader, self.house.items, bytes) {
                Ok(Read::Fingerprint(fingerprint)) => {
                    questions.push(Question { wish, fingerprint });
                }
                Ok(Read::Unfiltered) => unfiltered.push(place),
                Err(unreadable) => {
                    questions.truncate(begin);
                    return Due::Reply(Reply::error(format!(
                        "ERR {} cannot be read, and nothing was done: {unreadable}",
                        shown(bytes)
                    )));
                }
            }
        }
        Due::Answers { shape, wish, count: questions.len() - begin, unfiltered }
    }

    /// Has the questions answered, and writes all replies.
    async fn answer(&mut self, batch: Batch, last: Last) {
        let Batch { due, questions } = batch;
        let extra = match &last {
            Last::Nothing => Extra::Nothing,
            Last::Counts(_) => Extra::Counts,
            Last::Empty => Extra::Empty,
        };
        let reply = if questions.is_empty() && extra == Extra::Nothing {
            Some(desk::Reply { answers: Vec::new(), counts: None })
        } else {
            self.asker.ask(questions, extra).await
        };
        let Some(desk::Reply { answers, counts }) = reply else {
            // What was added may be in the log, so nothing can be said of it.
            self.is_leaving = true;
            return self.reply(Reply::error(
                "LOADING urlseen is ending, and has not said whether it added anything; ask again \
                 when it is back",
            ));
        };
        let mut answers = answers.into_iter();
        for (version, due) in due {
            let reply = match due {
                Due::Reply(reply) => reply,
                Due::Answers { shape, wish, count, unfiltered } => {
                    let mut own: Vec<Answer> = answers.by_ref().take(count).collect();
                    for place in unfiltered {
                        own.insert(place, Answer::Unseen);
                    }
                    answer::reply(shape, wish, &own)
                }
            };
            reply.write(version, &mut self.replies);
        }
        match (last, counts) {
            (Last::Counts(reply), Some(counts)) => self.reply(reply(counts)),
            (Last::Empty, _) => self.reply(Reply::Number(1)),
            _ => {}
        }
    }

    fn reply(&mut self, reply: Reply) {
        reply.write(self.version, &mut self.replies);
    }

    fn hello(&mut self, hello: &Hello<'_>) -> Reply {
        let version = match hello.version {
            None => self.version,
            Some(b"2") => Version::Resp2,
            Some(b"3") => Version::Resp3,
            Some(other) if other.iter().all(u8::is_ascii_digit) => {
                return Reply::error("NOPROTO unsupported protocol version");
            }
            Some(_) => {
                return Reply::error("ERR Protocol version is not an integer or out of range");
            }
        };
        if let Some((user, password)) = hello.auth
            && let refusal @ Reply::Error(_) = self.auth(Some(user), password)
        {
            return refusal;
        }
        if !self.is_known {
            return Reply::error(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                 HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client \
                 and select the RESP protocol version at the same time",
            );
        }
        if let Some(name) = hello.name
            && let refusal @ Reply::Error(_) = self.set_name(name)
        {
            return refusal;
        }
        self.version = version;
        about::hello(version, self.id)
    }

    fn auth(&mut self, user: Option<&[u8]>, password: &[u8]) -> Reply {
        let is_default = user.is_none_or(|user| user == b"default");
        match &self.house.password {
            None if user.is_none() => Reply::error(
                "ERR AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            ),
            None if is_default => Reply::Ok,
            Some(own) if is_default && own.is(password) => {
                self.is_known = true;
                Reply::Ok
            }
            _ => Reply::error("WRONGPASS invalid username-password pair or user is disabled."),
        }
    }

    fn client(&mut self, subcommand: &[u8], rest: &[&[u8]]) -> Reply {
        let is = |name: &str| subcommand.eq_ignore_ascii_case(name.as_bytes());
        match rest {
            [name] if is("setname") => self.set_name(name),
            [] if is("getname") && self.name.is_empty() => Reply::Null,
            [] if is("getname") => Reply::bulk(self.name.clone()),
            [] if is("id") => filter::number(self.id),
            _ => about::unknown_subcommand("CLIENT", subcommand),
        }
    }

    fn set_name(&mut self, name: &[u8]) -> Reply {
        if !name.iter().all(u8::is_ascii_graphic) {
            return Reply::error(
                "ERR Client names cannot contain spaces, newlines or special characters.",
            );
        }
        self.name = name.to_vec();
        Reply::Ok
    }
}

/// A filter is in the first database alone.
fn select(database: &[u8]) -> Reply {
    /// How many databases a server has by default.
    const DATABASES: i64 = 16;
    let number = std::str::from_utf8(database).ok().and_then(|text| text.parse::<i64>().ok());
    match number {
        Some(0) => Reply::Ok,
        Some(1..DATABASES) => Reply::error("ERR urlseen serves database 0 alone"),
        Some(_) => Reply::error("ERR DB index is out of range"),
        None => Reply::error("ERR value is not an integer or out of range"),
    }
}

/// A key that belongs to somebody else, as far as anybody knows here.
fn unserved(key: &[u8]) -> Reply {
    Reply::error(format!(
        "NOPERM urlseen answers for the keys in serve.keys alone, and '{}' is none of them: a \
         filter must not take one crawl's URLs for another's",
        shown(key)
    ))
}
