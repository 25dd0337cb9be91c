//! A stand-alone keeper, for tools that need a ZooKeeper server.
//!
//! `keeper --listen 127.0.0.1:2181 (--data-dir DIR | --memory) [--compat 3.8.0] [--tick-ms N] [--super-digest U:H]
//! [--min-session-timeout-ms N] [--max-session-timeout-ms N]`
//!
//! With the feature `tls` also `--tls-cert FILE --tls-key FILE --tls-client-ca FILE`, all three or none,
//! for a port that accepts only TLS. Prints `listening on ADDRESS` when it accepts connections; stops on SIGINT or
//! SIGTERM.

use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::num::ParseIntError;
use std::process::ExitCode;
use std::time::Duration;

use bellwether_keeper::server::{Compat, Keeper, Storage};
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).with_writer(std::io::stderr).init();
    let served = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(serve()));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = error.to_string();
            let mut source = error.source();
            while let Some(deeper) = source {
                text = format!("{text}: {deeper}");
                source = deeper.source();
            }
            tracing::error!(error = text, "the keeper cannot serve clients");
            ExitCode::FAILURE
        }
    }
}

fn millis(text: &str) -> Result<Duration, ParseIntError> {
    text.parse().map(Duration::from_millis)
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let mut listen: SocketAddr = "127.0.0.1:2181".parse()?;
    let mut storage = None;
    let mut builder = Keeper::builder();
    #[cfg(feature = "tls")]
    let mut tls: [Option<std::path::PathBuf>; 3] = Default::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--memory" {
            storage = Some(Storage::Memory);
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--listen" => listen = value.parse()?,
            "--data-dir" => storage = Some(Storage::Directory(value.into())),
            "--tick-ms" => builder = builder.tick_time(millis(&value)?),
            "--min-session-timeout-ms" => builder = builder.min_session_timeout(millis(&value)?),
            "--max-session-timeout-ms" => builder = builder.max_session_timeout(millis(&value)?),
            "--super-digest" => builder = builder.super_digest(value),
            "--compat" => {
                builder = builder.compat(match value.as_str() {
                    "3.8.0" => Compat::V3_8_0,
                    "3.9" => Compat::V3_9,
                    _ => return Err(format!("unknown release {value}: 3.8.0 or 3.9").into()),
                });
            }
            #[cfg(feature = "tls")]
            "--tls-cert" => tls[0] = Some(value.into()),
            #[cfg(feature = "tls")]
            "--tls-key" => tls[1] = Some(value.into()),
            #[cfg(feature = "tls")]
            "--tls-client-ca" => tls[2] = Some(value.into()),
            _ => return Err(format!("unknown argument {name}").into()),
        }
    }
    let storage = storage.ok_or("set either --data-dir DIR or --memory")?;
    let builder = builder.listen(listen).store(storage);
    #[cfg(feature = "tls")]
    let builder = match tls {
        [Some(certificate), Some(key), Some(authority)] => {
            builder.tls(bellwether_keeper::server::Tls::new(certificate, key).client_ca(authority))
        }
        [None, None, None] => builder,
        _ => return Err("TLS needs --tls-cert, --tls-key and --tls-client-ca".into()),
    };
    let keeper = builder.start().await?;
    writeln!(std::io::stdout(), "listening on {}", keeper.address())?;

    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        stopped = keeper.wait() => stopped?,
        _ = terminate.recv() => keeper.stop().await?,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            keeper.stop().await?;
        }
    }
    Ok(())
}
