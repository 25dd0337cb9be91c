//! The default id of a node.

/// The name of this machine.
pub(crate) fn host_name() -> String {
    nix::unistd::gethostname().map_or_else(|_| "localhost".into(), |name| name.to_string_lossy().into_owned())
}

/// Returns the default id of a node: the host name and the process id.
#[must_use]
pub fn default_id() -> String {
    format!("{}-{}", name_from(&host_name()), std::process::id())
}

/// Replaces the characters of a host name that a node id may not contain.
fn name_from(host: &str) -> String {
    host.chars().take(64).map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}
