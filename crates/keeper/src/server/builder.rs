//! Settings and start of a server.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bellwether_remedy::{ErrorClass, class_of_listen, impl_remedy};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tracing::{error, info, warn};

use super::clock::Clock;
use super::engine::Engine;
use super::fourletter::Facts;
use super::inbox::Inbox;
use super::keeper::{Keeper, Outcome, StopReason};
use super::limits::Limits;
use super::listener::{self, Admission, Door};
#[cfg(feature = "tls")]
use super::tls::{Acceptor, Tls, TlsError};
use crate::model::{Bounds, Compat, Config, Model, RestoreError};
use crate::store::{Disk, Memory, Store, StoreError};

/// Where the server keeps its data.
#[non_exhaustive]
pub enum Storage {
    /// In memory; the data ends with the process.
    Memory,
    /// In a file in this directory, which is created if it does not exist.
    Directory(PathBuf),
    /// In a store provided by the caller.
    Store(Box<dyn Store>),
}

impl<S: Store + 'static> From<S> for Storage {
    fn from(store: S) -> Self {
        Self::Store(Box::new(store))
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("Memory"),
            Self::Directory(path) => f.debug_tuple("Directory").field(path).finish(),
            Self::Store(_) => f.write_str("Store(..)"),
        }
    }
}

/// The reason why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is in use, does not belong to this machine, or needs a privilege.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Other machines can reach the address, and nothing protects it.
    #[error(
        "other machines can reach {0}: the server needs TLS and an authority for the certificates of its clients, or \
         permission to be insecure"
    )]
    Exposed(SocketAddr),
    /// The store cannot be opened or read.
    #[error("the store cannot be opened")]
    Store(#[from] StoreError),
    /// The stored rows are not a valid tree.
    #[error("the stored znodes are not a valid tree")]
    Restore(#[from] RestoreError),
    /// The tick is out of range, or not a whole number of milliseconds.
    #[error(
        "a tick of {0:?} cannot be used: it must be a whole number of milliseconds, 1 ms or more, and 20 ticks must be below \
         2^31 ms"
    )]
    Tick(Duration),
    /// The bounds of session timeouts exclude every timeout, or are not whole numbers of milliseconds.
    #[error(
        "session timeouts of {shortest:?} to {longest:?} cannot be used: both must be whole numbers of milliseconds below 2^31, \
         the shortest must be 1 ms or more and the longest not below it; leave them out for 2 and 20 ticks, or choose a shorter \
         tick"
    )]
    SessionBounds {
        /// The shortest session timeout, or two ticks.
        shortest: Duration,
        /// The longest session timeout, or 20 ticks.
        longest: Duration,
    },
    /// A limit is 0, so that no client could connect.
    #[error("the keeper's limit `{0}` is 0, so no client could connect: raise it, or leave it out")]
    Limit(&'static str),
    /// The operating system could not create the thread.
    #[error("the engine's thread cannot be started")]
    Thread(#[source] std::io::Error),
    /// A bug: the engine panicked while it loaded the store.
    #[error("the engine panicked during the start")]
    Panicked,
    /// The certificate, its key or the authority cannot be used.
    #[cfg(feature = "tls")]
    #[error("TLS cannot be set up")]
    Tls(#[from] TlsError),
}

/// The longest tick: its largest multiple in the protocol is the default for the longest session timeout.
const MAX_TICK_MS: i32 = i32::MAX / 20;

fn millis(millis: i32) -> Duration {
    Duration::from_millis(millis.unsigned_abs().into())
}

/// Returns the milliseconds of the protocol; `None` if there are too many, or if they are not a whole number.
fn whole_millis(time: Duration) -> Option<i32> {
    i32::try_from(time.as_millis()).ok().filter(|&whole| millis(whole) == time)
}

impl StartError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Listen { source, .. } => class_of_listen(source),
            Self::Exposed(_) | Self::Tick(_) | Self::SessionBounds { .. } | Self::Limit(_) => {
                ErrorClass::Invalid
            }
            Self::Store(error) => error.class(),
            Self::Restore(error) => error.class(),
            Self::Thread(_) | Self::Panicked => ErrorClass::Failed,
            #[cfg(feature = "tls")]
            Self::Tls(error) => error.class(),
        }
    }
}

impl_remedy!(StartError);

/// Settings of a server.
#[derive(Debug)]
pub struct Builder {
    listen: SocketAddr,
    storage: Storage,
    limits: Limits,
    bounds: Bounds,
    tick_time: Duration,
    min_session_timeout: Option<Duration>,
    max_session_timeout: Option<Duration>,
    cleaning_interval: Duration,
    compat: Compat,
    super_digest: Option<String>,
    insecure: bool,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    #[cfg(feature = "testing")]
    pub(super) log: Option<super::testing::Log>,
}

impl Builder {
    pub(super) fn new() -> Self {
        let defaults = Config::default();
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            storage: Storage::Memory,
            limits: Limits::default(),
            bounds: defaults.bounds,
            tick_time: millis(defaults.tick_ms),
            min_session_timeout: None,
            max_session_timeout: None,
            cleaning_interval: Duration::from_millis(defaults.cleaning_interval_ms),
            compat: defaults.compat,
            super_digest: None,
            insecure: false,
            #[cfg(feature = "tls")]
            tls: None,
            #[cfg(feature = "testing")]
            log: None,
        }
    }

    /// Sets the listen address; port 0 selects a free port. Default: a free port on loopback. Every client that can
    /// reach the address can do what the ACLs allow, which by default is everything. So an address that other machines can
    /// reach needs TLS with an authority for clients, or [`insecure`](Self::insecure).
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// Sets the storage. Default: [`Storage::Memory`].
    #[must_use]
    pub fn store(mut self, storage: impl Into<Storage>) -> Self {
        self.storage = storage.into();
        self
    }

    /// Sets the tick, a whole number of milliseconds. Session timeouts last 2 to 20 ticks unless they are set, and sessions expire
    /// up to one tick late. Default: 2 s, as in Java.
    #[must_use]
    pub fn tick_time(mut self, tick: Duration) -> Self {
        self.tick_time = tick;
        self
    }

    /// Sets the shortest session timeout, a whole number of milliseconds. A client that asks for a shorter one gets this one.
    /// Default: two ticks.
    #[must_use]
    pub fn min_session_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.min_session_timeout = timeout.into();
        self
    }

    /// Sets the longest session timeout, a whole number of milliseconds. A client that asks for a longer one gets this one.
    /// Default: 20 ticks.
    #[must_use]
    pub fn max_session_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.max_session_timeout = timeout.into();
        self
    }

    /// Sets the interval for the removal of empty containers and expired TTL znodes, rounded down to milliseconds, at least one.
    /// Default: 1 min, as in Java.
    #[must_use]
    pub fn cleaning_interval(mut self, interval: Duration) -> Self {
        self.cleaning_interval = interval;
        self
    }

    /// Sets the bounds for what clients may store and set.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Selects the ZooKeeper release whose behaviour clients see. Default: the newest supported one.
    #[must_use]
    pub fn compat(mut self, compat: Compat) -> Self {
        self.compat = compat;
        self
    }

    /// Sets the digest identity that passes every ACL, as `user:base64(sha1(user:password))`. Default: none.
    #[must_use]
    pub fn super_digest(mut self, digest: impl Into<String>) -> Self {
        self.super_digest = Some(digest.into());
        self
    }

    /// Sets the limits for connections.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Listens on an address that other machines can reach although TLS or the certificates of clients are missing. Use it
    /// only if something else protects the server. Default: `false`.
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// Whether only clients with a certificate get a session, over TLS.
    #[cfg(feature = "tls")]
    fn is_protected(&self) -> bool {
        self.tls.as_ref().is_some_and(Tls::has_client_ca)
    }

    #[cfg(not(feature = "tls"))]
    fn is_protected(&self) -> bool {
        false
    }

    /// Accepts only TLS connections on the address. Default: plain TCP.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Starts the server on the current tokio runtime and returns when it accepts connections. Must be called within a
    /// runtime.
    ///
    /// If the future is dropped, the server stops.
    ///
    /// # Errors
    /// If a setting is invalid, the address is in use, or the store cannot be opened or read.
    pub async fn start(self) -> Result<Keeper, StartError> {
        self.started().await
    }

    /// Boxed, so that the future is compiled in this crate and not in every program that embeds the server.
    fn started(self) -> Pin<Box<dyn Future<Output = Result<Keeper, StartError>> + Send>> {
        Box::pin(self.serve())
    }

    /// Checks the settings of the model.
    fn config(&self) -> Result<Config, StartError> {
        let tick_ms = whole_millis(self.tick_time).filter(|tick| (1..=MAX_TICK_MS).contains(tick));
        let tick_ms = tick_ms.ok_or(StartError::Tick(self.tick_time))?;
        let config = Config {
            tick_ms,
            cleaning_interval_ms: u64::try_from(self.cleaning_interval.as_millis())
                .unwrap_or(u64::MAX)
                .max(1),
            super_digest: self.super_digest.clone(),
            compat: self.compat,
            bounds: self.bounds,
            ..Config::default()
        };
        let (shortest, longest) = config.session_bounds_ms();
        let shortest = self.min_session_timeout.unwrap_or(millis(shortest));
        let longest = self.max_session_timeout.unwrap_or(millis(longest));
        match (whole_millis(shortest), whole_millis(longest)) {
            (Some(min), Some(max)) if (1..=max).contains(&min) => {
                Ok(Config { min_session_timeout_ms: Some(min), max_session_timeout_ms: Some(max), ..config })
            }
            (_, _) => Err(StartError::SessionBounds { shortest, longest }),
        }
    }

    async fn serve(self) -> Result<Keeper, StartError> {
        if !self.listen.ip().to_canonical().is_loopback() && !self.insecure && !self.is_protected() {
            return Err(StartError::Exposed(self.listen));
        }
        let protected = self.is_protected();
        let config = self.config()?;
        let sessions = (self.bounds.sessions == 0).then_some("sessions");
        if let Some(limit) = self.limits.prohibitive().or(sessions) {
            return Err(StartError::Limit(limit));
        }
        let Self { listen, storage, limits, .. } = self;
        #[cfg(feature = "tls")]
        let tls = self.tls.map(|tls| Acceptor::new(&tls)).transpose()?;

        let refused = |source| StartError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;

        let inbox = Arc::new(Inbox::new(limits.connection_memory, config.compat));
        let admission = Arc::new(Admission::default());
        let (ended, outcome) = watch::channel(None);
        let (ready, started) = oneshot::channel();
        let keeper = Keeper { address, inbox: Arc::clone(&inbox), outcome: outcome.clone(), listener: None };
        let facts = Facts { address, limits, config: config.clone(), admission: Arc::clone(&admission) };
        let start = Start {
            storage,
            config,
            inbox: Arc::clone(&inbox),
            facts,
            #[cfg(feature = "testing")]
            log: self.log,
        };
        std::thread::Builder::new()
            .name("keeper-engine".to_owned())
            .spawn(move || live(start, ready, &ended))
            .map_err(StartError::Thread)?;
        started.await.map_err(|_gone| StartError::Panicked)??;

        let door = Door {
            inbox,
            admission,
            limits,
            #[cfg(feature = "tls")]
            tls,
        };
        info!(%address, "the keeper serves clients: it is a single node without failover");
        if !address.ip().to_canonical().is_loopback() && !protected {
            warn!(%address, "the keeper listens on a network address: any client can do what ACLs allow");
        }
        let mut keeper = keeper;
        keeper.listener = Some(tokio::spawn(listener::listen(listener, door, outcome)));
        Ok(keeper)
    }
}

/// Arguments of the engine thread.
struct Start {
    storage: Storage,
    config: Config,
    inbox: Arc<Inbox>,
    facts: Facts,
    #[cfg(feature = "testing")]
    log: Option<super::testing::Log>,
}

/// Runs the engine thread.
fn live(start: Start, ready: oneshot::Sender<Result<(), StartError>>, ended: &watch::Sender<Outcome>) {
    let inbox = Arc::clone(&start.inbox);
    let last_words = LastWords { inbox, ended };
    let mut engine = match open(start) {
        Ok(engine) => engine,
        Err(error) => {
            drop(ready.send(Err(error)));
            return;
        }
    };
    if ready.send(Ok(())).is_err() {
        // The caller dropped the start future.
        return;
    }
    let outcome = engine.run();
    if let Err(reason) = &outcome {
        error!(error = reason as &dyn std::error::Error, "the keeper stopped with an error");
    }
    // Ends the connections and unlocks the data directory before the result is published.
    drop(engine);
    last_words.speak(outcome);
}

fn open(start: Start) -> Result<Engine, StartError> {
    let Start { storage, config, inbox, facts, .. } = start;
    let mut store: Box<dyn Store> = match storage {
        Storage::Memory => Box::new(Memory::new()),
        Storage::Directory(path) => Box::new(Disk::open(&path)?),
        Storage::Store(store) => store,
    };
    let snapshot = store.load()?;
    let committed = snapshot.zxid;
    let clock = Clock::new();
    let model = Model::restore(config, snapshot, clock.now())?;
    #[cfg_attr(not(feature = "testing"), allow(unused_mut, reason = "mutable only to attach a log"))]
    let mut engine = Engine::new(model, store, committed, inbox, clock, facts).map_err(StartError::Thread)?;
    #[cfg(feature = "testing")]
    if let Some(log) = start.log {
        engine.log_to(log);
    }
    Ok(engine)
}

/// Publishes the engine's result, also after a panic.
struct LastWords<'a> {
    inbox: Arc<Inbox>,
    ended: &'a watch::Sender<Outcome>,
}

impl LastWords<'_> {
    fn speak(self, outcome: Result<(), StopReason>) {
        self.inbox.close();
        self.ended.send_replace(Some(outcome));
    }
}

impl Drop for LastWords<'_> {
    fn drop(&mut self) {
        self.inbox.close();
        self.ended.send_if_modified(|outcome| {
            let silent = outcome.is_none();
            if silent {
                *outcome = Some(Err(StopReason::Panicked));
            }
            silent
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_a_whole_number_of_milliseconds_within_bounds() {
        let tick = |tick| Builder::new().tick_time(tick).config().map(|config| config.tick_ms);
        let longest = millis(MAX_TICK_MS);
        let [micros, nanos] = [Duration::from_micros(1_500), Duration::from_nanos(1)];
        for refused in [Duration::ZERO, nanos, micros, longest + Duration::from_millis(1), Duration::MAX] {
            let error = tick(refused).unwrap_err();
            assert!(matches!(error, StartError::Tick(given) if given == refused), "{error:?}");
            assert!(
                error.to_string().starts_with(&format!("a tick of {refused:?} cannot be used: ")),
                "{error}"
            );
        }
        assert_eq!(tick(Duration::from_millis(1)).unwrap(), 1);
        assert_eq!(tick(longest).unwrap(), MAX_TICK_MS);
        assert_eq!(Builder::new().config().unwrap().tick_ms, 2_000);
    }

    #[test]
    fn session_timeouts_are_those_of_the_builder_or_multiples_of_the_tick() {
        let bounds = |min: Option<u64>, max: Option<u64>| {
            let builder = Builder::new().min_session_timeout(min.map(Duration::from_micros));
            let config = builder.max_session_timeout(max.map(Duration::from_micros)).config();
            config.map(|config| config.session_bounds_ms())
        };
        assert_eq!(bounds(None, None).unwrap(), (4_000, 40_000));
        assert_eq!(bounds(Some(1_000), Some(1_000)).unwrap(), (1, 1));
        assert_eq!(bounds(None, Some(2_147_483_647_000)).unwrap(), (4_000, i32::MAX));
        for (min, max) in [
            (Some(0), None),
            (Some(1_500), None),
            (None, Some(40_000_500)),
            (None, Some(2_147_483_648_000)),
            (Some(2_000_000), Some(1_000_000)),
        ] {
            let error = bounds(min, max).unwrap_err();
            assert!(matches!(error, StartError::SessionBounds { .. }), "{min:?} {max:?}: {error:?}");
        }
    }

    #[tokio::test]
    async fn a_limit_that_allows_no_client_is_rejected_by_name() {
        let limits = Limits::default();
        let builder = |limits| Builder::new().limits(limits);
        builder(limits.connections(None).connections_per_address(1)).start().await.expect("it starts");
        for (builder, name) in [
            (builder(limits.connections(0)), "connections"),
            (builder(limits.connections_per_address(0)), "connections_per_address"),
            (builder(limits.connection_memory(0)), "connection_memory"),
            (builder(limits.handshake_time(Duration::ZERO)), "handshake_time"),
            (builder(limits).bounds(Bounds::default().sessions(0)), "sessions"),
        ] {
            let refused = builder.start().await.map(|_| ());
            assert!(matches!(refused, Err(StartError::Limit(limit)) if limit == name), "{name}: {refused:?}");
        }
    }

    #[test]
    fn the_settings_of_the_builder_are_those_of_the_model() {
        let bounds = Bounds::default().sessions(1).watches(2).watch_bytes(3).znodes(4).data_bytes(5);
        let builder = Builder::new().bounds(bounds).compat(Compat::V3_8_0).super_digest("super:hash");
        let expected = Config {
            cleaning_interval_ms: 250,
            super_digest: Some("super:hash".to_owned()),
            compat: Compat::V3_8_0,
            bounds: Bounds { sessions: 1, watches: 2, watch_bytes: 3, znodes: 4, data_bytes: 5 },
            min_session_timeout_ms: Some(4_000),
            max_session_timeout_ms: Some(40_000),
            ..Config::default()
        };
        assert_eq!(builder.cleaning_interval(Duration::from_millis(250)).config().unwrap(), expected);
    }
}
