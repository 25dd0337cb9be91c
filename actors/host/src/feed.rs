//! Delivers a watch as a stream of messages.
//!
//! A pump task owns the watch and only turns its events into messages, so the client's watcher thread never waits for
//! an actor. The watch is requested before the function returns, so every later request of the actor is answered after
//! the watch is set.

use std::time::Duration;

use bellwether_core::chain::chain;
use bellwether_zk::{ReadError, ReadResult, Zk};
use futures::FutureExt;
use tokio::time::sleep;

use crate::task::{Owned, Then};

pub(crate) use bellwether_actors::Feed;

/// The wait before a watch that ZooKeeper refused, for example because of throttling, is requested again.
const RETRY: Duration = Duration::from_secs(1);

/// Watches `path` and everything below it. The feed ends without a message when the connection is lost. After a
/// reconnect the actor starts a new feed and then drops this one.
pub(crate) fn watch(zk: &Zk, path: String, heard: Box<dyn Fn(Feed) + Send>) -> Owned {
    let zk = zk.clone();
    let mut asked = zk.watch_path(path.clone()).boxed();
    Owned::spawn(async move {
        let mut watch = loop {
            match asked.await {
                Ok(watch) => break watch,
                Err(error @ ReadError::Disconnected) => {
                    tracing::debug!(path, error = %chain(&error), "the node cannot set the watch: it sets the watch again after the reconnect");
                    return;
                }
                Err(error @ ReadError::Refused(_)) => {
                    tracing::warn!(path, error = %chain(&error), "ZooKeeper refused the watch: the node requests it again");
                    sleep(RETRY).await;
                    asked = zk.watch_path(path.clone()).boxed();
                }
            }
        };
        drop(zk);
        heard(Feed::Watching);
        while let Some(changes) = watch.changes().await {
            heard(Feed::Changes(changes));
        }
    })
}

/// Watches the existence and data of a znode once.
pub(crate) fn glance(zk: &Zk, path: String, exists: Then<ReadResult<bool>>, changed: Then<()>) -> Owned {
    let there = zk.exists_and_glance(path);
    Owned::spawn(async move {
        let (exists_now, glance) = match there.await {
            Ok((exists, glance)) => (Ok(exists), Some(glance)),
            Err(error) => (Err(error), None),
        };
        exists(exists_now);
        if let Some(glance) = glance {
            glance.changed().await;
            changed(());
        }
    })
}
