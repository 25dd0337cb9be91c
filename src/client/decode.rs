//! Decoding what a client reads, with its codec.
//!
//! | call | payload | result |
//! | --- | --- | --- |
//! | [`Client::get`], [`Client::get_many`], the waits, typed results, [`Members::next`] | as stored | decoded |
//! | lists, pages, events, snapshots, the last view of a timed-out wait | as stored | as stored |
//! | [`Client::decode_payload`] | decoded | |
//!
//! [`Members::next`]: super::Members::next

use bellwether_core::job::Payload;
use bellwether_core::name::{JobId, Kind};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};

use super::Client;
use super::error::Error;
use super::view::JobView;
use crate::codec::Part;

/// How many results of one call are decoded at a time: each may be a request to a store, and 16 MiB large.
const AT_A_TIME: usize = 8;

impl Client {
    /// Decodes the payload of a view, which every call returns in its stored form. `None` if the record cannot be read. Without a
    /// codec the stored payload is returned.
    ///
    /// # Errors
    /// [`Error::Undecodable`].
    pub fn decode_payload<'a>(&'a self, view: &'a JobView) -> BoxFuture<'a, Result<Option<Payload>, Error>> {
        async move {
            let (Some(kind), Some(stored)) = (&view.kind, &view.payload) else { return Ok(None) };
            self.decode_part(Part::Payload, &view.id, kind, stored).await.map(Some)
        }
        .boxed()
    }

    /// Decodes the result of a view.
    pub(crate) async fn with_result(&self, mut view: JobView) -> Result<JobView, Error> {
        if let (Some(kind), Some(stored)) = (&view.kind, &view.result) {
            view.result = Some(self.decode_part(Part::Result, &view.id, kind, stored).await?);
        }
        Ok(view)
    }

    /// Decodes the results of views, in their order.
    pub(super) async fn with_results(
        &self,
        views: Vec<Option<JobView>>,
    ) -> Result<Vec<Option<JobView>>, Error> {
        if self.0.codec.is_none() {
            return Ok(views);
        }
        let decode = |view: Option<JobView>| async move {
            match view {
                Some(view) => self.with_result(view).await.map(Some),
                None => Ok(None),
            }
        };
        stream::iter(views).map(decode).buffered(AT_A_TIME).try_collect().await
    }

    /// Decodes a payload or a result of a job.
    pub(super) async fn decode_part(
        &self,
        part: Part,
        id: &JobId,
        kind: &Kind,
        stored: &Payload,
    ) -> Result<Payload, Error> {
        let Some(codec) = &self.0.codec else { return Ok(stored.clone()) };
        let decoded = self.coded(self.by(), codec.decode(stored, (part, kind, id))).await;
        decoded.map_err(|source| Error::Undecodable { id: id.clone(), part, source })
    }
}
