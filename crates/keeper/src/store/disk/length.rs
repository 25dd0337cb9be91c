//! Makes the length of a file durable before its use.
//!
//! redb grows its file, writes a header with the new length, and syncs both together. Within one sync a file system may
//! write the header first. A power loss then leaves a header with a length beyond the end of the file, and redb 4.1
//! permanently rejects such a file (the power-loss test finds this within a few hundred cases). Files rarely grow, so
//! an additional sync has no measurable cost.

use std::io;

use redb::StorageBackend;

/// A backend that syncs growth immediately.
#[derive(Debug)]
pub(super) struct SyncedGrowth<B>(pub(super) B);

impl<B: StorageBackend> StorageBackend for SyncedGrowth<B> {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let grows = length > self.0.len()?;
        self.0.set_len(length)?;
        // A file longer than its header says is repaired, so shrinking does not need a sync here.
        if grows { self.0.sync_data() } else { Ok(()) }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }
}
