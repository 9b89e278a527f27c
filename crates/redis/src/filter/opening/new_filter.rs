//! Filter that is assembled in Redis under temporary keys until it is complete.
//!
//! The names of the temporary keys end with a random id. The keys expire if the work stops. At the
//! end, one script renames all of them to their final names.

use redis::Cmd;
use urlseen_filter::id::RandomId;
use urlseen_filter::{RedisFilterKeys, Seed};

use super::strings::{Strings, words};
use super::{Opened, RedisOpenError, Wanted};
use crate::error::LinkError;
use crate::filter::definition::{self, Definition};
use crate::link::Link;

/// Maximum number of bytes in one command.
const PAGE: usize = 4 << 20;

/// Lifetime of the temporary keys after the last write, in seconds.
const STAYS: u64 = 3600;

/// A filter that is being assembled.
#[derive(Debug)]
pub struct NewFilter {
    aside: RedisFilterKeys,
    target: RedisFilterKeys,
    definition: Definition,
}

impl Wanted {
    /// Opens the filter at the configured key with the parameters in its definition, and changes
    /// nothing. A filter of another project has no definition. The configured parameters then
    /// apply.
    ///
    /// # Errors
    /// The filter does not exist, or the keys hold another kind.
    pub async fn find_as_defined(&self, link: &mut Link) -> Result<Opened, RedisOpenError> {
        let missing = || RedisOpenError::Missing(self.key.clone());
        let definition = match self.definition(link, None).await? {
            Some(found) => found,
            None if self.spec.kind().has_seed() => return Err(missing()),
            None => Definition::new(&self.spec),
        };
        let spec = definition.spec.clone();
        let opened = self.held_to(definition, &spec)?;
        if !Strings::look(link, &opened.filter).await?.are_there {
            return Err(missing());
        }
        Ok(opened)
    }

    /// Begins to assemble a filter with this id and seed under temporary keys. The configured key,
    /// which the filter gets at the end, must be free.
    ///
    /// # Errors
    /// The key is taken, or the server has no room.
    pub async fn begin_new(
        &self,
        link: &mut Link,
        id: RandomId,
        seed: Seed,
    ) -> Result<NewFilter, RedisOpenError> {
        let target = self.filter(seed)?;
        let key = || self.key.clone();
        if self.definition(link, None).await?.is_some() || are_any(link, &target).await? {
            return Err(RedisOpenError::Taken(key()));
        }
        Strings::look(link, &target).await?.check_room(link).await?;
        let mut aside = self.clone();
        aside.key = format!("{}:new:{}", key(), RandomId::random());
        let definition = Definition::of(id, self.seeded(seed));
        Ok(NewFilter { aside: aside.filter(seed)?, target, definition })
    }
}

impl NewFilter {
    /// Writes one of the filter's strings, under the string's temporary key.
    ///
    /// # Errors
    /// Redis fails.
    pub async fn put(&self, link: &mut Link, string: u32, bytes: &[u8]) -> Result<(), LinkError> {
        let key = self.aside.key(string);
        for (offset, page) in (0_u64..).step_by(PAGE).zip(bytes.chunks(PAGE)) {
            // Bytes that were never written read as 0, so zeros need not be written.
            if page.iter().any(|&byte| byte != 0) {
                link.call(redis::cmd("SETRANGE").arg(&key).arg(offset).arg(page)).await?;
                link.call(redis::cmd("EXPIRE").arg(&key).arg(STAYS)).await?;
            }
        }
        Ok(())
    }

    /// Renames all keys to their final names.
    ///
    /// # Errors
    /// Another program took a key of the filter meanwhile, or Redis fails.
    pub async fn finish(self, link: &mut Link) -> Result<(), RedisOpenError> {
        let used = &self.target.keys;
        let mut finish = redis::cmd("EVAL");
        let (record, words_of_definition) = (self.target.record(), self.definition.words());
        let keys = 1 + 2 * used.len() + usize::from(record.is_some());
        finish.arg(include_str!("finish.lua")).arg(keys).arg(definition::key(&self.target.base));
        for &(number, _) in used {
            finish.arg(self.aside.key(number)).arg(self.target.key(number));
        }
        finish.arg(record.as_ref().map(|record| &record.key));
        finish.arg(2 * used.len()).arg(words_of_definition.len()).arg(words_of_definition);
        finish.arg(record.as_ref().map(words));
        if link.query::<u64>(&finish).await? == 0 {
            return Err(RedisOpenError::Taken(self.target.base.clone()));
        }
        Ok(())
    }
}

/// Returns true if Redis has any key of a filter.
async fn are_any(link: &mut Link, filter: &RedisFilterKeys) -> Result<bool, LinkError> {
    let keys: Vec<_> = filter.keys.iter().map(|&(it, _)| filter.key(it)).collect();
    Ok(link.query::<u64>(&Cmd::exists(keys)).await? > 0)
}

/// Reads one of the filter's strings. Missing bytes are 0.
///
/// # Errors
/// Redis fails.
pub async fn get(
    link: &mut Link,
    filter: &RedisFilterKeys,
    string: u32,
) -> Result<Vec<u8>, LinkError> {
    let content = filter.keys.iter().find(|&&(number, _)| number == string);
    let length = content.and_then(|(_, content)| content.max_bytes()).unwrap_or(0);
    let (length, mut bytes) = (usize::try_from(length).expect("512 MiB at most"), Vec::new());
    while bytes.len() < length {
        let end = length.min(bytes.len() + PAGE);
        let mut read = redis::cmd("GETRANGE");
        read.arg(filter.key(string)).arg(bytes.len()).arg(end - 1);
        bytes.extend(link.query::<Vec<u8>>(&read).await?);
        bytes.resize(end, 0);
    }
    Ok(bytes)
}
