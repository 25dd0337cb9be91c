//! Job kinds as Rust types.

use std::marker::PhantomData;

use bellwether_core::job::Payload;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Job, JobOptions};
use crate::client::group::Group;

/// A job kind with the types of its payload and result, checked by the compiler.
///
/// ```
/// use bellwether::JobKind;
///
/// struct Sum;
///
/// impl JobKind for Sum {
///     const NAME: &'static str = "sum";
///     type Payload = Vec<i64>;
///     type Result = i64;
/// }
///
/// # fn main() -> Result<(), bellwether::JobError> {
/// let job = Sum::job(&vec![1, 2, 3]).id("sum-of-three").max_attempts(2);
/// # job.check() }
/// ```
pub trait JobKind: Sized + 'static {
    /// The name of the kind, under which its handler is registered.
    const NAME: &'static str;
    /// The payload that a handler receives.
    type Payload: Serialize + DeserializeOwned;
    /// The result that a handler returns.
    type Result: Serialize + DeserializeOwned;

    /// Returns the options of all jobs of this kind. A job may override them.
    ///
    /// They apply to the jobs that [`JobKind::job`] creates, not to jobs that are submitted by the name of the kind.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use bellwether::JobKind;
    /// use bellwether::client::JobOptions;
    ///
    /// struct Report;
    ///
    /// impl JobKind for Report {
    ///     const NAME: &'static str = "report";
    ///     type Payload = u32;
    ///     type Result = String;
    ///
    ///     fn defaults() -> JobOptions {
    ///         JobOptions::new().max_attempts(2).timeout(Duration::from_secs(300))
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), bellwether::JobError> {
    /// let patient = Report::job(&2026).timeout(Duration::from_secs(3_600));
    /// # patient.check() }
    /// ```
    fn defaults() -> JobOptions {
        JobOptions::new()
    }

    /// Creates a job of this kind, with the options of the kind.
    #[must_use]
    fn job(payload: &Self::Payload) -> Job<Self> {
        Job::build(Self::NAME, payload).options(Self::defaults())
    }

    /// Returns a group of jobs of this kind. The group has a join, which needs a handler; [`Group::join`] turns it off.
    /// Its members, and the argument of its join, have the types of the kind:
    ///
    /// ```
    /// use bellwether::{Client, JobKind};
    ///
    /// struct Sum;
    ///
    /// impl JobKind for Sum {
    ///     const NAME: &'static str = "sum";
    ///     type Payload = Vec<i64>;
    ///     type Result = i64;
    /// }
    ///
    /// async fn sums(client: &Client) -> Result<(), Box<dyn std::error::Error>> {
    ///     let group = client.group(Sum::group("november").total(1)).await?;
    ///     group.submit(0, Sum::job(&vec![1, 2, 3])).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// A job of another kind does not compile:
    ///
    /// ```compile_fail,E0308
    /// # use bellwether::{Client, Job, JobKind};
    /// # struct Sum;
    /// # impl JobKind for Sum {
    /// #     const NAME: &'static str = "sum";
    /// #     type Payload = Vec<i64>;
    /// #     type Result = i64;
    /// # }
    /// struct Other;
    ///
    /// impl JobKind for Other {
    ///     const NAME: &'static str = "other";
    ///     type Payload = Vec<i64>;
    ///     type Result = i64;
    /// }
    ///
    /// async fn sums(client: &Client) -> Result<(), Box<dyn std::error::Error>> {
    ///     let group = client.group(Sum::group("november").total(1)).await?;
    ///     group.submit(0, Other::job(&vec![1, 2, 3])).await?;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    fn group(id: impl AsRef<str>) -> Group<Self> {
        Group::of(Self::NAME, id)
    }
}

/// A kind whose groups have a join.
///
/// ```
/// use bellwether::client::Members;
/// use bellwether::{Handlers, JobKind, JoinKind};
///
/// struct Page;
///
/// impl JobKind for Page {
///     const NAME: &'static str = "page";
///     type Payload = u32;
///     type Result = u32;
/// }
///
/// impl JoinKind for Page {
///     type Joined = u32;
/// }
///
/// let handlers = Handlers::new()
///     .kind::<Page>(|_, lines| async move { Ok(lines) })
///     .join::<Page>(|_, mut pages| async move {
///         let mut lines = 0;
///         while let Some(page) = pages.next().await? {
///             // The join fails if a page did not succeed.
///             lines += page.into_result()?;
///         }
///         Ok(lines)
///     });
/// # assert!(handlers.check().is_ok());
/// ```
///
/// The compiler checks the types of the members' results and of the result of the join:
///
/// ```compile_fail,E0308
/// # use bellwether::{JobKind, JoinKind, handler};
/// # struct Page;
/// # impl JobKind for Page {
/// #     const NAME: &'static str = "page";
/// #     type Payload = u32;
/// #     type Result = u32;
/// # }
/// # impl JoinKind for Page {
/// #     type Joined = u32;
/// # }
/// let join = handler::join::<Page>(|_, mut pages| async move {
///     while let Some(page) = pages.next().await? {
///         let text: String = page.into_result()?;
///     }
///     Ok(0)
/// });
/// ```
pub trait JoinKind: JobKind {
    /// The result of the join, which
    /// [`GroupHandle::join_result`](crate::client::GroupHandle::join_result) returns.
    type Joined: Serialize + DeserializeOwned;
}

/// A kind whose jobs have sub-jobs and a finished handler. See [`handler::finished`](crate::handler::finished).
pub trait ParentKind: JobKind {
    /// The kind of the sub-jobs.
    type SubJob: JobKind;
    /// The result of the finished handler, which
    /// [`JobHandle::finished_result`](crate::client::JobHandle::finished_result) returns.
    type Finished: Serialize + DeserializeOwned;
}

/// The kind of a job or a group, for the compiler only.
pub(crate) type Typed<K> = PhantomData<fn() -> K>;

/// Marks jobs whose kind is not a Rust type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untyped {}

/// A [`JobKind`], or [`Untyped`]. It cannot be implemented in another way:
///
/// ```compile_fail,E0277
/// struct Text;
///
/// impl bellwether::client::AnyKind for Text {
///     type Output = String;
/// #     const KIND: Option<&'static str> = None;
/// #     fn decode(result: &bellwether::Payload) -> Result<String, serde_json::Error> {
/// #         serde_json::from_slice(result.bytes())
/// #     }
/// }
/// ```
pub trait AnyKind: sealed::Sealed + Sized + 'static {
    /// The result of a job as a client reads it: [`JobKind::Result`], or the stored bytes.
    type Output;

    /// The name of the kind; `None` for [`Untyped`].
    #[doc(hidden)]
    const KIND: Option<&'static str>;

    /// Decodes a stored result.
    ///
    /// # Errors
    /// Fails if the result has another type.
    #[doc(hidden)]
    fn decode(result: &Payload) -> Result<Self::Output, serde_json::Error>;
}

impl<K: JobKind> AnyKind for K {
    type Output = K::Result;

    const KIND: Option<&'static str> = Some(K::NAME);

    fn decode(result: &Payload) -> Result<K::Result, serde_json::Error> {
        serde_json::from_slice(result.bytes())
    }
}

impl AnyKind for Untyped {
    type Output = Payload;

    const KIND: Option<&'static str> = None;

    fn decode(result: &Payload) -> Result<Payload, serde_json::Error> {
        Ok(result.clone())
    }
}

mod sealed {
    pub trait Sealed {}

    impl<K: super::JobKind> Sealed for K {}

    impl Sealed for super::Untyped {}
}
