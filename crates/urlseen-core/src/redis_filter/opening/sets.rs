//! Functions that read the members of a filter that is a Redis set, page by page.

use crate::redis::error::LinkError;
use crate::redis::link::Link;

/// Approximate number of members that Redis examines before it serves other clients.
const COUNT: u64 = 5000;

/// Reason why the members of a set could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// Redis or the connection to Redis failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Another program writes to the set.
    #[error(
        "another program wrote to the set {key} while it was read, so the counts are not of one \
         moment; stop the programs that write to the set, and give the command again"
    )]
    Changed {
        /// Key of the changed set.
        key: String,
    },
}

/// Iteration over all members of a set, page by page.
#[derive(Debug)]
pub struct Members {
    key: String,
    cursor: Option<u64>,
    size: u64,
    count: u64,
}

impl Members {
    /// Starts at the first member.
    ///
    /// # Errors
    /// Redis fails.
    pub async fn new(link: &mut Link, key: &str) -> Result<Self, LinkError> {
        Ok(Self { key: key.to_owned(), cursor: Some(0), size: size(link, key).await?, count: 0 })
    }

    /// Returns the number of members at the start.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads the next page. Returns `None` after the last page.
    ///
    /// # Errors
    /// Redis fails. The call after the last page also fails if another program wrote to the set
    /// meanwhile.
    pub async fn next(&mut self, link: &mut Link) -> Result<Option<Vec<Vec<u8>>>, SetError> {
        let Some(cursor) = self.cursor else {
            // Notices members that another program added, and members that Redis returned twice.
            // Redis returns a member twice only if a write has moved members in the set's table.
            if self.count != self.size || size(link, &self.key).await? != self.size {
                return Err(SetError::Changed { key: self.key.clone() });
            }
            return Ok(None);
        };
        let mut scan = redis::cmd("SSCAN");
        scan.arg(&self.key).arg(cursor).arg("COUNT").arg(COUNT);
        let (cursor, members): (u64, Vec<Vec<u8>>) = link.query(&scan).await?;
        self.cursor = (cursor != 0).then_some(cursor);
        self.count += members.len() as u64;
        Ok(Some(members))
    }
}

/// Returns the number of those `members` that a set contains.
///
/// # Errors
/// Redis fails.
pub async fn common(link: &mut Link, key: &str, members: &[Vec<u8>]) -> Result<u64, LinkError> {
    if members.is_empty() {
        return Ok(0);
    }
    let mut ask = redis::cmd("SMISMEMBER");
    Ok(link.query::<Vec<u64>>(ask.arg(key).arg(members)).await?.into_iter().sum())
}

async fn size(link: &mut Link, key: &str) -> Result<u64, LinkError> {
    link.query(redis::cmd("SCARD").arg(key)).await
}
