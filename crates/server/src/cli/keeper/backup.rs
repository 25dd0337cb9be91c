//! `bellwether keeper backup` and `restore`.

use std::path::{Path, PathBuf};

use bellwether_keeper::store::{self, Disk, Store as _, StoreError};
use serde::Serialize;

use super::admin::{self, Answer, Ask};
use crate::cli::exit::Failure;
use crate::cli::output::{Format, Output};

#[derive(Serialize)]
struct Copied<'a> {
    from: &'a Path,
    to: &'a Path,
    zxid: i64,
    nodes: u64,
    bytes: u64,
}

pub(super) async fn backup(output: Output, data_dir: PathBuf, to: PathBuf) -> Result<(), Failure> {
    // The keeper may have another working directory.
    let to =
        std::path::absolute(&to).map_err(|error| Failure::usage(format!("{}: {error}", to.display())))?;
    let (zxid, nodes, bytes) = match offline(&data_dir, &to) {
        Ok(copy) => (copy.zxid, copy.nodes, copy.bytes),
        Err(StoreError::Locked { .. }) => match admin::ask(&data_dir, &Ask::Backup(to.clone())).await {
            Ok(Answer::Copied { zxid, nodes, bytes }) => (zxid, nodes, bytes),
            Ok(Answer::Refused(why)) => return Err(Failure::failed(why)),
            Err(error) => {
                let dir = data_dir.display();
                return Err(Failure::failed(format!(
                    "the keeper that runs on {dir} does not answer: {error}"
                )));
            }
        },
        Err(error) => return Err(error.into()),
    };
    tell(output, Copied { from: &data_dir, to: &to, zxid, nodes, bytes })
}

/// Copies a directory that no keeper uses.
fn offline(data_dir: &Path, to: &Path) -> Result<store::Backup, StoreError> {
    if !data_dir.is_dir() {
        // Opening a missing directory would create it.
        let source = std::io::ErrorKind::NotFound.into();
        return Err(StoreError::Io {
            path: data_dir.to_owned(),
            doing: "opening the data directory",
            source,
        });
    }
    Disk::open(data_dir)?.reader()?.backup(to)
}

pub(super) fn restore(output: Output, data_dir: &Path, from: &Path) -> Result<(), Failure> {
    let copy = store::restore(from, data_dir)?;
    let (zxid, nodes, bytes) = (copy.zxid, copy.nodes, copy.bytes);
    tell(output, Copied { from, to: data_dir, zxid, nodes, bytes })
}

fn tell(output: Output, copied: Copied<'_>) -> Result<(), Failure> {
    match output.format {
        Format::Json => output.json(&copied),
        Format::Table => {
            let Copied { from, to, zxid, nodes, bytes } = copied;
            let (from, to) = (from.display(), to.display());
            output.text(&format!("{from} → {to}: {nodes} znodes, {bytes} bytes, up to zxid {zxid:#x}"))
        }
    }
}
