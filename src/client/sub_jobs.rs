//! The groups of a job's sub-jobs. The job's record shows only whether there are any; the first group lists the further ones.

use bellwether_core::group::GroupRecord;
use bellwether_core::path;
use bellwether_core::wire;

use super::error::Error;
use super::session::{Deadline, Session};
use super::view::JobView;

/// Adds the further groups to the views that have the first one. At most [`MAX_READ_BATCH`] views. If a first group cannot be
/// decoded, or is absent, its view stays as it is.
///
/// [`MAX_READ_BATCH`]: bellwether_core::budget::MAX_READ_BATCH
pub(super) async fn add_sub_jobs<'a>(
    session: &Session,
    by: Deadline,
    views: impl IntoIterator<Item = &'a mut JobView>,
) -> Result<(), Error> {
    let parents = views.into_iter().filter(|view| view.sub_jobs.len() == 1).collect::<Vec<_>>();
    if parents.is_empty() {
        return Ok(());
    }
    let paths = parents.iter().map(|view| path::group(&view.sub_jobs[0])).collect::<Vec<_>>();
    let nodes = session.read(by, |zk| zk.get_many(paths.clone())).await?;
    for (view, node) in parents.into_iter().zip(nodes) {
        let record = node.and_then(|node| wire::decode::<GroupRecord>(&node.data).ok());
        let further = record.map(|record| record.further_groups(&view.sub_jobs[0]).collect::<Vec<_>>());
        view.sub_jobs.extend(further.into_iter().flatten());
    }
    Ok(())
}
