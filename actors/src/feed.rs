//! A recursive watch as a stream of messages.
//!
//! The pump task owns the watch and only turns what it hears into messages, so the client's watcher thread
//! never waits for an actor. The watch is requested at once, before this returns, so whatever the actor asks
//! for afterwards is answered after the watch is set.

use bellwether_zk::{Change, Zk};
use ractor::{ActorRef, Message};

use crate::task::{Owned, tell};

/// What a feed tells.
#[derive(Debug)]
pub(crate) enum Feed {
    /// The watch is set: what is listed from now on misses nothing.
    Watching,
    /// Changes, in order.
    Changes(Vec<Change>),
}

/// Watches `path` and everything below it. The feed ends silently with the connection: whoever is told that
/// the session is back starts a new one, and drops this one after that.
pub(crate) fn watch<M: Message>(
    zk: &Zk,
    path: String,
    to: &ActorRef<M>,
    message: impl Fn(Feed) -> M + Send + 'static,
) -> Owned {
    let watch = zk.watch_path(path.clone());
    let to = to.clone();
    Owned::spawn(async move {
        let mut watch = match watch.await {
            Ok(watch) => watch,
            Err(error) => {
                tracing::debug!(path, %error, "no watch: the session's return starts another");
                return;
            }
        };
        tell(&to, message(Feed::Watching));
        while let Some(changes) = watch.changes().await {
            tell(&to, message(Feed::Changes(changes)));
        }
    })
}
