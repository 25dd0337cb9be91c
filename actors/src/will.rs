//! A concern's will: operations that its host commits when the concern has ended, however it ended.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::port::Session;
use bellwether_core::txn::Op;

/// Until a will whose outcome is unknown is committed again.
const RETRY: Duration = Duration::from_millis(100);

/// Commits a will until its outcome is known, or the session's end makes it void. A lost reply is harmless: the second
/// commit is rejected because the znodes are gone, which ends the retries.
pub async fn carry_out<S: Future>(session: Arc<dyn Session>, ops: Vec<Op>, sleep: impl Fn(Duration) -> S) {
    while !session.has_ended() {
        match session.commit(ops.clone()).await {
            Outcome::Applied(()) | Outcome::Rejected(Rejection { reason: Reason::NoNode, .. }) => return,
            Outcome::Rejected(_) | Outcome::Unknown => {
                sleep(RETRY).await;
            }
        }
    }
}
