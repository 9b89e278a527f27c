//! A Redis list as sink.

use redis::{Cmd, cmd};

use super::Sink;
use crate::config::End;

/// A list that items are pushed to at one end.
#[derive(Debug)]
pub struct List {
    push_to: End,
}

impl List {
    /// Pushes to the given end.
    pub fn new(push_to: End) -> Self {
        Self { push_to }
    }
}

impl Sink for List {
    fn lua(&self) -> String {
        let command = match self.push_to {
            End::Left => "LPUSH",
            End::Right => "RPUSH",
        };
        format!("local PUSH = '{command}'\n{}", include_str!("list.lua"))
    }

    fn length(&self, sink: &str) -> Cmd {
        let mut command = cmd("LLEN");
        command.arg(sink);
        command
    }
}
