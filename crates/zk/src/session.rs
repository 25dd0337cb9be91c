//! One ZooKeeper session.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bellwether_core::clock::Clock;
use bellwether_core::time::{Millis, WallMillis};
use bellwether_core::txn::SeenParents;
use futures::future::join_all;
use tokio::net::TcpStream;
use tokio::time::timeout;
use zookeeper_client::{Client, Error, SessionState as ClientState, StateWatcher};

use crate::access::Access;
use crate::clock::uptime;
use crate::connect_string::ConnectString;
use crate::contact::Contact;
use crate::eager::{Eager, send_now};
use crate::error::{ReadError, read_error};
use crate::metrics::{self, Request};

/// A session, cheap to clone. All clones share one connection and one order of requests.
///
/// The session ends when its last clone is dropped, or when it expires. It cannot be revived: connect again.
#[derive(Clone)]
pub struct Zk(Arc<Inner>);

struct Inner {
    client: Client,
    access: Access,
    contact: Arc<Contact>,
    clock: Mutex<Clock>,
    seen: Mutex<SeenParents>,
}

/// The state of the session as last reported by the client library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// Requests are served.
    Connected,
    /// The connection is lost; the session may still be alive.
    Disconnected,
    /// The session has ended: expired, closed, or refused.
    Ended,
}

impl From<ClientState> for SessionState {
    fn from(state: ClientState) -> Self {
        match state {
            ClientState::SyncConnected => Self::Connected,
            // Read-only mode is never requested: a read-only server cannot serve writes.
            ClientState::Disconnected | ClientState::ConnectedReadOnly => Self::Disconnected,
            ClientState::AuthFailed | ClientState::Expired | ClientState::Closed => Self::Ended,
        }
    }
}

/// Why no session could be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// No server gives a session.
    #[error("cannot reach ZooKeeper: {}", .attempts.join("; "))]
    Unreachable {
        /// One line per server: its address and the reason.
        attempts: Vec<String>,
    },
    /// A server refused the login.
    #[error("ZooKeeper refused the login of {who}: check the user, the password and the scheme")]
    LoginRefused {
        /// The refused identity.
        who: String,
    },
}

/// Connects without a login, as [`connect_as`].
///
/// # Errors
/// As [`connect_as`].
pub async fn connect(to: &ConnectString, session_timeout: Duration) -> Result<Zk, ConnectError> {
    connect_as(to, &Access::default(), session_timeout).await
}

/// Creates a new session, rooted at the chroot, even if the chroot does not exist.
///
/// Tries each server once; the caller decides when to try again.
///
/// # Errors
/// When no server gave a session within `session_timeout`, with the reason per address; or when a server refused the
/// login.
///
/// # Cancellation
/// Dropping the future may leave a session behind, which expires at the server.
pub async fn connect_as(
    to: &ConnectString,
    access: &Access,
    session_timeout: Duration,
) -> Result<Zk, ConnectError> {
    let sent = uptime();
    let client = establish(to, access, session_timeout).await?;
    let timeout = client.session_timeout();
    Ok(Zk::of(client, access, sent, timeout))
}

/// As [`connect_as`], for an owner that relies on [`Zk::trusted_until`].
///
/// A session that moves to another server gets the timeout that *this* server grants, and the client library does not report
/// it. A server with a smaller `maxSessionTimeout` would make the trust too long without any sign. So this asks every server
/// ([`shortest_timeout`]), and [`Zk::session_timeout`] is the shortest granted timeout. Ask again after each reconnection,
/// because a server may have been down, or may have been restarted with another configuration.
///
/// # Errors
/// As [`connect_as`].
///
/// # Cancellation
/// As [`connect_as`].
pub async fn connect_trusted(
    to: &ConnectString,
    access: &Access,
    session_timeout: Duration,
) -> Result<Zk, ConnectError> {
    let sent = uptime();
    let client = establish(to, access, session_timeout).await?;
    let granted = client.session_timeout();
    // A single server has just answered.
    let others =
        if to.servers().len() < 2 { None } else { shortest_timeout(to, access, session_timeout).await };
    let shortest = others.unwrap_or(granted);
    if shortest < granted {
        tracing::warn!(
            ?granted,
            ?shortest,
            "the servers grant different session timeouts: set the same maxSessionTimeout on all of them"
        );
    }
    Ok(Zk::of(client, access, sent, granted.min(shortest)))
}

/// How long each server has to grant a session to [`shortest_timeout`]: a server that is up answers within milliseconds,
/// and the start of a node waits for the slowest.
pub const ASK_WITHIN: Duration = Duration::from_millis(500);

/// Asks every server for the session timeout that it grants, each with a separate session that ends immediately. Returns
/// the shortest one, or `None` if no server answers within [`ASK_WITHIN`]. A server that does not is not considered.
///
/// # Cancellation
/// Dropping the future may leave sessions behind, which expire at their servers.
pub async fn shortest_timeout(to: &ConnectString, access: &Access, requested: Duration) -> Option<Duration> {
    let asked = to.servers().iter().map(|server| async move {
        let connector = Client::connector().with_session_timeout(requested).with_fail_eagerly();
        match timeout(ASK_WITHIN, access.connect(connector, server)).await {
            // The session ends when the client is dropped.
            Ok(Ok(client)) => Some(client.session_timeout()),
            Ok(Err(error)) => {
                tracing::debug!(%server, %error, "the server did not grant a session: its session timeout is unknown");
                None
            }
            Err(_) => {
                tracing::debug!(%server, within = ?ASK_WITHIN, "the server did not answer in time: its session timeout is unknown");
                None
            }
        }
    });
    join_all(asked).await.into_iter().flatten().min()
}

async fn establish(
    to: &ConnectString,
    access: &Access,
    session_timeout: Duration,
) -> Result<Client, ConnectError> {
    let connector = Client::connector().with_session_timeout(session_timeout).with_fail_eagerly();
    let attempts: Vec<_> = to.servers().iter().filter_map(|server| access.unnameable(server)).collect();
    if !attempts.is_empty() {
        return Err(ConnectError::Unreachable { attempts });
    }
    let reason = match timeout(session_timeout, access.connect(connector, &to.to_string())).await {
        Ok(Ok(client)) => return Ok(client),
        Ok(Err(Error::AuthFailed)) => return Err(ConnectError::LoginRefused { who: access.to_string() }),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no session within {} ms", session_timeout.as_millis()),
    };
    Err(ConnectError::Unreachable { attempts: diagnose(to, access, &reason).await })
}

/// The client library reports only "no available hosts", so this connects to each server to find the reason.
async fn diagnose(to: &ConnectString, access: &Access, otherwise: &str) -> Vec<String> {
    const KNOCK: Duration = Duration::from_millis(500);
    let knocks = to.servers().iter().map(|server| async move {
        let reason = match timeout(KNOCK, TcpStream::connect(server.as_str())).await {
            Ok(Ok(stream)) => match timeout(KNOCK, access.complaint(server, stream)).await {
                Ok(Some(complaint)) => complaint,
                Ok(None) | Err(_) => format!("accepts connections but gives no session ({otherwise})"),
            },
            Ok(Err(error)) => error.to_string(),
            Err(_) => "does not answer".to_owned(),
        };
        format!("{server}: {reason}")
    });
    join_all(knocks).await
}

impl Zk {
    /// `sent` is when the session was requested.
    fn of(client: Client, access: &Access, sent: Duration, timeout: Duration) -> Self {
        let contact = Arc::new(Contact::new(sent, timeout));
        let (access, clock, seen) = (access.clone(), Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { client, access, contact, clock, seen }))
    }

    /// The session's id, which owns its ephemeral znodes.
    #[must_use]
    pub fn session_id(&self) -> i64 {
        self.0.client.session_id().0
    }

    /// The timeout that the server granted, or, after [`connect_trusted`] and [`shorten`](Self::shorten), the shortest that
    /// any server grants.
    #[must_use]
    pub fn session_timeout(&self) -> Duration {
        self.0.contact.timeout()
    }

    /// Trusts the session for at most this timeout from now on. A longer timeout than before changes nothing.
    pub fn shorten(&self, timeout: Duration) {
        self.0.contact.shorten(timeout);
    }

    /// The current state.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.0.client.state().into()
    }

    /// The deadline until which the session may be assumed to be alive without another reply: no leader of ZooKeeper
    /// expires it before. On the scale of [`uptime`].
    #[must_use]
    pub fn trusted_until(&self) -> Millis {
        self.0.contact.trusted_until()
    }

    /// The trusted deadline, for callers that must not keep the session alive.
    #[must_use]
    pub fn trust(&self) -> Trust {
        Trust(Arc::clone(&self.0.contact))
    }

    /// The sending of the latest request from which ZooKeeper provably counts the session timeout, on the scale of
    /// [`uptime`].
    #[must_use]
    pub fn last_contact(&self) -> Millis {
        self.0.contact.heard()
    }

    /// Sets the clock by which the holders of this session decide.
    pub fn set_clock(&self, clock: Clock) {
        *self.0.clock.lock().unwrap_or_else(PoisonError::into_inner) = clock;
    }

    /// Returns the time of that clock: `now` is this process's monotonic clock, `local` this machine's wall clock.
    #[must_use]
    pub fn wall(&self, now: Millis, local: WallMillis) -> WallMillis {
        // A clock is copied as a whole, so it is consistent.
        self.0.clock.lock().unwrap_or_else(PoisonError::into_inner).wall(now, local)
    }

    /// Follows the state. Of changes in quick succession only the last may be seen.
    #[must_use]
    pub fn states(&self) -> States {
        States(self.0.client.state_watcher())
    }

    /// Sends a `sync` as a heartbeat: its answer passed ZooKeeper's leader. An answered read does not prove that the
    /// session lives, because a server that is cut off from its leader answers reads.
    pub fn heartbeat(&self) -> impl Future<Output = Result<(), ReadError>> + Send + use<> {
        self.sync("/".to_owned())
    }

    /// Sends a `sync`, and records the contact if it is answered.
    pub(crate) fn synced(&self, path: String) -> Eager<Result<(), ReadError>> {
        let (zk, sent) = (self.clone(), uptime());
        self.read(1, move |client| async move {
            client.sync(&path).await?;
            zk.0.contact.answered(sent);
            Ok(())
        })
    }

    /// The identity of the session.
    #[must_use]
    pub fn access(&self) -> &Access {
        &self.0.access
    }

    /// The containers that this session has seen.
    pub(crate) fn seen(&self) -> MutexGuard<'_, SeenParents> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.0.client
    }

    /// Sends a read immediately.
    pub(crate) fn read<T, F>(
        &self,
        ops: usize,
        send: impl FnOnce(Client) -> F + Send + 'static,
    ) -> Eager<Result<T, ReadError>>
    where
        T: Send + Unpin + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        if self.state() != SessionState::Connected {
            return Eager::Ready(Some(Err(ReadError::Disconnected)));
        }
        metrics::sent(Request::Read, ops);
        self.send(Request::Read, send, |result| result.map_err(|error| read_error(&error)))
    }

    /// Sends a request immediately.
    pub(crate) fn send<R, F, U>(
        &self,
        request: Request,
        send: impl FnOnce(Client) -> F + Send + 'static,
        classify: impl FnOnce(R) -> U + Send + 'static,
    ) -> Eager<U>
    where
        R: Answer + Send + 'static,
        U: Send + Unpin + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        let zk = self.clone();
        let sent = Instant::now();
        send_now(async move {
            let result = send(zk.0.client.clone()).await;
            if result.is_from_server() {
                metrics::answered(request, sent.elapsed());
            }
            classify(result)
        })
    }
}

/// How long a session may be assumed to be alive, without keeping it alive.
#[derive(Debug, Clone)]
pub struct Trust(Arc<Contact>);

impl Trust {
    /// The trust in a session that starts now with `timeout` and never gets a reply.
    #[must_use]
    pub fn unanswered(timeout: Duration) -> Self {
        Self(Arc::new(Contact::new(uptime(), timeout)))
    }

    /// As [`Zk::trusted_until`]. The deadline only moves to later times, except when [`shortened`](Self::shortened) resolves.
    #[must_use]
    pub fn until(&self) -> Millis {
        self.0.trusted_until()
    }

    /// Resolves when the deadline moves to an earlier time after this call: call it before [`until`](Self::until).
    ///
    /// # Cancellation
    /// Nothing is lost: the deadline itself is always current.
    pub fn shortened(&self) -> impl Future<Output = ()> + Send + use<> {
        self.0.shortened()
    }
}

/// Whether a result came from the server.
pub(crate) trait Answer {
    fn is_from_server(&self) -> bool;
}

impl<T> Answer for Result<T, Error> {
    fn is_from_server(&self) -> bool {
        let error = self.as_ref().err();
        error.is_none_or(|e| {
            matches!(e, Error::NoNode | Error::NodeExists | Error::BadVersion | Error::NotEmpty)
        })
    }
}

/// Follows a session's state without keeping the session alive.
#[derive(Debug, Clone)]
pub struct States(StateWatcher);

impl States {
    /// The next state. Never resolves again after [`SessionState::Ended`].
    pub async fn changed(&mut self) -> SessionState {
        self.0.changed().await.into()
    }

    /// Waits until the session has ended.
    pub async fn ended(&mut self) {
        while SessionState::from(self.0.peek_state()) != SessionState::Ended {
            self.0.changed().await;
        }
    }
}

impl fmt::Debug for Zk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.session_id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The duration of a request without a reply is that of the outage, not of the server.
    #[test]
    fn only_a_result_of_the_server_is_measured() {
        let is_measured = |error| Err::<(), _>(error).is_from_server();
        assert!(Ok::<_, Error>(()).is_from_server());
        for error in [Error::NoNode, Error::NodeExists, Error::BadVersion, Error::NotEmpty] {
            assert!(is_measured(error.clone()), "{error}");
        }
        for error in [Error::ConnectionLoss, Error::SessionExpired, Error::Timeout] {
            assert!(!is_measured(error.clone()), "{error}");
        }
    }
}
