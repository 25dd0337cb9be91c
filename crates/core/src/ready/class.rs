//! Classes of waiting jobs.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::job::Placement;
use crate::name::{Kind, Tag};

/// Parents of classes. With 10,000 classes, one has 625.
pub const SHARDS: u8 = 16;

/// Bytes of the kind in the name of a class that is not named by its kind alone. People read them; the hash decides.
const PREFIX: usize = 64;

/// The end of the name of a class whose jobs have a lane. No kind and no hash has a `+`.
const LANED: &str = "+lanes";

const DIGITS: [u8; SHARDS as usize] = *b"0123456789abcdef";

/// A parent of classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(u8);

impl Shard {
    /// All shards in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..SHARDS).map(Self)
    }

    /// Whether its znode has this name.
    #[must_use]
    pub fn has_name(self, name: &str) -> bool {
        name.bytes().eq([DIGITS[usize::from(self.0)]])
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        char::from(DIGITS[usize::from(self.0)]).fmt(f)
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

    /// The name of its znode.
    #[must_use]
    pub fn name(&self) -> ClassName {
        let kind = self.kind.as_str();
        if self.tags.is_empty() && !self.laned {
            return ClassName(kind.into());
        }
        let lanes = if self.laned { LANED } else { "" };
        // Names are ASCII.
        ClassName(format!("{}@{:016x}{lanes}", &kind[..kind.len().min(PREFIX)], self.hash()).into())
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

/// The name of a class: the kind, or the kind's first bytes, `@` and a hash. A kind has no `@`, so the two forms differ.
///
/// Two classes can have one hash. They share a znode then, which is harmless: an entry of such a class has data, and the
/// data decides which workers can take it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassName(Arc<str>);

impl ClassName {
    /// The name as it appears in paths.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The shard of its znode. It never changes, because it is part of the path.
    #[must_use]
    pub fn shard(&self) -> Shard {
        let shard = xxh3_64(self.0.as_bytes()) % u64::from(SHARDS);
        Shard(u8::try_from(shard).expect("16 shards fit a byte"))
    }

    /// The kind of its jobs, if the name is the kind alone. Such jobs need no tags and have no lane.
    #[must_use]
    pub fn kind_alone(&self) -> Option<Kind> {
        Kind::new(&*self.0).ok()
    }

    /// The kind of its jobs, for display: only its first bytes, if it is long and the jobs have tags or a lane.
    #[must_use]
    pub fn kind(&self) -> Kind {
        let (kind, _) = self.0.split_once('@').unwrap_or((&*self.0, ""));
        Kind::new(kind).expect("the name of a class begins with a kind")
    }

    /// Whether its jobs have a lane.
    #[must_use]
    pub fn is_laned(&self) -> bool {
        self.0.ends_with(LANED)
    }
}

impl fmt::Display for ClassName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ClassName {
    type Err = ();

    /// Parses a name. An operator may create any znode, so a foreign name is an error.
    fn from_str(name: &str) -> Result<Self, ()> {
        let (kind, hash) = match name.split_once('@') {
            Some((kind, hash)) => (kind, Some(hash.strip_suffix(LANED).unwrap_or(hash))),
            None => (name, None),
        };
        let is_hash = |hash: &str| {
            hash.len() == 16 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let valid = Kind::new(kind).is_ok() && hash.is_none_or(|hash| kind.len() <= PREFIX && is_hash(hash));
        valid.then(|| Self(name.into())).ok_or(())
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
        assert_eq!(class("sum", &[], false).name().as_str(), "sum");
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
        for class in &classes {
            let name = class.name();
            assert_eq!(name.as_str().parse(), Ok(name.clone()));
            assert_eq!(name.is_laned(), class.laned);
            let alone = class.tags.is_empty() && !class.laned;
            assert_eq!(name.kind_alone(), alone.then(|| class.kind.clone()));
        }
    }

    #[test]
    fn a_foreign_name_of_a_class_is_refused() {
        let long = format!("{}@637ad768a33ca0ab", "k".repeat(PREFIX + 1));
        for foreign in
            ["", ".", "a b", "sum@", "sum@637ad768a33ca0a", "sum@637AD768a33ca0ab", "sum+lanes", &long]
        {
            assert_eq!(foreign.parse::<ClassName>(), Err(()), "{foreign:?}");
        }
    }

    #[test]
    fn the_name_of_a_class_with_the_longest_kind_is_a_valid_name() {
        let long = "k".repeat(crate::budget::MAX_NAME_BYTES);
        assert_eq!(class(&long, &[], false).name().as_str(), long);
        assert_eq!(class(&long, &["gpu"], false).name().as_str().len(), PREFIX + 1 + 16);
    }

    /// Name and shard are part of stored paths: another hash would make every stored entry unreachable.
    #[test]
    fn the_path_of_a_class_is_fixed() {
        let laned = class("sum", &["gpu", "ssd"], true);
        assert_eq!(laned.name().as_str(), "sum@637ad768a33ca0ab+lanes");
        let shards = [class("sum", &[], false), class("mail", &[], false), laned]
            .map(|class| class.name().shard().to_string());
        assert_eq!(shards, ["0", "f", "3"]);
    }

    #[test]
    fn shards_are_used_evenly() {
        let mut used = std::collections::BTreeMap::<Shard, usize>::new();
        for n in 0..10_000 {
            *used.entry(class(&format!("kind-{n}"), &[], false).name().shard()).or_default() += 1;
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
