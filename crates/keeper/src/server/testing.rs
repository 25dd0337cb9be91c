//! What a test cannot bring about from outside. Not in a server that is shipped.

use std::time::Duration;

use tokio::sync::oneshot;

use super::inbox::{Closed, Message};
use super::keeper::Keeper;

impl Keeper {
    /// Ends a session as if its time were over: its ephemeral znodes go, its connection is closed. `false` when
    /// there is no such session, or the server has stopped.
    pub async fn expire(&self, session: i64) -> bool {
        let (answer, expired) = oneshot::channel();
        match self.inbox.tell(Message::Expire(session, answer)) {
            Ok(()) => expired.await.unwrap_or(false),
            Err(Closed) => false,
        }
    }

    /// Lets `time` pass at once for the server: sessions that do not send in it expire, as do TTL znodes.
    pub fn skip(&self, time: Duration) {
        // A server that has stopped has no time.
        let (Ok(()) | Err(Closed)) = self.inbox.tell(Message::Skip(time));
    }
}
