//! What stands before all else in a script that runs in Redis.

/// How many arguments Lua hands over at once, and the refusal of what this user may not do.
pub const COMMON: &str = include_str!("common.lua");
