//! A storage folder with a filter.

use super::dir::Dir;
use super::header::Header;

/// Directory and header of a storage folder with a filter.
#[derive(Debug, Clone)]
pub(super) struct Begun {
    pub(super) dir: Dir,
    pub(super) header: Header,
}
