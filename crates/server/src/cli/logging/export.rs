//! Traces for a collector, in builds with the feature `otel`.

#[cfg(feature = "otel")]
pub(crate) use with::Exporter;
#[cfg(feature = "otel")]
pub(super) use with::start;
#[cfg(not(feature = "otel"))]
pub(crate) use without::Exporter;
#[cfg(not(feature = "otel"))]
pub(super) use without::start;

#[cfg(feature = "otel")]
mod with {
    use tokio::runtime::Handle;

    use crate::cli::exit::{Failure, chain};
    use crate::cli::{Command, Global};

    pub(crate) use crate::otel::Exporter;

    pub(in crate::cli::logging) fn start(
        global: &Global,
        command: &Command,
        runtime: &Handle,
    ) -> Result<Option<Exporter>, Failure> {
        let named = match command {
            Command::Node(node) => node.node_id.as_ref(),
            Command::Dev(dev) => dev.node_id(),
            // These commands have no node id.
            Command::Job(_)
            | Command::Kind(_)
            | Command::Group(_)
            | Command::Lane(_)
            | Command::Worker(_)
            | Command::Leader(_)
            | Command::Retention(_)
            | Command::Placement(_)
            | Command::Schedule(_)
            | Command::Access(_)
            | Command::Token(_)
            | Command::Config(_)
            | Command::Completions(_)
            | Command::InstallFiles(_)
            | Command::Keeper(_)
            | Command::Top(_)
            | Command::Demo(_)
            | Command::Bench(_) => None,
        };
        let name = named.map_or_else(bellwether::node::default_id, ToString::to_string);
        let endpoint = global.otlp_endpoint.as_deref();
        Exporter::start(endpoint, &name, runtime.clone()).map_err(|error| Failure::usage(chain(&error)))
    }
}

#[cfg(not(feature = "otel"))]
mod without {
    use tokio::runtime::Handle;
    use tracing_subscriber::layer::Identity;

    use crate::cli::exit::Failure;
    use crate::cli::{Command, Global};

    /// This build has no exporter.
    #[derive(Debug)]
    pub(crate) enum Exporter {}

    impl Exporter {
        pub(in crate::cli::logging) fn layer(&self) -> Identity {
            match *self {}
        }

        pub(crate) fn stop(self) {
            match self {}
        }
    }

    /// OpenTelemetry's own variables are meant for all programs, so this build ignores them. An explicit endpoint is
    /// an error.
    pub(in crate::cli::logging) fn start(
        global: &Global,
        _: &Command,
        _: &Handle,
    ) -> Result<Option<Exporter>, Failure> {
        match &global.otlp_endpoint {
            None => Ok(None),
            Some(_) => Err(Failure::usage(
                "otlp_endpoint is set, but this build exports no traces: build it with --features otel, or unset it",
            )),
        }
    }
}
