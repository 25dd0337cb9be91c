//! Power losses and full disks at any step: acknowledged batches are kept, and no batch is kept in part.
//!
//! Each case is a sequence of runs of one store on one simulated disk. The reference is [`Memory`]: after a crash
//! within a commit, the file must contain the state before or after the batch.

use std::sync::Arc;

use fastrand::Rng;

use super::super::waiting::Sizes;
use super::device::Device;
use super::{SMALL, batch, deleted, put, row, session};
use crate::store::{Change, Changes, Disk, Memory, Store as _, StoreError};

/// Cases per test; a failing case prints its seed.
const CASES: u64 = 100;
/// Enough to interrupt the recovery of an interrupted recovery.
const LIVES: usize = 6;

/// Runs cases with different seeds in each run; `KEEPER_SEED` repeats one case.
fn cases(case: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let named = std::env::var("KEEPER_SEED").ok().map(|seed| seed.parse().expect("KEEPER_SEED is a number"));
    let seeds: Vec<u64> = named.map_or_else(
        || {
            (0..CASES / 2)
                .chain(std::iter::repeat_with(|| fastrand::u64(..)).take(CASES as usize / 2))
                .collect()
        },
        |seed| vec![seed],
    );
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| case(seed)) {
            eprintln!("failed with KEEPER_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Returns random sizes: from one checkpoint per batch to none at all, in many parts or in one, with batches of many
/// parts or of one.
fn any_sizes(random: &mut Rng) -> Sizes {
    Sizes {
        fold: [0, 5_000, 50_000, Sizes::USUAL.fold][random.usize(..4)],
        run: [0, 2_000, Sizes::USUAL.run][random.usize(..3)],
        stride: [0, 1_000, Sizes::USUAL.stride][random.usize(..3)],
        tidy: [1, 3_000, Sizes::USUAL.tidy][random.usize(..3)],
        part: [1_000, 10_000, Sizes::USUAL.part][random.usize(..3)],
    }
}

fn any_batch(random: &mut Rng, zxid: i64, acknowledged: &Memory) -> Changes {
    any_batch_of(random, 20, zxid, acknowledged)
}

/// Returns a batch of fewer than `most` changes.
fn any_batch_of(random: &mut Rng, most: usize, zxid: i64, acknowledged: &Memory) -> Changes {
    let mut after = acknowledged.clone();
    let mut rows = Vec::new();
    for _ in 0..random.usize(..most) {
        let change = any_change(random, &after);
        after.commit(&Changes { zxid, rows: vec![change.clone()] }).expect("memory does not fail");
        rows.push(change);
    }
    Changes { zxid, rows }
}

fn any_change(random: &mut Rng, before: &Memory) -> Change {
    let path: Arc<str> = format!("/{}/{}", random.u8(..4), random.u8(..20)).into();
    match random.u8(..10) {
        choice @ 0..7 => {
            // Some rows need their own pages.
            let length = if random.u8(..8) == 0 { random.usize(..20_000) } else { random.usize(..300) };
            let (data, data_changed) = match before.data(&path).filter(|_| choice >= 4) {
                Some(known) => (known, false),
                None if random.u8(..10) == 0 => (None, true),
                None => (Some(vec![random.u8(..); length].into()), true),
            };
            Change::PutNode { path, row: row(random.i32(..)), data, data_changed }
        }
        7 => Change::DeleteNode { czxid: row(0).czxid, path },
        8 => Change::PutSession(random.i64(..5), session(random.i32(..))),
        _ => Change::DeleteSession(random.i64(..5)),
    }
}

/// Opens a store on the device, with any number of power losses during the recovery.
fn reopened(device: &Device, random: &mut Rng, sizes: Sizes) -> Disk {
    loop {
        if random.bool() {
            device.light_fuse(random.u64(..20));
        }
        match Disk::on(device.clone(), sizes) {
            Ok(store) => return store,
            Err(StoreError::Io { .. } | StoreError::Database { .. }) => device.power_cycle(random),
            Err(error) => {
                panic!(
                    "a crash was reported as a corruption: {error} {:?}",
                    std::error::Error::source(&error)
                )
            }
        }
    }
}

/// Checks that the store contains `acknowledged` or `attempted`; returns the one that matches.
fn matched(store: &mut Disk, acknowledged: Memory, attempted: Memory) -> Result<Memory, StoreError> {
    let found = store.load()?;
    for mut model in [acknowledged, attempted] {
        if model.load()? == found {
            return Ok(model);
        }
    }
    panic!(
        "the file contains neither the state before the crash nor the state after it: zxid {}",
        found.zxid
    );
}

#[test]
fn a_power_loss_keeps_acknowledged_batches_and_no_partial_ones() {
    let crashes = std::sync::atomic::AtomicU64::new(0);
    cases(|seed| {
        let random = &mut Rng::with_seed(seed);
        let sizes = any_sizes(random);
        let device = Device::new();
        drop(Disk::on(device.clone(), sizes).expect("the first start has no faults"));
        let mut acknowledged = Memory::new();
        let mut attempted = Memory::new();
        let mut zxid = 0;
        for _ in 0..LIVES {
            let mut store = reopened(&device, random, sizes);
            let Ok(model) = matched(&mut store, acknowledged.clone(), attempted.clone()) else {
                // The power loss happened while the rows were read.
                drop(store);
                device.power_cycle(random);
                continue;
            };
            (acknowledged, attempted) = (model.clone(), model);
            device.light_fuse(random.u64(..120));
            for _ in 0..random.usize(1..12) {
                zxid += 1;
                let changes = any_batch(random, zxid, &acknowledged);
                attempted.commit(&changes).expect("memory does not fail");
                if store.commit(&changes).is_err() {
                    crashes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    assert!(matches!(store.commit(&changes), Err(StoreError::Failed { .. })));
                    break;
                }
                acknowledged = attempted.clone();
                if random.u8(..8) == 0 && store.reader().is_err() {
                    crashes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    break;
                }
                if random.u8(..4) == 0 && store.tidy().is_err() {
                    crashes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    assert!(matches!(store.tidy(), Err(StoreError::Failed { .. })));
                    break;
                }
            }
            // A kill keeps the kernel's state, a power loss the disk's state, and an orderly end closes the file.
            match random.u8(..3) {
                0 => drop(store),
                _ => {
                    device.light_fuse(0);
                    drop(store);
                }
            }
            device.power_cycle(random);
        }
    });
    assert!(
        crashes.into_inner() > 0 || std::env::var_os("KEEPER_SEED").is_some(),
        "no case crashed in a commit"
    );
}

#[test]
fn a_full_disk_fails_the_batch_and_keeps_acknowledged_ones() {
    let failures = std::sync::atomic::AtomicU64::new(0);
    cases(|seed| {
        let random = &mut Rng::with_seed(seed);
        let sizes = any_sizes(random);
        let device = Device::new();
        let mut store = Disk::on(device.clone(), sizes).expect("the disk has space for the start");
        device.set_free_blocks(Some(random.usize(..60)));
        let mut acknowledged = Memory::new();
        let mut attempted = Memory::new();
        for zxid in 1..200 {
            let changes = any_batch(random, zxid, &acknowledged);
            attempted.commit(&changes).expect("memory does not fail");
            match store.commit(&changes) {
                Ok(()) => acknowledged = attempted.clone(),
                Err(StoreError::Full { .. }) => {
                    failures.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    assert!(matches!(store.commit(&changes), Err(StoreError::Failed { .. })));
                    break;
                }
                Err(error) => panic!("a full disk was reported as {error}"),
            }
        }
        drop(store);
        if random.bool() {
            device.power_cycle(random);
        }
        // While the disk is still full, opening succeeds or reports a full disk.
        match Disk::on(device.clone(), sizes) {
            Ok(mut store) => drop(matched(&mut store, acknowledged.clone(), attempted.clone())),
            Err(error) => assert!(matches!(error, StoreError::Full { .. }), "{error}"),
        }
        device.set_free_blocks(None);
        let mut store = Disk::on(device.clone(), sizes).expect("the disk has space again");
        matched(&mut store, acknowledged, attempted).expect("the disk has space again");
    });
    assert!(
        failures.into_inner() > 0 || std::env::var_os("KEEPER_SEED").is_some(),
        "no case filled the disk"
    );
}

#[test]
fn a_batch_is_durable_after_one_sync() {
    let device = Device::new();
    let mut store = Disk::on(device.clone(), Sizes::USUAL).unwrap();
    store.commit(&batch(1, [put("/a", 1, b"x")])).unwrap();
    device.light_fuse(0);
    drop(store);
    device.power_cycle(&mut Rng::with_seed(1));
    assert_eq!(Disk::on(device.clone(), Sizes::USUAL).unwrap().load().unwrap().zxid, 1);
    assert!(device.steps() > 0);
}

/// Returns a put with unchanged data.
fn touched(path: &str, version: i32, data: &[u8]) -> Change {
    Change::PutNode { path: path.into(), row: row(version), data: Some(data.into()), data_changed: false }
}

/// A kill between any two parts of a checkpoint, including those that remove batches, keeps all committed changes.
#[test]
fn a_checkpoint_can_be_interrupted_anywhere() {
    let device = Device::new();
    let sizes = Sizes { fold: 50_000, ..SMALL };
    let mut store = Disk::on(device.clone(), sizes).unwrap();
    let mut model = Memory::new();
    for changes in [
        batch(1, [put("/a", 1, &[1; 5_000]), put("/b", 1, b"1"), Change::PutSession(1, session(5))]),
        batch(2, [put("/a", 2, &[2; 6_000]), deleted("/b"), put("/c", 1, &[3; 4_000])]),
        batch(3, [put("/b", 3, &[4; 3_000]), put("/c", 2, b"short"), Change::DeleteSession(1)]),
        batch(4, [touched("/a", 3, &[2; 6_000])]),
    ] {
        model.commit(&changes).unwrap();
        store.commit(&changes).unwrap();
    }
    let committed = model.load().unwrap();
    let mut parts = 0;
    loop {
        let found = Disk::on(device.copied(), sizes).expect("the copy is valid").load().unwrap();
        assert_eq!(found, committed, "after {parts} parts");
        if !store.tidy().unwrap() {
            break;
        }
        parts += 1;
    }
    assert!(parts > 6, "{parts}");
}

/// As above, but between batches that each do a part of the checkpoint, while newer entries for the same rows wait.
/// Sometimes all waiting batches are folded in between, as for a backup.
#[test]
fn a_checkpoint_can_be_interrupted_while_newer_batches_wait() {
    let random = &mut Rng::with_seed(7);
    let device = Device::new();
    let sizes = Sizes { fold: 12_000, ..SMALL };
    let mut store = Disk::on(device.clone(), sizes).unwrap();
    let mut model = Memory::new();
    for zxid in 1..=150 {
        let changes = any_batch_of(random, 3, zxid, &model);
        model.commit(&changes).unwrap();
        store.commit(&changes).unwrap();
        let committed = model.load().unwrap();
        let found = Disk::on(device.copied(), sizes).expect("the copy is valid").load().unwrap();
        assert_eq!(found, committed, "found after {zxid}");
        if random.u8(..10) == 0 {
            assert_eq!(store.load().unwrap(), committed, "folded after {zxid}");
        }
    }
}
