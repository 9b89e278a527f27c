//! `urlseen status --watch`: draws the state of daemons once a second, until it is interrupted.

use std::convert::Infallible;
use std::io;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use urlseen_engine::config::Config;

use super::context::runtime;
use super::screen::Screen;
use super::settings::Place;
use super::speed::Speeds;
use super::{Outcome, newest, overview, start, status};
use crate::admin::{AdminClient, ClientError, Counts, Status};

/// Time between two drawings.
const PERIOD: Duration = Duration::from_secs(1);

/// Daemon of a partition.
struct Daemon {
    partition: u16,
    client: AdminClient,
}

/// Draws the state of the daemons of these partitions. Ends at SIGINT (Ctrl-C) or SIGTERM.
pub(super) fn watch(partitions: Vec<(Config, Place)>) -> anyhow::Result<Outcome> {
    let daemons = partitions.into_iter().map(|(config, place)| {
        let Place::Folder(folder) = place else {
            let reason = "the filter is in Redis, and its daemon has no socket to ask; --watch \
                          needs filter.place = \"local\"";
            return Err(start::usage(reason));
        };
        let client = AdminClient::new(&folder)?;
        Ok(Daemon { partition: config.partition.number(), client })
    });
    let daemons = daemons.collect::<Result<Vec<_>, _>>()?;
    runtime()?.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
        let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
        let screen = Screen::open()?.ok_or_else(|| {
            start::usage(
                "--watch draws on a terminal, and standard output is not one: leave it out",
            )
        })?;
        tokio::select! {
            never = draw(screen, &daemons) => match never? {},
            _ = interrupt.recv() => Ok(Outcome::Done),
            _ = terminate.recv() => Ok(Outcome::Done),
        }
    })
}

/// Draws until the terminal fails, or until a daemon gives an answer that cannot be used.
async fn draw(mut screen: Screen, daemons: &[Daemon]) -> anyhow::Result<Infallible> {
    let mut speeds = Speeds::default();
    loop {
        let mut text = Vec::new();
        let (mut found, mut newest) = (Vec::new(), Vec::new());
        for Daemon { partition, client } in daemons {
            let asked = async { Ok((client.status::<Status>().await?, client.samples(0).await?)) };
            match asked.await {
                Ok((status, samples)) => {
                    found.push((*partition, Some(status)));
                    newest.extend(samples);
                }
                Err(error @ (ClientError::NoDaemon { .. } | ClientError::Silent { .. })) => {
                    found.push((*partition, None));
                    text.extend(format!("{error}; asking again\n\n").into_bytes());
                }
                Err(error) => return Err(error.into()),
            }
        }
        print(&found, &mut speeds, &mut text)?;
        let lines = String::from_utf8_lossy(&text).lines().count();
        newest::print(newest, screen.size().0.saturating_sub(lines), &mut text)?;
        screen.draw(&String::from_utf8_lossy(&text))?;
        tokio::time::sleep(PERIOD).await;
    }
}

/// Prints the state of one daemon, or an overview of several.
fn print(
    found: &[(u16, Option<Status>)],
    speeds: &mut Speeds,
    text: &mut Vec<u8>,
) -> io::Result<()> {
    let counts = found.iter().filter_map(|(_, status)| Some(status.as_ref()?.counts));
    let counts = counts.reduce(Counts::and);
    let speed = counts.and_then(|counts| speeds.note(counts, Instant::now()));
    match found {
        [(_, None)] => Ok(()),
        [(_, Some(status))] => status::print(status, speed, SystemTime::now(), text),
        _ => overview::print(found, speed, text),
    }
}
