//! Reads the files of tokens, keys and certificates again while they are in use.
//!
//! A file that cannot be used changes nothing: the old tokens and the old certificate stay in use, and one warning is logged.
//! Requests and streams that have begun continue with the old ones.

use std::time::Duration;

use bellwether::error::chain;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::access::{Jwt, Tokens};
use super::exposure::Protection;
use super::server::Phase;
use super::tls::LoadedTls;

/// Reading a few kilobytes this often costs less than the watch of a file system, which misses what a mounted volume does.
const EVERY: Duration = Duration::from_secs(5);

/// Starts to read the files again until the listener stops.
pub(super) fn start(protection: &Protection, tls: Option<LoadedTls>, mut phase: watch::Receiver<Phase>) {
    let Protection { tokens, jwt, tls: _, insecure: _ } = protection.clone();
    if tokens.is_none() && jwt.is_none() && tls.is_none() {
        return;
    }
    let files = [
        tokens.as_ref().map_or_else(String::new, Tokens::path),
        jwt.as_ref().map_or_else(String::new, Jwt::path),
        tls.as_ref().map_or_else(String::new, LoadedTls::paths),
    ];
    tokio::spawn(async move {
        let mut last: [Option<String>; 3] = [None, None, None];
        loop {
            tokio::select! {
                () = sleep(EVERY) => {}
                // An error means that the listener was dropped.
                _ = phase.wait_for(|phase| *phase > Phase::Serving) => return,
            }
            let (tokens, jwt, tls) = (tokens.clone(), jwt.clone(), tls.clone());
            let read = spawn_blocking(move || {
                [
                    tokens.map_or(Ok(false), |tokens| tokens.reload().map_err(|error| chain(&error))),
                    jwt.map_or(Ok(false), |jwt| jwt.reload().map_err(|error| chain(&error))),
                    tls.map_or(Ok(false), |tls| tls.reload().map_err(|error| chain(&error))),
                ]
            });
            let Ok(read) = read.await else { continue };
            for ((file, read), last) in files.iter().zip(read).zip(&mut last) {
                match &read {
                    Ok(true) => tracing::info!(file, "the gateway reloaded the file"),
                    Ok(false) => {}
                    Err(reason) if last.as_ref() != Some(reason) => {
                        tracing::warn!(
                            file,
                            reason,
                            "the gateway cannot reload the file and keeps the old content"
                        );
                    }
                    Err(_) => {}
                }
                *last = read.err();
            }
        }
    });
}
