//! Classes of waiting jobs.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use crate::job::Placement;
use crate::name::{Kind, Tag};

/// Parents of classes. With 10,000 classes, one has 625.
pub const SHARDS: u8 = 16;

/// Bytes of the kind in the name of a class that is not named by its kind alone. People read them; the hash decides.
const PREFIX: usize = 64;

/// A parent of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u8);

impl Shard {
    /// All shards in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SHARDS).map(Self)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// Jobs that the same workers can take. If no worker can take the first entry of a class, no worker can take the others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    /// The kind of the jobs.
    pub kind: Kind,
    /// The tags that a worker must have; sorted, without repeats.
    pub tags: Vec<Tag>,
    /// Whether the jobs have a lane. Their turn decides when they can be assigned, not their rank alone.
    pub laned: bool,
}

impl Class {
    /// The class of a job.
    #[must_use]
    pub fn of(kind: &Kind, placement: &Placement) -> Self {
        Self { kind: kind.clone(), tags: placement.tags.clone(), laned: placement.lane.is_some() }
    }

    /// The name of its znode: the kind, or the kind's first bytes and a hash. A kind has no `@`, so the two forms differ. Two
    /// classes can have one hash, so the znode contains the class, and its creator compares it.
    #[must_use]
    pub fn name(&self) -> String {
        let kind = self.kind.as_str();
        if self.tags.is_empty() && !self.laned {
            return kind.to_owned();
        }
        // Names are ASCII.
        format!("{}@{:016x}", &kind[..kind.len().min(PREFIX)], self.hash())
    }

    /// The shard of its znode. It never changes, because it is part of the path.
    #[must_use]
    pub fn shard(&self) -> Shard {
        let shard = xxh3_64(self.name().as_bytes()) % u64::from(SHARDS);
        Shard(u8::try_from(shard).expect("16 shards fit a byte"))
    }

    fn hash(&self) -> u64 {
        // No name contains a line break, so no two classes have the same text.
        let mut text = format!("{}\n{}", self.kind, self.laned);
        for tag in &self.tags {
            text.push('\n');
            text.push_str(tag.as_str());
        }
        xxh3_64(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Lane;

    fn class(kind: &str, tags: &[&str], laned: bool) -> Class {
        let tags = tags.iter().map(|tag| Tag::new(tag).unwrap()).collect();
        Class { kind: Kind::new(kind).unwrap(), tags, laned }
    }

    #[test]
    fn a_class_is_named_by_its_kind_unless_its_jobs_have_tags_or_lanes() {
        assert_eq!(class("sum", &[], false).name(), "sum");
        let classes = [
            class("sum", &[], false),
            class("sum", &[], true),
            class("sum", &["gpu"], false),
            class("sum", &["gpu"], true),
            class("sum", &["gpu", "ssd"], false),
            class("sum", &["gpu-ssd"], false),
            class("sum2", &["gpu"], false),
        ];
        let names = classes.iter().map(Class::name).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(names.len(), classes.len(), "{names:?}");
        assert!(
            names
                .iter()
                .filter(|name| *name != "sum")
                .all(|name| name.starts_with("sum") && name.contains('@'))
        );
    }

    #[test]
    fn the_name_of_a_class_with_the_longest_kind_is_a_valid_name() {
        let long = "k".repeat(crate::budget::MAX_NAME_BYTES);
        assert_eq!(class(&long, &[], false).name(), long);
        assert_eq!(class(&long, &["gpu"], false).name().len(), PREFIX + 1 + 16);
    }

    /// Name and shard are part of stored paths: another hash would make every stored entry unreachable.
    #[test]
    fn the_path_of_a_class_is_fixed() {
        let laned = class("sum", &["gpu", "ssd"], true);
        assert_eq!(laned.name(), "sum@637ad768a33ca0ab");
        let shards = [class("sum", &[], false), class("mail", &[], false), laned]
            .map(|class| class.shard().to_string());
        assert_eq!(shards, ["0", "f", "5"]);
    }

    #[test]
    fn shards_are_used_evenly() {
        let mut used = std::collections::BTreeMap::<Shard, usize>::new();
        for n in 0..10_000 {
            *used.entry(class(&format!("kind-{n}"), &[], false).shard()).or_default() += 1;
        }
        assert!(Shard::all().eq(used.keys().copied()));
        assert!(used.values().all(|count| (500..750).contains(count)), "{used:?}");
    }

    #[test]
    fn the_class_of_a_job_follows_from_its_kind_and_placement() {
        let lane = Some(Lane::new("account-7").unwrap());
        let placement = Placement { tags: vec![Tag::new("gpu").unwrap()], affinity: None, lane };
        assert_eq!(Class::of(&Kind::new("sum").unwrap(), &placement), class("sum", &["gpu"], true));
    }
}
