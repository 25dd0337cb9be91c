//! Tests of a data directory on a real file system.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use super::{batch, deleted, put, row, session};
use crate::store::{Change, Disk, Snapshot, Store as _, StoreError, restore};

#[test]
fn a_new_store_is_empty_and_a_closed_one_can_be_reopened() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("a/b");
    let mut store = Disk::open(&dir).unwrap();
    assert_eq!(store.load().unwrap(), Snapshot::default());
    let rows = [put("/a", 3, b"x"), Change::PutSession(-8, session(4_000))];
    store.commit(&batch(5, rows)).unwrap();
    let null = Change::PutNode { path: "/null".into(), row: row(0), data: None, data_changed: true };
    store.commit(&batch(6, [null])).unwrap();
    let expected = Snapshot {
        zxid: 6,
        nodes: vec![("/a".into(), row(3), Some(b"x".as_slice().into())), ("/null".into(), row(0), None)],
        sessions: vec![(-8, session(4_000))],
    };
    assert_eq!(store.load().unwrap(), expected);
    drop(store);
    assert_eq!(Disk::open(&dir).unwrap().load().unwrap(), expected);
}

#[test]
fn deletions_remove_rows_and_a_batch_without_rows_advances_the_zxid() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Disk::open(dir.path()).unwrap();
    let begin = [put("/a", 0, b"x"), put("/long", 0, &[7; 5_000]), Change::PutSession(1, session(1))];
    store.commit(&batch(1, begin)).unwrap();
    drop(store);
    let mut store = Disk::open(dir.path()).unwrap();
    let ends = ["/a", "/long"].map(deleted);
    store.commit(&batch(2, ends.into_iter().chain([Change::DeleteSession(1)]))).unwrap();
    store.commit(&batch(3, [])).unwrap();
    assert_eq!(store.load().unwrap(), Snapshot { zxid: 3, ..Snapshot::default() });
    assert_eq!(store.status().commits, 2, "since the start");
}

#[test]
fn data_can_change_between_short_and_long_and_is_kept_when_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Disk::open(dir.path()).unwrap();
    let long: Arc<[u8]> = [7; 5_000].into();
    let data = |store: &mut Disk| store.load().unwrap().nodes[0].2.clone();
    for (zxid, now) in [(1, b"x".as_slice()), (2, &long), (3, b"y"), (4, &long)] {
        store.commit(&batch(zxid, [put("/a", 0, now)])).unwrap();
        assert_eq!(data(&mut store).as_deref(), Some(now));
    }
    let touched = Change::PutNode {
        path: "/a".into(),
        row: row(5),
        data: Some(Arc::clone(&long)),
        data_changed: false,
    };
    store.commit(&batch(5, [touched])).unwrap();
    assert_eq!(data(&mut store), Some(long));
    assert_eq!(store.load().unwrap().nodes[0].1, row(5));
}

#[test]
fn a_created_directory_is_accessible_to_its_user_only() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("data");
    let _store = Disk::open(&dir).unwrap();
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(dir.join("keeper.redb")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_second_store_on_a_directory_is_rejected_until_the_first_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let first = Disk::open(dir.path()).unwrap();
    let error = Disk::open(dir.path()).unwrap_err();
    assert!(
        matches!(error, StoreError::Locked { holder: Some(pid), .. } if pid == std::process::id()),
        "{error}"
    );
    assert!(error.to_string().contains(&dir.path().display().to_string()), "{error}");
    drop(first);
    Disk::open(dir.path()).unwrap();
}

#[test]
fn a_backup_contains_the_commit_at_its_start_and_can_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Disk::open(&dir.path().join("data")).unwrap();
    let rows = [put("/a", 3, b"x"), Change::PutSession(-8, session(4_000))];
    store.commit(&batch(5, rows)).unwrap();
    let expected = store.load().unwrap();
    let reader = store.reader().unwrap();
    store.commit(&batch(6, [put("/later", 0, b"y")])).unwrap();

    let file = dir.path().join("backup");
    let backup = std::thread::spawn({
        let file = file.clone();
        move || reader.backup(&file)
    });
    let backup = backup.join().unwrap().unwrap();
    assert_eq!((backup.zxid, backup.nodes), (5, 1));
    assert_eq!(backup.bytes, fs::metadata(&file).unwrap().len());

    let restored = dir.path().join("restored");
    restore(&file, &restored).unwrap();
    assert_eq!(Disk::open(&restored).unwrap().load().unwrap(), expected);
}
