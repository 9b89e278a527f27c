//! Sentinels that know a primary, and the watch for a switch to another primary.

use std::time::{Duration, Instant};

use redis::{Client, Connection, RedisConnectionInfo, RedisResult, Value, cmd};

use super::RedisOptions;
use super::server::{Node, Nodes, at, open, unreachable};
use urlseen_core::redis::error::LinkError;

/// Time between two questions to the Sentinels, and after a question without an answer.
const LOOK: Duration = Duration::from_secs(1);
const LATER_LOOK: Duration = Duration::from_secs(10);

/// Sentinels, and the name by which they know the primary. Their logins are those of the primary.
#[derive(Debug, Clone)]
pub(super) struct Sentinels {
    pub(super) nodes: Nodes,
    pub(super) name: String,
}

/// Watch over a connection to the primary. An old primary that the Sentinels cannot reach goes on
/// answering, and its writes are lost.
pub(super) struct PrimaryWatch {
    sentinels: Sentinels,
    primary: Node,
    /// Connection to the Sentinel that gave the last answer.
    connection: Option<Connection>,
    next_look: Instant,
}

impl Sentinels {
    /// Finds the primary that the Sentinels name. `first` has its login.
    pub(super) fn find(
        &self,
        first: &Client,
        options: &RedisOptions,
    ) -> RedisResult<(Client, PrimaryWatch)> {
        let (primary, sentinel) = self.look_up(options)?;
        let client = at(first, &primary.0, primary.1)?;
        let role: Value = cmd("ROLE").query(&mut open(&client, options)?)?;
        let role = role.as_sequence().and_then(<[_]>::first);
        if role != Some(&Value::BulkString(b"master".to_vec())) {
            let (host, port) = primary;
            let text = format!("the Sentinels name {host}:{port}, which is not a primary");
            return Err(unreachable(text));
        }
        let (sentinels, next_look) = (self.clone(), Instant::now() + LOOK);
        let watch = PrimaryWatch { sentinels, primary, connection: Some(sentinel), next_look };
        Ok((client, watch))
    }

    /// Asks the Sentinels in turn for the primary. Returns the connection to the Sentinel that
    /// answered.
    fn look_up(&self, options: &RedisOptions) -> RedisResult<(Node, Connection)> {
        let failure = format!("no Sentinel names {}", self.name);
        self.nodes.first_answer(&failure, |sentinel| {
            let mut connection = log_in_if_asked(sentinel, options)?;
            let primary = self.ask(&mut connection)?;
            Ok((primary, connection))
        })
    }

    /// Asks a Sentinel for the primary.
    fn ask(&self, connection: &mut Connection) -> RedisResult<Node> {
        let mut question = cmd("SENTINEL");
        question.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        let found: Option<Node> = question.query(connection)?;
        found.ok_or_else(|| {
            let name = &self.name;
            let text =
                format!("the Sentinels know no primary {name}; SENTINEL MASTERS shows the names");
            (redis::ErrorKind::InvalidClientConfig, "wrong address", text).into()
        })
    }
}

impl PrimaryWatch {
    /// Returns true if it is time to ask the Sentinels again.
    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.next_look
    }

    /// Returns true if the Sentinels name another primary now. Asks them only once in a while.
    pub(super) fn is_over(&mut self, options: &RedisOptions) -> bool {
        if !self.is_due() {
            return false;
        }
        let kept = self.connection.take().and_then(|mut connection| {
            let primary = self.sentinels.ask(&mut connection).ok()?;
            Some((primary, connection))
        });
        let found = kept.map_or_else(|| self.sentinels.look_up(options), Ok);
        // If no Sentinel answers, the primary may answer nevertheless.
        let (pause, is_over) = match found {
            Ok((primary, connection)) => {
                self.connection = Some(connection);
                (LOOK, primary != self.primary)
            }
            Err(_) => (LATER_LOOK, false),
        };
        self.next_look = Instant::now() + pause;
        is_over
    }
}

/// Connects to a Sentinel without a login. If the Sentinel requires one, logs in with the user and
/// the password of the primary.
fn log_in_if_asked(sentinel: &Client, options: &RedisOptions) -> RedisResult<Connection> {
    let info = sentinel.get_connection_info();
    let login = info.redis_settings().clone().set_db(0);
    let as_user =
        |settings| open(&Client::open(info.clone().set_redis_settings(settings))?, options);
    let mut connection = as_user(RedisConnectionInfo::default())?;
    match cmd("PING").query::<()>(&mut connection) {
        Err(error)
            if login.password().is_some()
                && LinkError::from(error.clone()) == LinkError::AuthNeeded =>
        {
            as_user(login)
        }
        asked => asked.map(|()| connection),
    }
}
