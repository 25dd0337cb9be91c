//! A pseudo-terminal for a command, and the content of its screen.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bellwether_testkit::{eventually, eventually_some};
use nix::pty::{Winsize, openpty};
use vt100::Parser;

const SOON: Duration = Duration::from_secs(20);

fn size_of(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).unwrap()
}

/// A command on a pseudo-terminal; killed when dropped.
pub(crate) struct Terminal {
    child: Child,
    master: File,
    slave: File,
    screen: Arc<Mutex<Parser>>,
}

impl Terminal {
    /// `setsid` makes this the controlling terminal, so that the command is notified of a new size, and then executes
    /// the command.
    pub(crate) fn run(command: &Command, rows: u16, columns: u16) -> Self {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).unwrap();
        let (master, slave) = (File::from(pty.master), File::from(pty.slave));
        let mut setsid = Command::new("setsid");
        setsid.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => setsid.env(name, value),
                None => setsid.env_remove(name),
            };
        }
        let end = || Stdio::from(slave.try_clone().unwrap());
        let child = setsid.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let screen = Arc::new(Mutex::new(Parser::new(size_of(rows), size_of(columns), 0)));
        let (shown, mut from) = (Arc::clone(&screen), master.try_clone().unwrap());
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails when the other end is closed.
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                shown.lock().unwrap().process(&bytes[..count]);
            }
        });
        Self { child, master, slave, screen }
    }

    pub(crate) fn shown(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    pub(crate) fn is_in_use(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }

    pub(crate) async fn shows(&self, text: &str) {
        let seen = eventually(text, SOON, async || self.shown().contains(text));
        let seen = std::panic::AssertUnwindSafe(seen);
        if futures::FutureExt::catch_unwind(seen).await.is_err() {
            panic!("{text:?} is not on the screen:\n{}", self.shown());
        }
    }

    pub(crate) async fn shows_no_more(&self, text: &str) {
        eventually(&format!("{text} is no longer shown"), SOON, async || !self.shown().contains(text)).await;
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Changes the size; the kernel notifies the command.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.screen.lock().unwrap().screen_mut().set_size(size_of(rows), size_of(columns));
        self.stty(&["rows", &rows.to_string(), "cols", &columns.to_string()]);
    }

    /// Returns the settings of the terminal.
    pub(crate) fn settings(&self) -> String {
        self.stty(&["--all"])
    }

    fn stty(&self, arguments: &[&str]) -> String {
        let slave = Stdio::from(self.slave.try_clone().unwrap());
        let output = Command::new("stty").args(arguments).stdin(slave).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns its exit code.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        eventually_some("the command ends", SOON, async || self.child.try_wait().unwrap()).await.code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
