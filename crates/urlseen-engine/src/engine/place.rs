//! Where a filter is, and what that makes of a thread.

use std::sync::Arc;

use super::StartError;
use super::growing::Growing;
use super::memory::Memory;
use urlseen_core::filter::{Hashing, Recent, RedisFilterKeys, Reservation, Shards};

/// Where a filter is.
#[derive(Debug, Clone)]
pub enum Place {
    /// In the memory of the threads.
    Here,
    /// In the memory of one thread, in one piece: a filter of RedisBloom.
    InOne {
        /// What it is made for where it is empty.
        reservation: Reservation,
        /// The most bytes that its layers may take.
        limit: u64,
    },
    /// In Redis, which judges. The threads remember some of what they know to be seen.
    Redis {
        /// Where in Redis.
        shared: Arc<RedisFilterKeys>,
        /// How many fingerprints are remembered at most.
        recent: usize,
    },
}

impl Place {
    pub(super) fn shared(&self) -> Option<Arc<RedisFilterKeys>> {
        match self {
            Self::Here | Self::InOne { .. } => None,
            Self::Redis { shared, .. } => Some(Arc::clone(shared)),
        }
    }

    pub(super) fn memory(
        &self,
        hashing: Hashing,
        owner: usize,
        owners: usize,
    ) -> Result<Memory, StartError> {
        Ok(match (self, hashing) {
            (Self::Redis { recent, .. }, _) => Memory::Recent(Recent::new(recent / owners)),
            (Self::InOne { reservation, limit }, _) if owner == 0 => {
                Memory::RedisBloom(Growing::start(*reservation, *limit)?)
            }
            (Self::Here, Hashing::Native(native)) => {
                Memory::Whole(Shards::allocate(native, owner, owners)?)
            }
            (Self::InOne { .. }, _) | (Self::Here, Hashing::RedisBloom) => Memory::Elsewhere,
        })
    }
}
