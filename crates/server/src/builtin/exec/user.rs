//! The user of the programs: `--exec-user`.
//!
//! A program of the node's own user can read the node's files, such as the password of ZooKeeper, and send it signals. With
//! another user it cannot. The guard of the process group has the same user, because it kills the group when the node ends.
//!
//! The node must be root or have the capabilities SETUID, SETGID and KILL. [`ExecUser::check`] starts a program to make sure that
//! the change of the user works and that no group and no capability of the node is left.

use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::kill;
use nix::unistd::{Pid, User, geteuid};
use tokio::process::Command;

/// The user that programs run as.
#[derive(Debug, Clone)]
pub struct ExecUser {
    name: String,
    uid: u32,
    gid: u32,
    home: PathBuf,
}

/// The reason why programs cannot run as a user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecUserError {
    /// The system does not know the user.
    #[error("there is no user {0:?} on this machine")]
    Unknown(String),
    /// The list of users could not be read.
    #[error("cannot look up the user {name:?}")]
    Lookup {
        /// The name.
        name: String,
        /// The error of the system.
        source: nix::Error,
    },
    /// The user is root, or in its group.
    #[error("programs must not run as root or in its group: give a user of their own")]
    Root,
    /// The user is that of the node.
    #[error("{0:?} is the user of the node itself, which separates nothing: give another user")]
    Own(String),
    /// The node may not change the user of its programs.
    #[error(
        "this node cannot run programs as {name:?}: {reason}; start it as root, or with the capabilities CAP_SETUID, \
         CAP_SETGID and CAP_KILL"
    )]
    NotPermitted {
        /// The name.
        name: String,
        /// What failed.
        reason: String,
    },
}

impl ExecUser {
    /// Looks up a user by name.
    ///
    /// # Errors
    /// There is no such user, or it would not separate the programs from the node.
    pub fn find(name: &str) -> Result<Self, ExecUserError> {
        let found = User::from_name(name)
            .map_err(|source| ExecUserError::Lookup { name: name.to_owned(), source })?
            .ok_or_else(|| ExecUserError::Unknown(name.to_owned()))?;
        if found.uid.is_root() || found.gid.as_raw() == 0 {
            return Err(ExecUserError::Root);
        }
        if found.uid == geteuid() {
            return Err(ExecUserError::Own(found.name));
        }
        let (uid, gid) = (found.uid.as_raw(), found.gid.as_raw());
        Ok(Self { name: found.name, uid, gid, home: found.dir })
    }

    /// Starts a program as the user, and checks which identity it has and that this process may end it.
    ///
    /// # Errors
    /// This process may not change users, or the program keeps a part of its identity.
    pub async fn check(&self) -> Result<(), ExecUserError> {
        let refused = |reason: String| ExecUserError::NotPermitted { name: self.name.clone(), reason };
        let mut probe = Command::new("/bin/cat");
        // It prints its status and lives until its input ends.
        probe.args(["/proc/self/status", "-"]).env_clear().current_dir("/").kill_on_drop(true);
        probe.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let probe = self.apply(&mut probe).spawn().map_err(|error| refused(error.to_string()))?;
        let id =
            probe.id().and_then(|id| i32::try_from(id).ok()).expect("a child that was not awaited has an id");
        kill(Pid::from_raw(id), None).map_err(|error| refused(format!("it cannot end them: {error}")))?;
        let output = probe.wait_with_output().await.map_err(|error| refused(error.to_string()))?;
        match self.leftover(&String::from_utf8_lossy(&output.stdout)) {
            None => Ok(()),
            Some(line) => Err(refused(format!("they would have {line:?}"))),
        }
    }

    /// Returns the line of a process status that is not of this user alone.
    fn leftover(&self, status: &str) -> Option<String> {
        let ids = |id: u32| vec![id.to_string(); 4].join(" ");
        let none = "0".repeat(16);
        let expected = [
            ("Uid:", ids(self.uid)),
            ("Gid:", ids(self.gid)),
            ("Groups:", String::new()),
            ("CapPrm:", none.clone()),
            ("CapEff:", none.clone()),
            ("CapAmb:", none),
        ];
        expected.into_iter().find_map(|(key, expected)| {
            let value = status.lines().find_map(|line| line.strip_prefix(key));
            let value = value.map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "));
            (value.as_ref() != Some(&expected)).then(|| format!("{key} {}", value.unwrap_or_default()))
        })
    }

    /// Makes a command run as this user, with its group and without others.
    pub(super) fn apply<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        // The standard library removes all supplementary groups before it changes the user.
        command.uid(self.uid).gid(self.gid).env("HOME", &self.home)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_with_a_group_or_capability_of_the_node_is_found() {
        let user = ExecUser { name: "x".into(), uid: 7, gid: 8, home: "/".into() };
        let clean = "Uid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nGroups:\t \nCapInh:\t00000000000000e0\n\
                     CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n";
        assert_eq!(user.leftover(clean), None);
        for (line, dirty) in [
            ("Uid:\t7\t7\t7\t7", "Uid:\t7\t7\t0\t7"),
            ("Gid:\t8", "Gid:\t0"),
            ("Groups:\t ", "Groups:\t27 "),
            ("CapEff:\t00000000", "CapEff:\t00000080"),
            ("CapAmb:", "CapXyz:"),
        ] {
            let status = clean.replacen(line, dirty, 1);
            assert_ne!(status, clean);
            assert!(user.leftover(&status).is_some(), "{dirty}");
        }
    }

    #[test]
    fn only_another_user_without_privileges_is_accepted() {
        assert!(matches!(ExecUser::find("no such user"), Err(ExecUserError::Unknown(_))));
        assert!(matches!(ExecUser::find("root"), Err(ExecUserError::Root)));
    }
}
