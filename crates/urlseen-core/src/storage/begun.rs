//! A storage folder with a filter.

use std::io;

use super::dir::Dir;
use super::header::Header;
use super::history::Segments;

/// Directory and header of a storage folder with a filter.
#[derive(Debug, Clone)]
pub(super) struct Begun {
    pub(super) dir: Dir,
    pub(super) header: Header,
}

impl Begun {
    /// Lists the files of the log.
    pub(super) fn segments(&self) -> io::Result<Segments> {
        Segments::list(&self.dir, self.header.filter())
    }
}
