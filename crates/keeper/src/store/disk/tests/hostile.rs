//! Files that are damaged, foreign, or written by another version.

use std::fs;

use fastrand::Rng;
use redb::{Database, TableDefinition};

use super::device::Device;
use super::{SMALL, batch, put, session};
use crate::store::{Change, Disk, Snapshot, Store as _, StoreError, restore};

fn filled(device: &Device) -> Snapshot {
    let mut store = Disk::on(device.clone(), SMALL).expect("the start has no faults");
    for zxid in 1..20 {
        let rows = (0..10).map(|n| put(&format!("/{zxid}/{n}"), n, &[7; 900]));
        store
            .commit(&batch(zxid, rows.chain([Change::PutSession(zxid, session(5))])))
            .expect("the disk has no faults");
    }
    store.load().expect("the disk has no faults")
}

#[test]
fn a_damaged_page_is_rejected_or_unused() {
    let device = Device::new();
    let whole = filled(&device);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut refused = 0;
    for _ in 0..150 {
        let damaged = device.copied();
        let at = random.usize(..damaged.length());
        damaged.flip(at, 1 << random.u8(..8));
        match Disk::on(damaged, SMALL).and_then(|mut store| store.load()) {
            Ok(found) => assert!(found == whole, "byte {at} changed what is read"),
            Err(StoreError::Corrupt { .. } | StoreError::Foreign { .. }) => refused += 1,
            Err(error) => panic!("byte {at} was reported as {error:?}"),
        }
    }
    assert!(refused > 0);
}

/// Writes a row directly into the file of a store.
fn tamper(file: &std::path::Path, table: &str, key: &[u8], value: &[u8]) {
    let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(table);
    let database = Database::open(file).expect("the file is not in use");
    let transaction = database.begin_write().expect("the file is not in use");
    transaction
        .open_table(definition)
        .expect("the table exists")
        .insert(key, value)
        .expect("the table is writable");
    transaction.commit().expect("the file is writable");
}

fn closed_store(dir: &std::path::Path) -> std::path::PathBuf {
    let mut store = Disk::open(dir).expect("a new directory");
    store.commit(&batch(1, [put("/a", 1, b"x")])).expect("a healthy disk");
    drop(store);
    // Opening folds the waiting batches, so that they do not overwrite the rows written by a test.
    drop(Disk::open(dir).expect("the file is valid"));
    dir.join("keeper.redb")
}

#[test]
fn another_format_is_rejected_with_both_versions() {
    let dir = tempfile::tempdir().unwrap();
    let file = closed_store(dir.path());
    for other in [1_u32, 2, 7] {
        tamper(&file, "keeper.meta", b"format", &other.to_le_bytes());
        let error = Disk::open(dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::Format { known: 3, .. }), "{error}");
        let both = format!("version {other}; this program reads version 3");
        assert!(error.to_string().contains(&both), "{error}");
    }
}

/// A row with separate data, and one without data. The transaction 0 created both.
const APART: &[u8] = &[2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const SHORT: &[u8] = &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn key(czxid: i64, path: &[u8]) -> Vec<u8> {
    [&czxid.to_be_bytes(), path].concat()
}

#[test]
fn an_invalid_row_is_named() {
    for (table, key, value, named) in [
        ("keeper.nodes", key(0, b"/bad"), b"\x02\x00".as_slice(), "node \"/bad\""),
        ("keeper.nodes", key(0, b"/new"), b"\x63", "node \"/new\""),
        ("keeper.nodes", key(0, b"/\xff"), b"\x02", "node \"/\u{fffd}\""),
        ("keeper.nodes", key(0, b"relative"), b"\x02", "node \"relative\""),
        ("keeper.nodes", b"/short".to_vec(), b"\x02", "node \"/short\""),
        ("keeper.nodes", key(9, b"/0"), SHORT, "node \"/0\""),
        ("keeper.nodes", key(0, b"/0"), APART, "node \"/0\""),
        ("keeper.data", key(0x10, b"/a"), b"of a znode whose data is short", "data \"/a\""),
        ("keeper.data", key(0, b"/0"), b"before every znode", "data \"/0\""),
        ("keeper.data", key(0x10, b"/b"), b"behind every znode", "data \"/b\""),
        ("keeper.meta", b"zxid".to_vec(), b"short", "meta zxid"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        tamper(&closed_store(dir.path()), table, &key, value);
        let error = Disk::open(dir.path()).unwrap().load().unwrap_err();
        assert!(
            matches!(&error, StoreError::Corrupt { row, .. } if row == named),
            "{error} instead of {named}"
        );
    }
}

#[test]
fn a_waiting_batch_with_a_missing_part_is_rejected() {
    for (missing, named) in [(0, 1), (1, 2)] {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Disk::open(dir.path()).expect("a new directory");
        store.commit(&batch(1, [put("/a", 1, &[2; 100_000])])).expect("a healthy disk");
        drop(store);
        let database = Database::open(dir.path().join("keeper.redb")).expect("the file is not in use");
        let transaction = database.begin_write().unwrap();
        let waiting = TableDefinition::<u64, &[u8]>::new("keeper.waiting");
        assert!(transaction.open_table(waiting).unwrap().remove(missing).unwrap().is_some());
        transaction.commit().unwrap();
        drop(database);
        let named = format!("part {named:#x} of a waiting batch");
        let error = Disk::open(dir.path()).unwrap_err();
        assert!(
            matches!(&error, StoreError::Corrupt { row, .. } if *row == named),
            "{error} instead of {named}"
        );
    }
}

#[test]
fn foreign_files_are_rejected_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keeper.redb");
    for foreign in [b"".as_slice(), b"not a database", &[0; 5_000]] {
        fs::write(&file, foreign).unwrap();
        let error = Disk::open(dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
        assert_eq!(fs::read(&file).unwrap(), foreign);
    }
    fs::remove_file(&file).unwrap();
    drop(Database::create(&file).unwrap());
    assert!(matches!(Disk::open(dir.path()).unwrap_err(), StoreError::Foreign { .. }));

    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("version-2")).unwrap();
    assert!(matches!(Disk::open(dir.path()).unwrap_err(), StoreError::Foreign { .. }));

    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(matches!(Disk::open(file.path()).unwrap_err(), StoreError::Io { .. }));
}

#[test]
fn restore_into_a_directory_in_use_is_rejected() {
    let parent = tempfile::tempdir().unwrap();
    let backup = parent.path().join("backup");
    let dir = parent.path().join("data");
    let mut store = Disk::open(&dir).unwrap();
    store.reader().unwrap().backup(&backup).unwrap();
    assert!(matches!(store.reader().unwrap().backup(&backup).unwrap_err(), StoreError::Exists { .. }));
    assert!(matches!(restore(&backup, &dir).unwrap_err(), StoreError::Locked { .. }));
    drop(store);
    assert!(matches!(restore(&backup, &dir).unwrap_err(), StoreError::Exists { .. }));
}

#[test]
fn a_damaged_backup_restores_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let backup = parent.path().join("backup");
    let mut store = Disk::open(&parent.path().join("data")).unwrap();
    store.commit(&batch(1, [put("/a", 1, &[1; 50_000])])).unwrap();
    store.reader().unwrap().backup(&backup).unwrap();
    let whole = fs::read(&backup).unwrap();
    let target = parent.path().join("restored");

    let mut damaged = whole.clone();
    let at = damaged.windows(64).position(|bytes| bytes == [1; 64]).unwrap();
    damaged[at] ^= 1;
    for bytes in [&damaged, &whole[..whole.len() / 2], b"nonsense"] {
        fs::write(&backup, bytes).unwrap();
        let error = restore(&backup, &target).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. } | StoreError::Foreign { .. }), "{error}");
        assert!(error.to_string().contains(&backup.display().to_string()), "{error}");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 1, "only the lock file");
    }
    fs::write(&backup, &whole).unwrap();
    assert_eq!(restore(&backup, &target).unwrap().zxid, 1);
}
