//! A segment for tests.

use uuid::Uuid;

use super::{Head, Member, Segment, SegmentId};
use crate::job::{Payload, Placement, Policy, Priority};
use crate::name::Kind;
use crate::time::WallMillis;

/// The id of [`segment`].
pub(crate) fn id() -> SegmentId {
    SegmentId::new(Uuid::from_u128(1), 4, 100).unwrap()
}

/// Four members.
pub(crate) fn segment() -> Segment {
    let head = Head {
        kind: Kind::new("sum").unwrap(),
        policy: Policy::default(),
        placement: Placement::default(),
        priority: Priority::HIGHEST,
        submitted_at: WallMillis(1_700_000_000_123),
        part: 3,
        token: Uuid::from_u128(2),
    };
    let payload = |n: u8| Payload::json(n.to_string().into_bytes()).unwrap();
    Segment { head, members: (0..4).map(|n| Member { payload: payload(n), trace: None }).collect() }
}
