//! What may be decided about a server, and its start.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

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
use crate::model::{Compat, Config, Model, RestoreError};
use crate::store::{Disk, Memory, Store, StoreError};

/// Where the rows go.
#[non_exhaustive]
pub enum Storage {
    /// They end with the process.
    Memory,
    /// Into a file of this directory, which is made when it is not there.
    Directory(PathBuf),
    /// Into somebody else's store.
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

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is taken, or not this machine's.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's words.
        source: std::io::Error,
    },
    /// The store cannot be opened or read.
    #[error("the store cannot be opened")]
    Store(#[from] StoreError),
    /// What the store holds is no tree.
    #[error("the store holds what no server can have written")]
    Restore(#[from] RestoreError),
    /// A setting that cannot be.
    #[error("tick of {0} ms: it must be above 0, and sessions of 20 ticks within 2^31 ms")]
    Tick(u32),
    /// Bounds that no session fits between.
    #[error(
        "sessions of {shortest} to {longest} ms: min_session_timeout_ms must be above 0 and \
         max_session_timeout_ms not below it; leave them out for 2 and 20 ticks, or choose a shorter tick"
    )]
    SessionBounds {
        /// `min_session_timeout_ms`, or two ticks.
        shortest: i32,
        /// `max_session_timeout_ms`, or 20 ticks.
        longest: i32,
    },
    /// The system gave no thread.
    #[error("the engine's thread cannot be started")]
    Thread(#[source] std::io::Error),
    /// A defect: the engine panicked over what the store holds.
    #[error("the engine panicked before it served")]
    Panicked,
    /// The certificate, its key or the authority cannot be used.
    #[cfg(feature = "tls")]
    #[error("TLS cannot be set up")]
    Tls(#[from] TlsError),
}

/// What may be decided about a server.
#[derive(Debug)]
pub struct Builder {
    listen: SocketAddr,
    storage: Storage,
    limits: Limits,
    tick_ms: u32,
    config: Config,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
    #[cfg(feature = "testing")]
    pub(super) log: Option<super::testing::Log>,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            storage: Storage::Memory,
            limits: Limits::default(),
            tick_ms: Config::default().tick_ms.unsigned_abs(),
            config: Config::default(),
            #[cfg(feature = "tls")]
            tls: None,
            #[cfg(feature = "testing")]
            log: None,
        }
    }

    /// Where to listen; port 0 takes a free one. Default: a free port of the loopback. Whoever reaches the address
    /// can do what ACLs allow, which by default is everything.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// Where the rows go. Default: [`Storage::Memory`].
    #[must_use]
    pub fn store(mut self, storage: impl Into<Storage>) -> Self {
        self.storage = storage.into();
        self
    }

    /// The grain of session expiry; sessions last 2 to 20 of it. Default: 2,000, as in Java.
    #[must_use]
    pub fn tick_ms(mut self, tick_ms: u32) -> Self {
        self.tick_ms = tick_ms;
        self
    }

    /// Which release's quirks clients see. Default: the newest one's.
    #[must_use]
    pub fn compat(mut self, compat: Compat) -> Self {
        self.config.compat = compat;
        self
    }

    /// All that may be decided about the model; its tick too.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.tick_ms = config.tick_ms.unsigned_abs();
        self.config = config;
        self
    }

    /// `user:base64(sha1(user:password))` of the digest identity that passes every ACL. Default: nobody does.
    #[must_use]
    pub fn super_digest(mut self, digest: impl Into<String>) -> Self {
        self.config.super_digest = Some(digest.into());
        self
    }

    /// How many clients are taken.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Speaks TLS, and nothing else, on the address. Default: plain TCP.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Starts the server on the current tokio runtime, and returns when it serves. Must be called within one.
    ///
    /// Cancelling it stops what was started.
    ///
    /// # Errors
    /// When a setting cannot be, the address is taken, or the store cannot be read.
    pub async fn start(self) -> Result<Keeper, StartError> {
        self.started().await
    }

    /// Boxed, so that all of it is compiled here and not again in each program.
    fn started(self) -> Pin<Box<dyn Future<Output = Result<Keeper, StartError>> + Send>> {
        Box::pin(self.serve())
    }

    async fn serve(self) -> Result<Keeper, StartError> {
        let Self { listen, storage, limits, tick_ms, mut config, .. } = self;
        config.tick_ms = i32::try_from(tick_ms)
            .ok()
            .filter(|tick| (1..=i32::MAX / 20).contains(tick))
            .ok_or(StartError::Tick(tick_ms))?;
        let (shortest, longest) = config.session_bounds_ms();
        if shortest <= 0 || longest < shortest {
            return Err(StartError::SessionBounds { shortest, longest });
        }
        #[cfg(feature = "tls")]
        let tls = self.tls.map(|tls| Acceptor::new(&tls)).transpose()?;

        let refused = |source| StartError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;

        let inbox = Arc::new(Inbox::default());
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
        info!(%address, "keeper serves: a single node, without failover");
        if !address.ip().is_loopback() {
            warn!(%address, "the keeper can be reached from the network: who reaches it can do what ACLs allow");
        }
        let mut keeper = keeper;
        keeper.listener = Some(tokio::spawn(listener::listen(listener, door, outcome)));
        Ok(keeper)
    }
}

/// What the engine's thread starts with.
struct Start {
    storage: Storage,
    config: Config,
    inbox: Arc<Inbox>,
    facts: Facts,
    #[cfg(feature = "testing")]
    log: Option<super::testing::Log>,
}

/// The engine's thread.
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
        // Whoever started it has given up.
        return;
    }
    let outcome = engine.run();
    if let Err(reason) = &outcome {
        error!(error = reason as &dyn std::error::Error, "keeper stopped");
    }
    // Ends the connections, and frees the store's directory before anybody hears of the end.
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
    #[cfg_attr(not(feature = "testing"), allow(unused_mut, reason = "only a log is attached afterwards"))]
    let mut engine = Engine::new(model, store, committed, inbox, clock, facts).map_err(StartError::Thread)?;
    #[cfg(feature = "testing")]
    if let Some(log) = start.log {
        engine.log_to(log);
    }
    Ok(engine)
}

/// Tells of the engine's end, also of one by panic.
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
