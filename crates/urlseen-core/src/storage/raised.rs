//! Limits of single groups that a user has set: the file `raised`.
//!
//! ```text
//! [{"limit":"by = \"host\" ","group":"example.org","max":5000}]
//! 89abcdef
//! ```
//!
//! `limit` is the scope of the rule, `group` the name of the group. The last line is the CRC-32C of
//! all before it.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::dir::Dir;
use super::disk::RealDisk;
use super::note;
use crate::filter::Hashed;
use crate::limit::{Group, LimitRule};

/// Name of the file in the folder.
pub(super) const NAME: &str = "raised";

/// Maximum number of groups with a limit of their own.
const MOST: usize = 10_000;

/// Maximum length in bytes of the name of a group in the file.
const LONGEST: usize = 8 << 10;

/// Limits of single groups, in place of those of their rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Raised {
    all: Vec<RaisedGroup>,
    by_group: HashMap<Group, u64, Hashed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RaisedGroup {
    limit: String,
    group: String,
    max: u64,
}

impl Raised {
    /// Reads the limits of the groups of a folder.
    pub(super) fn read(dir: &Dir) -> Self {
        let mut raised = Self::default();
        for RaisedGroup { limit, group, max } in note::read(dir, NAME).unwrap_or_else(Vec::new) {
            raised.insert(limit, group, max);
        }
        raised
    }

    /// Writes the limits to the folder at a path, which this process has locked. They are on the
    /// disk when the method returns.
    ///
    /// # Errors
    /// The disk fails.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let dir = RealDisk::at(path);
        note::write(&dir, NAME, &self.all)?;
        dir.sync()
    }

    /// Returns the limit of a group, if it has one of its own.
    pub fn of(&self, group: Group) -> Option<u64> {
        self.by_group.get(&group).copied()
    }

    /// Sets the limit of a group of a rule.
    ///
    /// # Errors
    /// Too many groups have a limit of their own, or the name is too long.
    pub fn set(&mut self, rule: &LimitRule, group: &str, max: u64) -> Result<(), RaisedError> {
        if group.len() > LONGEST {
            return Err(RaisedError::TooLong);
        }
        let limit = rule.scope();
        self.all.retain(|it| (&it.limit, &it.group[..]) != (&limit, group));
        if self.all.len() == MOST {
            return Err(RaisedError::TooMany);
        }
        self.insert(limit, group.to_owned(), max);
        Ok(())
    }

    fn insert(&mut self, limit: String, group: String, max: u64) {
        self.by_group.insert(Group::in_scope(&limit, &group), max);
        self.all.push(RaisedGroup { limit, group, max });
    }
}

/// Reason why a group cannot have a limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RaisedError {
    /// Too many other groups have one.
    #[error("{MOST} groups have a limit of their own, which is the most: raise max of the rule")]
    TooMany,
    /// The name is longer than that of any group.
    #[error("the name of a group has at most {LONGEST} bytes")]
    TooLong,
}
