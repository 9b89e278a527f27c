//! Kinds of other projects, whose filters urlseen reads and writes: one file or folder for each,
//! and one line in the registry (`kinds/mod.rs`).
//!
//! Most kinds set bits in Redis strings ([`bit_strings`], [`strings`]); others bring Lua functions
//! of their own ([`script_filter`]). Filters of RedisBloom and valkey-bloom are in memory here.

pub(crate) mod bit_strings;
pub(crate) mod block_cluster;
pub(crate) mod imooc;
pub(crate) mod pyrebloom;
pub(crate) mod redis_lua_scaling;
pub mod redisbloom;
pub(crate) mod redisson;
pub(crate) mod scrapy_redis;
pub(crate) mod scrapy_redis_bloomfilter;
pub(crate) mod script_filter;
pub(crate) mod strings;
#[cfg(test)]
mod tests;
pub(crate) mod valkey_bloom;
