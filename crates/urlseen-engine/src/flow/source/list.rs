//! A Redis list as source.

use redis::{Cmd, cmd};

use super::Source;
use crate::config::End;
use crate::item::Items;
use urlseen_core::redis::keys::Keys;
use urlseen_core::redis::link::Reply;
use urlseen_core::redis::preflight::{CommandNeed, KeyKind, KeyOwner, Needs};

/// A list that items are taken from at one end.
#[derive(Debug)]
pub struct List {
    take_from: End,
}

impl List {
    /// Takes from the given end.
    pub(crate) fn new(take_from: End) -> Self {
        Self { take_from }
    }

    /// Takes from the left end.
    pub fn from_left() -> Self {
        Self::new(End::Left)
    }

    fn lua(&self, functions: &str) -> String {
        let end = match self.take_from {
            End::Left => "left",
            End::Right => "right",
        };
        format!("local TAKE_FROM = '{end}'\n{functions}")
    }
}

impl Source for List {
    fn lua_commit(&self) -> String {
        self.lua(include_str!("list.lua"))
    }

    fn lua_give_back(&self) -> String {
        self.lua(include_str!("list_give_back.lua"))
    }

    fn window(&self, processing: &str, from: u64, count: u64) -> Cmd {
        let mut command = cmd("LRANGE");
        command.arg(processing);
        match self.take_from {
            End::Left => command.arg(from).arg(from + count - 1),
            // Indexes from the right end count from -1 down.
            End::Right => command.arg(format!("-{}", from + count)).arg(format!("-{}", from + 1)),
        };
        command
    }

    fn items(&self, reply: Reply) -> Option<Items> {
        let (bytes, mut places) = reply.into_strings()?;
        if self.take_from == End::Right {
            places.reverse();
        }
        Some(Items::new(bytes, places))
    }

    fn wait(&self, source: &str, seconds: f64) -> Cmd {
        // Moves an item from an end to the same end, so to where it is; blocks while there is
        // none.
        let mut command = cmd("BLMOVE");
        command.arg(source).arg(source).arg("LEFT").arg("LEFT").arg(seconds);
        command
    }

    fn length(&self, source: &str) -> Cmd {
        let mut command = cmd("LLEN");
        command.arg(source);
        command
    }

    fn needs(&self, keys: &Keys, needs: &mut Needs) {
        let (source, processing) = (keys.source.as_str(), keys.processing.as_str());
        needs.key(KeyOwner::Setting("source.key"), source, KeyKind::List);
        needs.key(KeyOwner::Own("list of claimed items"), processing, KeyKind::List);
        let command = CommandNeed::new;
        let wait = command("BLMOVE").key(source).key(source).arg("LEFT").arg("LEFT").arg("1");
        needs.command(wait);
        needs.command(command("LTRIM").key(processing).arg("0").arg("-1"));
        needs.command(command("LRANGE").key(processing).arg("0").arg("0"));
        needs.command(command("EXISTS").key(source));
        // Claiming renames one way. Giving back renames the other way, or moves the shorter list.
        for (from, to) in [(source, processing), (processing, source)] {
            needs.command(command("LLEN").key(from));
            needs.command(command("RENAME").key(from).key(to));
            needs.command(command("LMOVE").key(from).key(to).arg("LEFT").arg("LEFT"));
        }
    }
}
