//! The handlers of jobs in groups, and the results of joins and finished handlers.

use std::sync::Arc;
use std::time::Duration;

use bellwether::client::{MemberEnd, Members};
use bellwether::handler::with_state;
use bellwether::{HandlerError, Handlers};
use serde::{Deserialize, Serialize};

use crate::record::Recorder;
use crate::roster;
use crate::work::{PART, Run, TREE, task};

/// The result of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Joined {
    pub(crate) ended: u32,
    pub(crate) open: u32,
    pub(crate) unreadable: u32,
}

/// The result of a finished handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finished {
    /// Whether the parent's record is terminal.
    pub(crate) parent_over: bool,
    /// Whether the join's record is terminal.
    pub(crate) join_over: bool,
}

/// Returns the handlers of members, of jobs with sub-jobs, and of their joins.
pub(crate) fn handlers(recorder: &Arc<Recorder>) -> Handlers {
    let recorded = with_state(Arc::clone(recorder));
    let part = recorded.raw(PART, |recorder, context| async move {
        let run = Run::begin(&recorder, &context);
        let task = task(&context)?;
        tokio::time::sleep(Duration::from_millis(task.ms)).await;
        run.end(&task)
    });
    let tree = recorded.raw(TREE, |recorder, context| async move {
        let run = Run::begin(&recorder, &context);
        let task = task(&context)?;
        let group = context.sub_jobs_of(PART).finished(true);
        let group = group.fail_fast(!task.ms.is_multiple_of(2)).open().await?;
        for (number, payload) in task.subs() {
            group.submit(number, roster::member(PART, payload)).await?;
            // A failing attempt leaves some sub-jobs to the next attempt.
            if context.attempt() <= task.fails && number > 0 {
                break;
            }
        }
        run.end(&task)
    });
    let join = |kind| {
        recorded.join_job(kind, |recorder, context, members| async move {
            let _run = Run::begin(&recorder, &context);
            count(members).await
        })
    };
    let finished = recorded.finished_job(TREE, |recorder, context, finished| async move {
        let _run = Run::begin(&recorder, &context);
        let parent_over = finished.parent.state.is_terminal();
        let join_over = finished.join.is_some_and(|join| join.state.is_terminal());
        Ok(Finished { parent_over, join_over })
    });
    Handlers::new().add(part).add(tree).add(join(PART)).add(join(TREE)).add(finished)
}

async fn count(mut members: Members) -> Result<Joined, HandlerError> {
    let mut joined = Joined::default();
    while let Some(member) = members.next().await? {
        match member.end {
            MemberEnd::Succeeded(_)
            | MemberEnd::Undecodable(_)
            | MemberEnd::Cancelled
            | MemberEnd::Dead(_) => joined.ended += 1,
            MemberEnd::Open => joined.open += 1,
            MemberEnd::Unreadable(_) => joined.unreadable += 1,
        }
    }
    Ok(joined)
}
