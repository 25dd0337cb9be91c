//! The permissions of each role on each znode: the only place that decides them.
//!
//! `READ` is for everyone: every process reads the whole namespace. A row is written as the permissions of candidate, worker,
//! gateway and client; the operator has all. `r`, `w`, `c`, `d` are `READ`, `WRITE`, `CREATE` and `DELETE`, of which the last
//! two concern the children of the znode.

use bellwether_core::path;
use zookeeper_client::Permission;

use super::Role;

/// The permissions of candidate, worker, gateway and client.
type Row = [&'static str; 4];

/// What a role may do with a znode.
pub(crate) fn permissions(path: &str, role: Role) -> Permission {
    let [candidate, worker, gateway, client] = row(path);
    match role {
        Role::Operator => Permission::ALL,
        Role::Candidate => parse(candidate),
        Role::Worker => parse(worker),
        Role::Gateway => parse(gateway),
        Role::Client => parse(client),
    }
}

/// What the process that created a znode may do with it, beside the permissions of its role: a worker closes its attempts in
/// its inbox, and marks itself as draining; a process changes its report about its clock.
pub(crate) fn of_owner(path: &str) -> Permission {
    match path::below_parent(path) {
        (path::WORKERS | path::CLOCKS, 1) => parse("rw"),
        (path::ASSIGNMENTS, 1) => parse("rwd"),
        (_, _) => Permission::NONE,
    }
}

fn parse(letters: &str) -> Permission {
    letters.chars().fold(Permission::NONE, |may, letter| {
        may | match letter {
            'r' => Permission::READ,
            'w' => Permission::WRITE,
            'c' => Permission::CREATE,
            'd' => Permission::DELETE,
            other => unreachable!("{other} is not a permission"),
        }
    })
}

/// Only operators change it.
const FIXED: Row = ["r", "r", "r", "r"];
/// All roles create and delete children.
const SHARED: Row = ["rcd", "rcd", "rcd", "rcd"];

fn row(path: &str) -> Row {
    match path::below_parent(path) {
        // The leader's znode of the strategy `single`, and `/epoch` and `/leading` after an operator deleted them.
        ("/", _) => ["rcd", "r", "r", "r"],
        (path::EPOCH | path::LEADING | path::LEADER | path::LAYOUT, _) => ["rw", "r", "r", "r"],
        (path::ELECTION, 0) => ["rcd", "r", "r", "r"],
        (path::CONFIG, 0) => ["r", "r", "rc", "r"],
        (path::CONFIG, _) => ["r", "r", "rw", "r"],
        // The end of a pause and the removal of a schedule set the parent. Candidates also add the schedules of their files.
        (path::PAUSES, 0) => ["r", "r", "rwcd", "r"],
        (path::SCHEDULES, 0) => ["rc", "r", "rwcd", "r"],
        (path::SCHEDULES, _) => ["rw", "r", "rw", "r"],
        (path::WORKERS, 0) | (path::ASSIGNMENTS, 0) => ["rcd", "rcd", "rcd", "r"],
        // The registration: an operator drains a worker and changes its settings through a gateway.
        (path::WORKERS, _) => ["r", "r", "rw", "r"],
        // The inbox: the leader assigns, and a gateway takes over the attempts of remote workers.
        (path::ASSIGNMENTS, 1) => ["rwcd", "r", "rwcd", "r"],
        // The assignment: its worker sets progress and lease, and a client asks for cancellation.
        (path::ASSIGNMENTS, _) => ["rw", "rw", "rw", "rw"],
        // Every process reads ZooKeeper's clock by setting it.
        (path::JOBS, 0) => ["rw", "rw", "rw", "rw"],
        // Retention and purges remove records, and count the removals in the bucket.
        (path::JOBS, 1) => ["rw", "r", "rw", "r"],
        (path::JOBS, 2) => ["rcd", "rc", "rcd", "rc"],
        // A record, or a segment: results and extractions create chunks below it, and retention and purges remove them.
        (path::JOBS, 3) => ["rwcd", "rwc", "rwcd", "rwc"],
        // A chunk.
        (path::JOBS, _) => FIXED,
        // Shards and classes: their children are containers, which ZooKeeper removes.
        (path::READY, 1 | 2) => ["rcd", "rc", "rc", "rc"],
        (path::READY, 3) => SHARED,
        (path::DELAYED, 0) => ["rcd", "rc", "rc", "rc"],
        (path::DELAYED, 1) => SHARED,
        (path::LANES, 1) => ["rcd", "rc", "rc", "rc"],
        (path::LANES, 2) => SHARED,
        // The retention removes groups. The record of a group is the parent of its marks.
        (path::GROUPS | path::MEMBERS, 1) => ["rcd", "rc", "rc", "rc"],
        (path::GROUPS, 2) => ["rwcd", "rwcd", "rwcd", "rwcd"],
        (path::GROUPS, 3) | (path::MEMBERS, 2 | 3) => SHARED,
        // Every process reports a wrong clock of its own machine. The owner of a report may change it.
        (path::CLOCKS, 0) => SHARED,
        (path::QUARANTINE, 0) => ["rcd", "rc", "rd", "r"],
        // Entries, turns, places, marks and notes are never set; nor are buckets of other parents.
        (_, _) => FIXED,
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::path::Bucket;
    use bellwether_core::ready::Shard;

    use super::*;

    /// What a compromised worker or client must not change.
    #[test]
    fn only_leaders_and_operators_change_the_leadership_and_only_operators_access_lists() {
        for path in
            [path::EPOCH, path::LEADING, path::LEADER, path::ELECTION, path::LAYOUT, "/election/x-n-1", "/"]
        {
            for role in [Role::Worker, Role::Gateway, Role::Client] {
                assert_eq!(permissions(path, role), Permission::READ, "{role} {path}");
            }
        }
        let settings = [path::CONFIG, path::RETENTION, path::FAILOVER, path::PLACEMENT];
        let pauses = [path::PAUSES, "/pauses/sum", path::SCHEDULES, "/schedules/nightly"];
        for path in settings.into_iter().chain(pauses) {
            for role in [Role::Worker, Role::Client] {
                assert_eq!(permissions(path, role), Permission::READ, "{role} {path}");
            }
        }
        let bucket = Bucket::all().next().unwrap();
        let below = [
            bucket.jobs(),
            bucket.sub_buckets().next().unwrap().path(),
            path::ready_shard(Shard::all().next().unwrap()),
            bucket.lanes(),
            bucket.groups(),
            bucket.members(),
        ];
        let named =
            path::PARENTS.into_iter().chain([path::EPOCH, "/unknown", "/unknown/x"]).map(str::to_owned);
        for path in named.chain(below) {
            assert_eq!(permissions(&path, Role::Operator), Permission::ALL);
            for role in [Role::Candidate, Role::Worker, Role::Gateway, Role::Client] {
                let may = permissions(&path, role);
                assert!(!may.has(Permission::ADMIN) && may.has(Permission::READ), "{role} {path}");
            }
        }
    }

    #[test]
    fn workers_and_clients_cannot_remove_records_or_write_registrations_of_others() {
        let bucket = Bucket::all().next().unwrap();
        for role in [Role::Worker, Role::Client] {
            assert_eq!(permissions(&bucket.jobs(), role), Permission::READ);
            let parent = bucket.sub_buckets().next().unwrap().path();
            assert!(!permissions(&parent, role).has(Permission::DELETE));
            assert_eq!(permissions("/workers/x", role), Permission::READ);
            assert_eq!(permissions("/assignments/x", role), Permission::READ);
        }
        assert!(of_owner("/workers/x").has(Permission::WRITE));
        assert!(of_owner("/assignments/x").has(Permission::DELETE));
        assert_eq!(of_owner("/assignments/x/job"), Permission::NONE);
        assert_eq!(permissions("/workers", Role::Client), Permission::READ);
    }
}
