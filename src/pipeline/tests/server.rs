//! Simulated server: its connections, and the faults that can happen to a command.

use std::collections::VecDeque;
use std::future::ready;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, sleep, timeout_at};

use super::wire::{Inbox, Word, Words};
use super::world::{Data, World};
use crate::pipeline::server::{Awaited, Infos, Server};
use urlseen_redis::error::LinkError;
use urlseen_redis::link::Link;
use urlseen_redis::preflight::{Needs, PreflightError, ServerVersion};
use urlseen_redis::server_search::Node;

/// Silence after which a client considers a connection lost, as in the daemon.
const SILENCE: Duration = Duration::from_secs(30);

/// Fate of a command on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The server executes the command and answers.
    Answered,
    /// The connection breaks before the command reaches the server.
    Lost,
    /// The server executes the command, and the connection breaks.
    Unanswered,
    /// The server executes the command, and the connection breaks in the middle of the reply.
    Torn,
    /// The connection breaks, and the server executes the command and all later ones afterwards.
    Late,
    /// The server refuses the command.
    Refused(&'static str),
}

impl Server for World {
    fn connect(&self) -> Awaited<'_, Result<Link, LinkError>> {
        Box::pin(async {
            sleep(self.delay()).await;
            if self.is_unreachable() {
                return Err(LinkError::LostConnection { cause: "a simulated one".to_owned() });
            }
            let (ours, theirs) = duplex(1 << 16);
            tokio::spawn(self.clone().serve(ours));
            Ok(Link::over(theirs, SILENCE))
        })
    }

    fn check<'a>(
        &'a self,
        _: &'a Needs,
    ) -> Awaited<'a, Result<ServerVersion, Vec<PreflightError>>> {
        // On versions before 7.0, all commits to a list are transactions.
        let is_old = self.draw(2) == 0;
        Box::pin(ready(Ok(if is_old { ServerVersion(6, 2, 0) } else { ServerVersion(7, 0, 0) })))
    }

    fn infos(&self, replicas: Vec<Node>) -> Awaited<'static, Infos> {
        let world = self.clone();
        Box::pin(async move {
            let mut infos = Vec::new();
            for node in replicas {
                infos.push((node, world.trial_saves().await));
            }
            infos
        })
    }

    fn jitter(&self) -> u64 {
        self.draw(u64::MAX)
    }
}

/// Connection of a client, with the replies that it awaits.
struct Client {
    stream: DuplexStream,
    inbox: Inbox,
    /// Replies that come late, each with its time, and those that wait for an earlier one.
    late: VecDeque<(Vec<u8>, Instant)>,
}

impl Client {
    /// Waits for the next command. Meanwhile, sends the replies whose time has come.
    async fn next(&mut self) -> io::Result<Words> {
        while let Some((reply, until)) = self.late.front() {
            if let Ok(words) = timeout_at(*until, self.inbox.next(&mut self.stream)).await {
                return words;
            }
            self.stream.write_all(reply).await?;
            self.late.pop_front();
        }
        self.inbox.next(&mut self.stream).await
    }

    /// Sends a reply after the earlier ones, and after a pause.
    async fn reply(&mut self, reply: &[u8], pause: Duration) -> io::Result<()> {
        if self.late.is_empty() && pause.is_zero() {
            return self.stream.write_all(reply).await;
        }
        let until = Instant::now() + pause;
        let until = self.late.back().map_or(until, |&(_, before)| until.max(before));
        self.late.push_back((reply.into(), until));
        Ok(())
    }
}

impl World {
    /// Serves a client until the client or the server disconnects.
    async fn serve(self, stream: DuplexStream) {
        let mut cut = self.cuts();
        tokio::select! {
            biased;
            _ = cut.changed() => {}
            _ = self.answer(stream) => {}
        }
    }

    async fn answer(&self, stream: DuplexStream) -> io::Result<()> {
        let mut client = Client { stream, inbox: Inbox::default(), late: VecDeque::new() };
        // Commands since `MULTI`.
        let mut queued: Option<Vec<Words>> = None;
        loop {
            let words = client.next().await?;
            match (&*words[0], &mut queued) {
                (b"MULTI", _) => {
                    queued = Some(Vec::new());
                    client.reply(b"+OK\r\n", Duration::ZERO).await?;
                    continue;
                }
                (b"EXEC", _) => {}
                (_, Some(queued)) => {
                    queued.push(words);
                    client.reply(b"+QUEUED\r\n", Duration::ZERO).await?;
                    continue;
                }
                (b"BLMOVE", None) => {
                    client.reply(&self.wait_for_items().await, Duration::ZERO).await?;
                    continue;
                }
                _ => {}
            }
            let commands = queued.take().unwrap_or_else(|| vec![words]);
            sleep(self.delay()).await;
            let tried = self.tried(&commands);
            let (fate, pause) = tried.unwrap_or_else(|| (self.fate(&commands), Duration::ZERO));
            let reply = match fate {
                Fate::Answered | Fate::Torn | Fate::Unanswered if &*commands[0][0] == b"WAIT" => {
                    self.wait_for_replicas(&commands[0]).await
                }
                Fate::Answered | Fate::Torn | Fate::Unanswered => {
                    self.trial_reply(&commands).unwrap_or_else(|| self.execute(&commands))
                }
                Fate::Lost => return Ok(()),
                Fate::Late => return self.run_late(commands, client).await,
                Fate::Refused(error) => error.into(),
            };
            match fate {
                Fate::Unanswered => return Ok(()),
                Fate::Torn => {
                    client.reply(&reply[..reply.len() / 2], pause).await?;
                    return Ok(());
                }
                _ => client.reply(&reply, pause).await?,
            }
        }
    }

    /// Executes later, without an answer, all commands that the client of a broken connection has
    /// sent.
    async fn run_late(&self, mut commands: Vec<Words>, client: Client) -> io::Result<()> {
        let Client { mut stream, mut inbox, .. } = client;
        tokio::select! {
            biased;
            more = inbox.receive(&mut stream) => drop(more),
            () = ready(()) => {}
        }
        drop(stream);
        loop {
            sleep(self.delay()).await;
            self.execute(&commands);
            commands.clear();
            while commands.is_empty() {
                let Some(words) = inbox.ready() else { return Ok(()) };
                if &*words[0] != b"MULTI" {
                    commands.push(words);
                    continue;
                }
                loop {
                    let Some(words) = inbox.ready() else { return Ok(()) };
                    if &*words[0] == b"EXEC" {
                        break;
                    }
                    commands.push(words);
                }
            }
        }
    }

    /// Waits for an item in the source, as `BLMOVE` does for 10 s.
    async fn wait_for_items(&self) -> Vec<u8> {
        let end = Instant::now() + Duration::from_secs(10);
        let fed = async {
            while self.data().state.source.is_empty() {
                self.fed().notified().await;
            }
        };
        match timeout_at(end, fed).await {
            Ok(()) => b"$1\r\nx\r\n".into(),
            Err(_) => b"$-1\r\n".into(),
        }
    }
}

impl Data {
    /// Returns the name of the script in a command or a transaction; empty for other commands.
    pub(super) fn script(&self, commands: &[Words]) -> &'static str {
        let text: Option<&Word> = commands.last().and_then(|words| words.get(1));
        text.and_then(|text| self.scripts.get(text)).copied().unwrap_or_default()
    }
}
