//! A store whose process is killed, and a directory that is locked by another process.
//!
//! The child is this test binary, started with an environment variable to commit until it is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use bellwether_keeper::store::{Change, Changes, Disk, NodeRow, Store as _, StoreError};

const CHILD: &str = "KEEPER_STORE_CHILD";
const ROUNDS: usize = 5;

/// The row of a znode that the transaction `czxid` created and `zxid` changed.
fn row(czxid: i64, zxid: i64) -> NodeRow {
    NodeRow {
        czxid,
        mzxid: zxid,
        pzxid: zxid,
        ctime: 0,
        mtime: 0,
        version: 0,
        creates: 0,
        aversion: 0,
        ephemeral_owner: 0,
        acl: Arc::from([]),
    }
}

fn number(zxid: i64) -> Option<Arc<[u8]>> {
    Some(Arc::from(zxid.to_be_bytes()))
}

/// Commits until the process is killed, and prints each durable batch.
fn commit_until_killed(dir: &Path) -> ! {
    let mut store = Disk::open(dir).expect("the directory is not locked");
    let mut zxid = store.load().expect("the file is valid").zxid;
    let mut out = std::io::stdout();
    loop {
        writeln!(out, "acknowledged {zxid}").and_then(|()| out.flush()).expect("the parent reads stdout");
        zxid += 1;
        let put = |path: &str, czxid| Change::PutNode {
            path: path.into(),
            row: row(czxid, zxid),
            data: number(zxid),
            data_changed: true,
        };
        let rows = vec![put(&format!("/{zxid:08}"), zxid), put("/latest", 0)];
        store.commit(&Changes { zxid, rows }).expect("the disk is healthy");
    }
}

/// A committing child process, killed on drop.
struct Committer {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Committer {
    fn start(test: &str, dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("the test binary has a path"))
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(CHILD, dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test binary starts");
        let out = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Self { child, out }
    }

    /// Returns the next acknowledged number; `None` when the process has ended.
    fn acknowledged(&mut self) -> Option<i64> {
        loop {
            let mut line = String::new();
            if self.out.read_line(&mut line).expect("the output is text") == 0 {
                return None;
            }
            // The test harness prints too, possibly without a newline. A line without a newline was cut by the kill.
            if let Some((_, number)) =
                line.strip_suffix('\n').and_then(|line| line.split_once("acknowledged "))
            {
                return Some(number.parse().expect("a number"));
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().expect("the child process");
        self.child.wait().expect("the child process");
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn batches_acknowledged_by_a_killed_process_are_stored() {
    if let Some(dir) = std::env::var_os(CHILD) {
        commit_until_killed(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut total = 0;
    for round in 0..ROUNDS {
        let mut committer =
            Committer::start("store_kill::batches_acknowledged_by_a_killed_process_are_stored", dir.path());
        let begin = committer.acknowledged().expect("the child has started");
        assert_eq!(begin, total, "round {round} continues after the previous one");
        let enough = begin + fastrand::i64(1..80);
        let mut acknowledged = begin;
        while acknowledged < enough {
            acknowledged = committer.acknowledged().expect("the child continues");
        }
        committer.kill();
        while let Some(more) = committer.acknowledged() {
            acknowledged = more;
        }

        let snapshot = Disk::open(dir.path()).unwrap().load().unwrap();
        let found = snapshot.zxid;
        // One batch may be durable but not printed yet.
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "{acknowledged} acknowledged, {found} found"
        );
        let mut expected = vec![("/latest".to_owned(), row(0, found), number(found))];
        expected.extend((1..=found).map(|zxid| (format!("/{zxid:08}"), row(zxid, zxid), number(zxid))));
        assert!(
            snapshot.nodes == expected,
            "round {round}: the rows differ from the {found} committed batches"
        );
        total = found;
    }
}

#[test]
fn a_directory_is_locked_while_another_process_uses_it_and_unlocked_after_its_kill() {
    if let Some(dir) = std::env::var_os(CHILD) {
        commit_until_killed(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let test = "store_kill::a_directory_is_locked_while_another_process_uses_it_and_unlocked_after_its_kill";
    let mut committer = Committer::start(test, dir.path());
    committer.acknowledged().expect("the child has started");
    let error = Disk::open(dir.path()).unwrap_err();
    let StoreError::Locked { dir: named, holder } = &error else { panic!("{error}") };
    assert_eq!((named.as_path(), *holder), (dir.path(), Some(committer.child.id())));
    assert!(error.to_string().contains(&dir.path().display().to_string()), "{error}");
    committer.kill();
    Disk::open(dir.path()).unwrap();
}
