//! What the kernel lets other processes do with this one, and who runs it.

use nix::unistd::{Uid, User, gethostname};

use super::exit::Failure;

/// Returns `USER@HOST`. It is a note and no proof: the machine of the command decides both.
pub(super) fn user_and_host() -> String {
    let id = Uid::current();
    let user = User::from_uid(id).ok().flatten().map_or_else(|| id.to_string(), |user| user.name);
    let host = gethostname().map_or_else(|_| "localhost".into(), |host| host.to_string_lossy().into_owned());
    format!("{user}@{host}")
}

/// Keeps other processes of this user out of the memory and the environment of this one, which contain passwords and keys: the
/// process cannot be traced and leaves no core file.
pub(super) fn protect_memory() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "the process could not protect its memory from other processes of its user");
    }
}

/// Removes the capabilities that programs of another user would inherit. They belong to a thread, so it is done before the
/// process has a second one.
pub(super) fn drop_ambient_capabilities() -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    rustix::thread::clear_ambient_capability_set()
        .map_err(|error| Failure::failed(format!("cannot clear the ambient capabilities: {error}")))?;
    Ok(())
}
