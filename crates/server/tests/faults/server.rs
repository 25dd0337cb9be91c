//! The ZooKeeper server is killed and restarted.

use bellwether::State;
use bellwether_testkit::ZooKeeperServer;

use crate::stage::{SOON, Stage};

/// The sessions must outlive the restart: a Java server on a busy machine needs several seconds to serve again.
#[tokio::test]
async fn acknowledged_jobs_end_after_zookeeper_is_killed_and_restarted() {
    let mut server = ZooKeeperServer::start();
    let stage = Stage::at(format!("{}/prod", server.connect_string())).await;
    let _nodes = ["a", "b"].map(|name| stage.node(name).session(SOON).start());
    stage.workers(2).await;
    for round in 0..2 {
        stage.runs.hold();
        let ids = stage.submit((0..60).map(|n| stage.runs.held(&format!("job-{round}-{n}")))).await;
        stage.begun(60 * round + 16).await;
        server.kill();
        stage.runs.release();
        server.restart();
        let jobs = stage.over(&ids).await;
        assert!(jobs.iter().all(|job| job.state == State::Succeeded), "{jobs:?}");
        let counts = stage.runs.explain(&jobs);
        assert_eq!((counts.failed, counts.released), (0, 0), "{counts:?}");
        stage.settled(2).await;
    }
}
