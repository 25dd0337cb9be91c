//! A client has one actor, its session, and no supervisor that restarts it.

use bellwether::client::{ConnectError, Error, Unavailable};
use bellwether::testing::Cluster;
use bellwether::testing::actors::{Fault, Probe, roster};
use bellwether::{Client, Handlers, Job, JobId};
use bellwether_testkit::{Cut, Proxy, eventually};
use futures::future::join;
use tokio::time::timeout;

use crate::FAULTS;
use crate::case::{self, SWEEP};
use crate::stage::{SESSION, SOON};

/// Only a node's actors subscribe, and only a session that a leader or a worker trusts asks for shorter timeouts. A client reads
/// the status. A report is written only while the clock is wrong.
const NEVER: [&str; 3] = ["Subscribe", "Granted", "Reported"];
/// Sent only when no server is reachable.
const RETRY: &str = "Retry";

/// L7: no call waits for a session that is never created.
#[tokio::test]
async fn a_client_whose_session_actor_dies_reports_immediately_that_it_is_closed() {
    case::quiet_planned_panics();
    let handlers = Handlers::new().job("quick", |_, (): ()| async { Ok(()) });
    let cluster = Cluster::builder(handlers).start().await.unwrap();
    let session = roster().into_iter().find(|entry| entry.actor == "session").unwrap();
    for kind in session.kinds.into_iter().filter(|kind| !NEVER.contains(&kind.to_string().as_str())) {
        for fault in FAULTS {
            let probe = Probe::sweeping(SWEEP);
            let planned = probe.plan("session", kind, 0, fault);
            let proxy = Proxy::to(&cluster.zookeeper());
            let connecting = Client::builder(proxy.connect_string()).session_timeout(SESSION).deadline(SOON);
            let connecting = async { connecting.connect().await };
            let unreachable = kind.to_string() == RETRY;
            let reachable_when_injected = async {
                if unreachable {
                    planned.injected().await;
                    proxy.accept();
                }
            };
            if unreachable {
                proxy.refuse();
            }
            let (client, ()) = join(probe.scope("client", connecting), reachable_when_injected).await;
            // The loss of the connection and the reconnect are `State` messages.
            proxy.cut(Cut::Fin);
            timeout(SOON, planned.injected()).await.expect("the fault is injected");
            let name = format!("{kind} {fault:?}");
            match (fault, client) {
                (Fault::Stall(_), Ok(client)) => {
                    let job = client.submit(Job::new("quick", &())).await.unwrap();
                    job.wait(SOON).await.unwrap();
                }
                (Fault::Panic | Fault::Kill, Ok(client)) => {
                    let id = JobId::new("none").unwrap();
                    let closed = Err(Error::Unavailable(Unavailable::Closed));
                    eventually(&name, SOON, async || client.get(&id).await == closed).await;
                }
                (Fault::Panic | Fault::Kill, Err(ConnectError::Unavailable(Unavailable::Closed))) => {
                    assert!(
                        ["Made", RETRY].contains(&&*kind.to_string()),
                        "{kind}: the client was already connected"
                    );
                }
                (_, Err(error)) => panic!("{name}: {error:?}"),
            }
        }
    }
    cluster.stop().await.unwrap();
}
