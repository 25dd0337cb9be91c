//! Tasks of concerns: several requests in sequence.

use std::sync::Arc;

use bellwether_core::port::{Reply, Requests};

use super::Msg;
use super::context::Context;
use crate::zk::Zk;

/// Starts a task of a concern. Its output becomes a message.
pub(super) fn begin<M: 'static>(
    cx: &mut Context<'_>,
    zk: Zk,
    task: impl FnOnce(Arc<dyn Requests>) -> Reply<Option<M>> + 'static,
    mail: impl FnOnce(Option<M>) -> Msg + 'static,
) {
    cx.begin(move |env| async move {
        let msg = task(env.session(zk)).await;
        env.tell(mail(msg));
    });
}
