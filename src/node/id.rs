//! What a node is called that nobody named.

pub(super) fn host_name() -> String {
    nix::unistd::gethostname().map_or_else(|_| "localhost".into(), |name| name.to_string_lossy().into_owned())
}

/// What a node is called to which nobody gave an id.
#[must_use]
pub fn default_id() -> String {
    format!("{}-{}", name_from(&host_name()), std::process::id())
}

/// A host's name with what a node id may not have replaced.
fn name_from(host: &str) -> String {
    host.chars().take(64).map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}
