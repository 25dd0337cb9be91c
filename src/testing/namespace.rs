//! An empty namespace, created once per process: each cluster starts with a copy of it.

use std::sync::{Arc, Mutex, PoisonError};

use bellwether_keeper::server::Keeper;
use bellwether_keeper::store::{Changes, Memory, Reader, Snapshot, Status, Store, StoreError};
use tokio::runtime::Builder;
use tokio::sync::OnceCell;

use super::cluster::{CHROOT, ClusterError, SOON, keeper};
use crate::client::Client;

/// Returns a store with an empty namespace of thousands of znodes.
pub(super) async fn stored() -> Result<Memory, ClusterError> {
    static EMPTY: OnceCell<Memory> = OnceCell::const_new();
    // The creation uses its own runtime, so it leaves no task in the runtime of the caller.
    let create = || async { tokio::task::spawn_blocking(create).await.map_err(keeper)? };
    EMPTY.get_or_try_init(create).await.cloned()
}

fn create() -> Result<Memory, ClusterError> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let store = Shared::default();
    runtime.block_on(async {
        let server = Keeper::builder().store(store.clone()).start().await.map_err(keeper)?;
        let address = format!("{}{CHROOT}", server.connect_string());
        let client = Client::builder(&address).deadline(SOON).create_namespace(true).connect().await?;
        client.close().await;
        server.stop().await.map_err(keeper)
    })?;
    Ok(store.memory(|memory| memory.clone()))
}

/// A store that can be read after its server has stopped. Until then only the thread of the server uses it.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Memory>>);

impl Shared {
    fn memory<T>(&self, with: impl FnOnce(&mut Memory) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store for Shared {
    fn load(&mut self) -> Result<Snapshot, StoreError> {
        self.memory(Memory::load)
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        self.memory(|memory| memory.commit(changes))
    }

    fn reader(&mut self) -> Result<Box<dyn Reader>, StoreError> {
        self.memory(Memory::reader)
    }

    fn status(&self) -> Status {
        self.memory(|memory| memory.status())
    }
}
