//! Simulated server: its connections, and the faults that can happen to a command.

use std::future::ready;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, sleep, timeout_at};

use super::wire::{Inbox, Words};
use super::world::World;
use crate::pipeline::server::{Awaited, Infos, Server};
use urlseen_core::redis::Node;
use urlseen_core::redis::error::LinkError;
use urlseen_core::redis::link::Link;
use urlseen_core::redis::preflight::{Needs, PreflightError, ServerVersion};

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
        Box::pin(ready(Ok(self.version())))
    }

    fn infos(&self, replicas: Vec<Node>) -> Awaited<'static, Infos> {
        assert_eq!(replicas, [], "the simulated server reports no replicas");
        Box::pin(ready(Vec::new()))
    }

    fn jitter(&self) -> u64 {
        self.draw(u64::MAX)
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

    async fn answer(&self, mut stream: DuplexStream) -> io::Result<()> {
        let mut inbox = Inbox::default();
        // Commands since `MULTI`.
        let mut queued: Option<Vec<Words>> = None;
        loop {
            let words = inbox.next(&mut stream).await?;
            match (&*words[0], &mut queued) {
                (b"MULTI", _) => {
                    queued = Some(Vec::new());
                    stream.write_all(b"+OK\r\n").await?;
                    continue;
                }
                (b"EXEC", _) => {}
                (_, Some(queued)) => {
                    queued.push(words);
                    stream.write_all(b"+QUEUED\r\n").await?;
                    continue;
                }
                (b"BLMOVE", None) => {
                    stream.write_all(&self.wait_for_items().await).await?;
                    continue;
                }
                _ => {}
            }
            let commands = queued.take().unwrap_or_else(|| vec![words]);
            sleep(self.delay()).await;
            let fate = self.fate(&commands);
            let reply = match fate {
                Fate::Answered | Fate::Torn | Fate::Unanswered if &*commands[0][0] == b"WAIT" => {
                    self.wait_for_replicas(&commands[0]).await
                }
                Fate::Answered | Fate::Torn | Fate::Unanswered => self.execute(&commands),
                Fate::Lost => return Ok(()),
                Fate::Late => return self.run_late(commands, inbox, stream).await,
                Fate::Refused(error) => error.into(),
            };
            match fate {
                Fate::Unanswered => return Ok(()),
                Fate::Torn => {
                    stream.write_all(&reply[..reply.len() / 2]).await?;
                    return Ok(());
                }
                _ => stream.write_all(&reply).await?,
            }
        }
    }

    /// Executes later, without an answer, all commands that the client of a broken connection has
    /// sent.
    async fn run_late(
        &self,
        mut commands: Vec<Words>,
        mut inbox: Inbox,
        mut stream: DuplexStream,
    ) -> io::Result<()> {
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
