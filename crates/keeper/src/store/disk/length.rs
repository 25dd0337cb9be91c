//! A file's length is durable before anything counts on it.
//!
//! redb grows its file and writes a header that names the new length, and syncs both at once. Within one sync a file
//! system may write the header first: a power loss then leaves a header that promises more than there is, and redb
//! 4.1 refuses such a file for good. (The power-loss test finds this within a few hundred cases.) Files grow rarely,
//! so a sync of its own costs nothing that can be measured.

use std::io;

use redb::StorageBackend;

/// A backend whose growth is synced at once.
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
        // A file that is longer than its header says is repaired: shrinking can wait for the next sync.
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
