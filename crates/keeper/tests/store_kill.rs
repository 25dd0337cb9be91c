//! A store whose process is killed, and one whose directory another process has.
//!
//! The child is this test binary again, told by the environment to commit until it is killed.

#![cfg(all(unix, feature = "server"))]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use bellwether_keeper::store::{Change, Changes, Disk, NodeRow, Store as _, StoreError};

const CHILD: &str = "KEEPER_STORE_CHILD";
const ROUNDS: usize = 5;

fn row(zxid: i64) -> NodeRow {
    NodeRow {
        czxid: zxid,
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

/// Commits until it is killed, and says what it was told is durable.
fn commit_for_ever(dir: &Path) -> ! {
    let mut store = Disk::open(dir).expect("the directory is free");
    let mut zxid = store.load().expect("the file is whole").zxid;
    let mut out = std::io::stdout();
    loop {
        writeln!(out, "acknowledged {zxid}").and_then(|()| out.flush()).expect("the parent listens");
        zxid += 1;
        let put = |path: &str| Change::PutNode {
            path: path.into(),
            row: row(zxid),
            data: number(zxid),
            data_changed: true,
        };
        let rows = vec![put(&format!("/{zxid:08}")), put("/latest")];
        store.commit(&Changes { zxid, rows }).expect("the disk is healthy");
    }
}

/// Ends with the test, however that ends.
struct Committer {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Committer {
    fn start(test: &str, dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("a test has a path"))
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(CHILD, dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a test can be started");
        let out = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, out }
    }

    /// The next number that it acknowledged; `None` when it has ended.
    fn acknowledged(&mut self) -> Option<i64> {
        loop {
            let mut line = String::new();
            if self.out.read_line(&mut line).expect("it writes text") == 0 {
                return None;
            }
            // The test harness has words of its own, and may have left the line unfinished. A line without an end was
            // cut by the kill.
            if let Some((_, number)) =
                line.strip_suffix('\n').and_then(|line| line.split_once("acknowledged "))
            {
                return Some(number.parse().expect("a number"));
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn every_batch_that_a_killed_process_acknowledged_is_there() {
    if let Some(dir) = std::env::var_os(CHILD) {
        commit_for_ever(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut total = 0;
    for round in 0..ROUNDS {
        let mut committer =
            Committer::start("every_batch_that_a_killed_process_acknowledged_is_there", dir.path());
        let begin = committer.acknowledged().expect("it starts");
        assert_eq!(begin, total, "round {round} begins where the last one ended");
        let enough = begin + fastrand::i64(1..80);
        let mut acknowledged = begin;
        while acknowledged < enough {
            acknowledged = committer.acknowledged().expect("it goes on");
        }
        committer.kill();
        while let Some(more) = committer.acknowledged() {
            acknowledged = more;
        }

        let snapshot = Disk::open(dir.path()).unwrap().load().unwrap();
        let found = snapshot.zxid;
        // One batch may have been durable and not yet told.
        assert!(
            (acknowledged..=acknowledged + 1).contains(&found),
            "{acknowledged} acknowledged, {found} found"
        );
        let mut expected: Vec<_> =
            (1..=found).map(|zxid| (format!("/{zxid:08}"), row(zxid), number(zxid))).collect();
        expected.push(("/latest".to_owned(), row(found), number(found)));
        assert!(
            snapshot.nodes == expected,
            "round {round}: some row of the {found} batches is not as committed"
        );
        total = found;
    }
}

#[test]
fn a_directory_is_refused_while_another_process_has_it_and_free_after_its_death() {
    if let Some(dir) = std::env::var_os(CHILD) {
        commit_for_ever(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    let test = "a_directory_is_refused_while_another_process_has_it_and_free_after_its_death";
    let mut committer = Committer::start(test, dir.path());
    committer.acknowledged().expect("it starts");
    let error = Disk::open(dir.path()).unwrap_err();
    let StoreError::Locked { dir: named, holder } = &error else { panic!("{error}") };
    assert_eq!((named.as_path(), *holder), (dir.path(), Some(committer.child.id())));
    assert!(error.to_string().contains(&dir.path().display().to_string()), "{error}");
    committer.kill();
    Disk::open(dir.path()).unwrap();
}
