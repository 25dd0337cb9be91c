//! The paths of groups. A group's record and marks are under `/groups`; the places of its open members are under
//! `/members`, so that a watch on the records reports ends and not submissions.

use super::Bucket;
use crate::budget::MEMBERS_PER_CHUNK;
use crate::group::{End, Mark};
use crate::name::GroupId;

/// Parent of the buckets of groups.
pub const GROUPS: &str = "/groups";
/// Parent of the buckets of open members.
pub const MEMBERS: &str = "/members";

impl Bucket {
    /// The bucket of a group. It never changes, because it is part of the group's path.
    #[must_use]
    pub fn of_group(group: &GroupId) -> Self {
        Self::of_name(group.as_str())
    }

    /// Its znode under `/groups`.
    #[must_use]
    pub fn groups(self) -> String {
        format!("{GROUPS}/{:02x}", self.index())
    }

    /// Its znode under `/members`.
    #[must_use]
    pub fn members(self) -> String {
        format!("{MEMBERS}/{:02x}", self.index())
    }
}

/// A group's record, and the parent of its marks.
#[must_use]
pub fn group(group: &GroupId) -> String {
    format!("{}/{group}", Bucket::of_group(group).groups())
}

/// The parent of a group's places.
#[must_use]
pub fn members(group: &GroupId) -> String {
    format!("{}/{group}", Bucket::of_group(group).members())
}

/// The chunk of a member.
#[must_use]
pub const fn chunk(number: u32) -> u32 {
    number / MEMBERS_PER_CHUNK
}

/// The parent of the marks of a chunk of members.
#[must_use]
pub fn mark_chunk(group: &GroupId, chunk: u32) -> String {
    format!("{}/{chunk}", self::group(group))
}

/// The parent of the places of a chunk of members.
#[must_use]
pub fn place_chunk(group: &GroupId, chunk: u32) -> String {
    format!("{}/{chunk}", members(group))
}

/// The place of an open member.
#[must_use]
pub fn place(group: &GroupId, number: u32) -> String {
    format!("{}/{number}", place_chunk(group, chunk(number)))
}

/// The mark that a job of a group has ended in this way.
#[must_use]
pub fn mark(group: &GroupId, mark: Mark, end: End) -> String {
    let (letter, parent) = (end.letter(), self::group(group));
    match mark {
        Mark::Member(number) => format!("{}/{number}-{letter}", mark_chunk(group, chunk(number))),
        Mark::Parent => format!("{parent}/parent-{letter}"),
        Mark::Join => format!("{parent}/join-{letter}"),
        Mark::Finish => format!("{parent}/finish-{letter}"),
        Mark::Further(number) => format!("{parent}/further.{number}-{letter}"),
    }
}

/// Parses the name of a chunk. `None` for a foreign name.
#[must_use]
pub fn parse_chunk(name: &str) -> Option<u32> {
    number(name)
}

/// Parses the name of a place: the member's number. `None` for a foreign name.
#[must_use]
pub fn parse_place(name: &str) -> Option<u32> {
    number(name)
}

/// Parses the name of a member's mark. `None` for a foreign name.
#[must_use]
pub fn parse_member_mark(name: &str) -> Option<(u32, End)> {
    let (digits, letter) = name.split_once('-')?;
    Some((number(digits)?, End::from_letter(letter)?))
}

/// Parses the name of the mark of another job, or of a further group. `None` for a foreign name.
#[must_use]
pub fn parse_mark(name: &str) -> Option<(Mark, End)> {
    let (who, letter) = name.split_once('-')?;
    let mark = match who {
        "parent" => Mark::Parent,
        "join" => Mark::Join,
        "finish" => Mark::Finish,
        _ => Mark::Further(number(who.strip_prefix("further.")?)?),
    };
    Some((mark, End::from_letter(letter)?))
}

fn number(digits: &str) -> Option<u32> {
    digits.parse::<u32>().ok().filter(|number| number.to_string() == digits)
}

/// The meaning of a path below `/groups` or `/members`, split into its parts.
pub(super) fn parse(parts: &[&str]) -> Option<GroupPlace> {
    let (root, bucket, name, rest) = match parts {
        [root, bucket, name, rest @ ..] => (*root, *bucket, *name, rest),
        _ => return None,
    };
    let group = GroupId::new(name)
        .ok()
        .filter(|group| format!("{:02x}", Bucket::of_group(group).index()) == bucket)?;
    match (root, rest) {
        ("groups", []) => Some(GroupPlace::Record(group)),
        ("groups", [mark]) => parse_mark(mark).map(|(mark, end)| GroupPlace::Mark(group, mark, end)),
        ("groups", [chunk, mark]) => {
            let (number, end) = parse_member_mark(mark)?;
            (parse_chunk(chunk)? == self::chunk(number)).then_some(GroupPlace::Mark(
                group,
                Mark::Member(number),
                end,
            ))
        }
        ("members", [chunk, place]) => {
            let number = parse_place(place)?;
            (parse_chunk(chunk)? == self::chunk(number)).then_some(GroupPlace::Member(group, number))
        }
        (_, _) => None,
    }
}

/// The meaning of a path of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupPlace {
    /// The record of a group.
    Record(GroupId),
    /// The mark of a job's end.
    Mark(GroupId, Mark, End),
    /// The place of an open member.
    Member(GroupId, u32),
}

#[cfg(test)]
mod tests {
    use super::super::{Place, parse};
    use super::*;

    #[test]
    fn every_path_of_a_group_is_parsed_to_its_place() {
        let id = GroupId::new("p:x@1").unwrap();
        for (path, place) in [
            (group(&id), GroupPlace::Record(id.clone())),
            (place(&id, 4_097), GroupPlace::Member(id.clone(), 4_097)),
            (mark(&id, Mark::Member(7), End::Dead), GroupPlace::Mark(id.clone(), Mark::Member(7), End::Dead)),
            (mark(&id, Mark::Join, End::Succeeded), GroupPlace::Mark(id.clone(), Mark::Join, End::Succeeded)),
            (
                mark(&id, Mark::Further(3), End::Dead),
                GroupPlace::Mark(id.clone(), Mark::Further(3), End::Dead),
            ),
            (
                mark(&id, Mark::Parent, End::Cancelled),
                GroupPlace::Mark(id.clone(), Mark::Parent, End::Cancelled),
            ),
        ] {
            assert_eq!(parse(&path), Place::Group(place), "{path}");
        }
    }

    #[test]
    fn foreign_names_in_a_group_are_other() {
        let id = GroupId::new("g").unwrap();
        let (marks, places) = (group(&id), members(&id));
        for path in [
            format!("{marks}/0/7"),
            format!("{marks}/1/7-s"),
            format!("{marks}/0/07-s"),
            format!("{marks}/0/7-x"),
            format!("{marks}/joined-s"),
            format!("{marks}/further.03-s"),
            format!("{marks}/0/7-s/x"),
            format!("{places}/0/+7"),
            places.clone(),
            "/groups/zz/g".into(),
        ] {
            assert_eq!(parse(&path), Place::Other, "{path}");
        }
    }

    #[test]
    fn members_are_divided_into_chunks_of_the_same_size() {
        let chunks = [0, MEMBERS_PER_CHUNK - 1, MEMBERS_PER_CHUNK, 2 * MEMBERS_PER_CHUNK].map(chunk);
        assert_eq!(chunks, [0, 0, 1, 2]);
    }

    #[test]
    fn the_mark_of_each_job_of_a_group_is_parsed() {
        let group = GroupId::new("g").unwrap();
        for job in [Mark::Parent, Mark::Join, Mark::Finish, Mark::Further(3)] {
            let path = mark(&group, job, End::Dead);
            let (_, name) = path.rsplit_once('/').unwrap();
            assert_eq!(parse_mark(name), Some((job, End::Dead)), "{name}");
        }
    }
}
