//! Nodes that take part in the election, each behind its own proxy.

use std::time::Duration;

use bellwether_core::clock_report::Process;
use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::machine::election::leadership::{Inactive, LeadershipState, Term};
use bellwether_core::name::NodeId;
use bellwether_core::path;
use bellwether_host::election::{ActiveTerm, Election, ElectionConfig};
use bellwether_host::session::{Session, SessionConfig};
use bellwether_testkit::{Proxy, eventually_some, namespace};
use bellwether_zk::{Access, Zk, connect};

/// Ten ticks of the shared server. A pause must be shorter than this on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);
/// Longer than any recovery.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Node {
    pub(crate) proxy: Proxy,
    pub(crate) session: Session,
    pub(crate) config: ElectionConfig,
    pub(crate) election: Election,
}

/// Creates a namespace, and a client that does not use a proxy.
pub(crate) async fn stage(name: &str) -> (String, Zk) {
    let namespace = namespace(name);
    let witness = connect(&namespace.parse().unwrap(), SOON).await.unwrap();
    bellwether_zk::open_namespace(&witness, true).await.unwrap();
    (namespace, witness)
}

impl Node {
    pub(crate) async fn start(namespace: &str, name: &str, strategy: Strategy) -> Self {
        Self::behind(Proxy::to(namespace), name, strategy).await
    }

    pub(crate) async fn behind(proxy: Proxy, name: &str, strategy: Strategy) -> Self {
        Self::with_timeout(proxy, name, strategy, TIMEOUT).await
    }

    pub(crate) async fn with_timeout(
        proxy: Proxy,
        name: &str,
        strategy: Strategy,
        session_timeout: Duration,
    ) -> Self {
        let connect = proxy.connect_string().parse().unwrap();
        let session = SessionConfig {
            owner: "test".to_owned(),
            is_trusted: true,
            election: Some(strategy),
            connect,
            access: Access::default(),
            session_timeout,
            create_namespace: true,
            reads_clock: Some(Process { node: None, host: "h".into() }),
        };
        let session = Session::start(session, None).await.unwrap();
        let config = ElectionConfig { strategy, ..ElectionConfig::new(NodeId::new(name).unwrap()) };
        let election = Election::start(config.clone(), &session, None).await.unwrap();
        Self { proxy, session, config, election }
    }

    pub(crate) fn now(&self) -> LeadershipState<ActiveTerm> {
        self.election.leadership().borrow().clone()
    }

    /// Waits until the node is the leader with an epoch above `above`.
    pub(crate) async fn leads_above(&self, above: i32) -> (Zk, Term) {
        eventually_some("the node is the leader", SOON, async || match self.now() {
            LeadershipState::Active(ActiveTerm { zk, term }) if term.epoch() > above => Some((zk, term)),
            _ => None,
        })
        .await
    }

    pub(crate) async fn leads(&self) -> (Zk, Term) {
        self.leads_above(0).await
    }

    pub(crate) async fn pauses(&self) -> Term {
        eventually_some("the node pauses", SOON, async || match self.now() {
            LeadershipState::Paused { term, .. } => Some(term),
            _ => None,
        })
        .await
    }

    pub(crate) async fn is(&self, wanted: Inactive) {
        eventually_some("the node does not lead", SOON, async || match self.now() {
            LeadershipState::Inactive(inactive) if inactive == wanted => Some(()),
            _ => None,
        })
        .await;
    }

    /// Waits until the node is not the leader.
    pub(crate) async fn leads_no_more(&self) {
        eventually_some("the node does not lead", SOON, async || match self.now() {
            LeadershipState::Inactive(_) => Some(()),
            _ => None,
        })
        .await;
    }
}

pub(crate) async fn candidates(witness: &Zk) -> Vec<String> {
    witness.children(path::ELECTION.to_owned()).await.unwrap().unwrap()
}

pub(crate) async fn epoch(witness: &Zk) -> i32 {
    witness.get(path::EPOCH.to_owned()).await.unwrap().unwrap().version
}
