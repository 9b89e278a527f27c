//! stub
/// stub
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Trouble(#[from] redis::RedisError);
