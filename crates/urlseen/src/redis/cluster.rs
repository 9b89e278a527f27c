//! Nodes of a Redis Cluster, and the search for the node that serves a key.

use redis::{Client, Cmd, RedisResult, Value, cmd};

use super::RedisOptions;
use super::server::{Nodes, at, open, unreachable};
use urlseen_core::redis::error::LinkError;

/// Maximum number of `MOVED` answers that one search follows. While a slot changes its node, two
/// nodes may name each other.
const HOPS: usize = 4;

/// Some nodes of a cluster, and a key. The commands go to the node that serves the key, or to any
/// node if the key is empty.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    pub(super) nodes: Nodes,
    pub(super) key: String,
}

impl Cluster {
    /// Finds the node that serves the key.
    pub(super) fn find(&self, options: &RedisOptions) -> RedisResult<Client> {
        let failure = "no node of the Redis Cluster leads to the node that serves the keys";
        self.nodes.first_answer(failure, |node| self.follow(node.clone(), options))
    }

    /// Follows the answers of nodes, beginning at `node`. A replica also answers with the address
    /// of its primary.
    fn follow(&self, node: Client, options: &RedisOptions) -> RedisResult<Client> {
        let mut client = node;
        for _ in 0..=HOPS {
            let asked = self.question().query::<Value>(&mut open(&client, options)?);
            let Err(error) = asked else { return Ok(client) };
            match LinkError::from(error.clone()) {
                LinkError::Moved { to, .. } => {
                    let (host, port) = to.rsplit_once(':').ok_or_else(|| error.clone())?;
                    client = at(&client, host, port.parse().map_err(|_| error)?)?;
                }
                // The slot is being moved. Its node still answers for the keys that it has.
                LinkError::SlotMoving { .. } => return Ok(client),
                _ => return Err(error),
            }
        }
        Err(unreachable("the nodes do not agree about the slot of the keys".to_owned()))
    }

    fn question(&self) -> Cmd {
        if self.key.is_empty() { cmd("PING") } else { cmd("TYPE").arg(&self.key).clone() }
    }
}
