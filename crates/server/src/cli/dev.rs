//! `bellwether dev`: a keeper and a node in one process.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::exit::Failure;
use super::output::{Format, Output};
use super::{Global, keeper, node};
use serde::Serialize;

/// The namespace of the development server.
const CHROOT: &str = "/bellwether";

#[derive(Debug, Args)]
#[command(mut_arg("roles", |roles| roles.default_value("candidate,worker,gateway")))]
pub(crate) struct Dev {
    /// Address of the keeper [default: 127.0.0.1:2181, or any free port if that is in use]. An address that other machines
    /// can reach requires --insecure.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Store the data in this directory; without it, the data is lost at the end.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    // Boxed, so that this command is not much larger than the others.
    #[command(flatten, next_help_heading = "Keeper options")]
    keeper: Box<keeper::Options>,
    #[command(flatten, next_help_heading = "Node options")]
    pub(super) node: node::Node,
}

impl Dev {
    /// Whether only this machine reaches the keeper, and its data ends with the process. Then it is no risk that anyone may
    /// change the namespace.
    pub(super) fn is_private(&self) -> bool {
        self.data_dir.is_none() && self.listen.is_none_or(|address| address.ip().to_canonical().is_loopback())
    }
}

#[cfg(feature = "otel")]
impl Dev {
    pub(super) fn node_id(&self) -> Option<&bellwether::NodeId> {
        self.node.node_id.as_ref()
    }
}

/// What a program that starts it needs to know.
#[derive(Serialize)]
struct Started<'a> {
    zookeeper: &'a str,
    metrics: Option<SocketAddr>,
    http: Option<SocketAddr>,
}

pub(crate) async fn run(global: &Global, output: Output, dev: Dev) -> Result<(), Failure> {
    let access = global.access.access()?;
    let keeper = {
        // --insecure of the node, which is also that of the process.
        let protection =
            keeper::Protection { insecure: dev.node.gateway.insecure, ..keeper::Protection::default() };
        keeper::start(dev.listen, dev.data_dir.as_deref(), &dev.keeper, &protection).await?
    };
    let zookeeper = format!("{}{CHROOT}", keeper.connect_string());
    let is_private = dev.is_private();
    let mut node = dev.node;
    node.gateway.any_port = node.gateway.http_listen.is_none();
    node.gateway.open_namespace = is_private;
    let node = node::start(&zookeeper, access, node).await?;
    let (http, metrics) = (node.http(), node.metrics());
    match output.format {
        Format::Json => output.json(&Started { zookeeper: &zookeeper, metrics, http })?,
        Format::Table => output.text(&greeting(&zookeeper, (metrics, http), dev.data_dir.as_deref()))?,
    }
    tokio::select! {
        ended = node::ended(node) => ended?,
        stopped = keeper.stopped() => return Err(stopped),
    }
    keeper.stop().await
}

fn greeting(
    zookeeper: &str,
    (metrics, http): (Option<SocketAddr>, Option<SocketAddr>),
    data: Option<&std::path::Path>,
) -> String {
    let console = http.map_or("none (the role gateway enables it)".to_owned(), |at| format!("http://{at}/"));
    let api = http.map_or(String::new(), |at| format!("  HTTP API   http://{at}/docs/\n"));
    let metrics = metrics
        .map_or("none (--metrics-listen enables them)".to_owned(), |at| format!("http://{at}/metrics"));
    let data = data.map_or("in memory, lost at the end (--data-dir keeps it)".to_owned(), |dir| {
        dir.display().to_string()
    });
    // The command by the name of its call, so that the printed line can be pasted.
    let command = std::env::args().next().unwrap_or_else(|| "bellwether".to_owned());
    format!(
        "Bellwether for development: one keeper, one node, no failover.\n\
         \n  Console    {console}\n{api}  ZooKeeper  {zookeeper}\n  metrics    {metrics}\n  data       {data}\n\
         \nTry in another terminal:\n\
         \n  export BELLWETHER_ZOOKEEPER={zookeeper}\
         \n  {command} job submit sum '{{\"first\": 1, \"second\": 2}}' --wait\n\
         \nPress Ctrl-C to stop."
    )
}
