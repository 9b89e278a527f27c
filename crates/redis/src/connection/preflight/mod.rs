//! Check that Redis has and permits everything that a crawl needs. The check runs before the crawl
//! starts.
//!
//! The check uses a connection of its own. The check sends commands that only read, and queues all
//! other commands in a `MULTI` that it discards. So it writes nothing. It reports all problems at
//! once.

mod facts;
mod needs;
mod permissions;
mod problem;

use std::collections::HashMap;

use redis::{FromRedisValue, Pipeline, RedisResult, Value};

pub use self::facts::{Info, ServerFacts, ServerVersion};
pub use self::needs::{KeyOwner, Needs};
use self::permissions::Refusals;
pub use self::problem::PreflightError;
use self::problem::{sentinel, wrong_type};
use super::connect::connect;
use super::link::Link;
use crate::RedisAddress;
use crate::error::LinkError;

/// Checks the server at `address` against `needs`. On failure, returns all problems.
///
/// If every problem is passing ([`PreflightError::is_passing`]), waiting and asking again may help.
/// Otherwise, an operator must change something first.
pub async fn preflight(
    address: &RedisAddress,
    needs: &Needs,
) -> Result<ServerFacts, Vec<PreflightError>> {
    let outcome = match connect(address).await {
        Ok(connection) => examine(address, connection, needs).await,
        Err(trouble) => Err(trouble),
    };
    outcome.unwrap_or_else(|trouble| Err(vec![trouble.into()]))
}

/// Runs the checks. Fails if the connection is lost during the checks.
async fn examine(
    address: &RedisAddress,
    mut connection: Link,
    needs: &Needs,
) -> Result<Result<ServerFacts, Vec<PreflightError>>, LinkError> {
    let mut questions = Pipeline::new();
    questions.ignore_errors();
    questions.cmd("ACL").arg("WHOAMI");
    questions.cmd("INFO");
    for need in &needs.keys {
        questions.cmd("TYPE").arg(&need.key);
    }
    let replies: Vec<RedisResult<Value>> = questions.query_async(&mut connection).await?;
    let mut replies = replies.into_iter();
    let mut refusals = Refusals::default();

    // Redis before version 6 has no users, and some users may not run `ACL WHOAMI`.
    let user = replies.next().and_then(Result::ok).and_then(|reply| text(reply).ok());
    let user = user.as_deref().or(address.user.as_deref()).unwrap_or("default");

    let info =
        replies.next().map(|reply| refusals.note("INFO", [].into_iter(), reply.and_then(text)));
    let info = info.flatten().unwrap_or_default();
    let info = Info(&info);
    if info.is_sentinel() {
        let primaries = watched(&mut connection).await?;
        return Ok(Err(vec![PreflightError::Unfit(sentinel(&primaries))]));
    }
    let mut problems = info.problems(address.is_cluster());

    for (need, reply) in needs.keys.iter().zip(replies) {
        let keys = [need.key.as_str()].into_iter();
        let Some(found) = refusals.note("TYPE", keys, reply.and_then(text)) else { continue };
        if found != "none" && found != need.kind {
            let key = need.key.escape_debug().to_string();
            problems.push(wrong_type(need.owner, &key, need.kind, &found));
        }
    }

    refusals.rehearse(&mut connection, needs).await?;
    let refused = refusals.into_problems(user, info.is_too_old());
    let mut problems: Vec<_> = problems.into_iter().map(PreflightError::Unfit).collect();
    // These refusals only follow from a problem of the server itself: a replica refuses writes, and
    // a cluster node redirects its clients.
    problems.extend(refused.into_iter().filter(|problem| match problem {
        PreflightError::Link(LinkError::ReadOnly | LinkError::MasterDown) => !info.is_replica(),
        PreflightError::Link(
            LinkError::Moved { .. }
            | LinkError::SlotMoving { .. }
            | LinkError::SlotDivided
            | LinkError::CrossSlot
            | LinkError::ClusterDown { .. },
        ) => address.is_cluster() || !info.is_node(),
        _ => true,
    }));
    if !problems.is_empty() {
        return Ok(Err(problems));
    }
    let strange = || LinkError::Garbled { cause: "INFO shows no redis_version".to_owned() };
    Ok(Ok(info.facts().ok_or_else(strange)?))
}

/// Asks a Sentinel for its primaries as `NAME at HOST:PORT`. The list is empty if the Sentinel does
/// not answer.
async fn watched(connection: &mut Link) -> Result<Vec<String>, LinkError> {
    /// Maximum number of primaries that a message names.
    const NAMED: usize = 8;
    let reply = redis::cmd("SENTINEL").arg("MASTERS").query_async(connection).await;
    let primaries: Vec<HashMap<String, String>> = match reply.map_err(LinkError::from) {
        Err(trouble) if trouble.is_passing() => return Err(trouble),
        reply => reply.unwrap_or_default(),
    };
    let name = |primary: &HashMap<String, String>| {
        let of = |field: &str| primary.get(field).map(|value| value.escape_debug().to_string());
        Some(format!("{} at {}:{}", of("name")?, of("ip")?, of("port")?))
    };
    Ok(primaries.iter().filter_map(name).take(NAMED).collect())
}

fn text(reply: Value) -> RedisResult<String> {
    Ok(String::from_redis_value(reply)?)
}
