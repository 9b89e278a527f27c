//! Uses of the disk in memory by other crates.

use std::time::Instant;

use super::SimDisk;
use crate::error::OpenError;
use crate::requests::{FolderRequest, Requests};
use crate::{AtRest, Folder};

impl Folder {
    /// Opens the folder of a simulated disk, like [`Folder::open`].
    ///
    /// # Errors
    /// The errors of [`Folder::open`].
    pub fn open_simulated(disk: &SimDisk) -> Result<Self, OpenError> {
        Self::open_on(disk.dir())
    }
}

impl AtRest {
    /// Opens the folder of a simulated disk, like [`AtRest::open`].
    ///
    /// # Errors
    /// The errors of [`AtRest::open`].
    pub fn open_simulated(disk: &SimDisk) -> Result<Self, OpenError> {
        Self::open_on(&disk.dir())
    }
}

impl Requests {
    /// Notes a request of a simulated disk, and returns its number for [`Requests::end_hang`].
    pub fn begin_hang(&self, since: Instant) -> u64 {
        self.note(FolderRequest { what: "a simulated request", since })
    }

    /// Notes that a simulated disk has answered a request.
    pub fn end_hang(&self, number: u64, now: Instant) {
        self.answered(number, now);
    }
}
