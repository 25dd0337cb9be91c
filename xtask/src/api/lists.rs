//! What the check of the API allows, with the reasons.

use std::collections::BTreeSet;

/// The crates that programs depend on, and the crate that a program with it also has.
pub(super) const PUBLIC: [(&str, Option<&str>); 4] = [
    ("bellwether", None),
    ("bellwether_gateway", Some("bellwether")),
    ("bellwether_keeper", None),
    ("bellwether_overflow", Some("bellwether")),
];

/// The crates whose items `bellwether` re-exports. Programs do not depend on them.
pub(super) const PRIVATE: [&str; 5] =
    ["bellwether_core", "bellwether_zk", "bellwether_actors", "bellwether_host", "bellwether_remedy"];

/// A trait that programs must not be able to name, so that they cannot implement another one.
pub(super) const SEALED: &str = "bellwether::client::job::kind::sealed::Sealed";

/// Crates whose types may be part of the API, with the reason.
pub(super) const ALLOWED: [(&str, &str); 14] = [
    ("std", "the standard library"),
    ("core", "the standard library"),
    ("alloc", "the standard library"),
    ("serde", "payloads, results and documents are serialized"),
    ("serde_core", "the traits of serde are defined here"),
    ("serde_json", "an error keeps the decoding error as its source"),
    ("futures_core", "`Stream`, until the standard library has it"),
    ("object_store", "the store of the overflow codec, which re-exports the crate"),
    ("thiserror", "derived implementations"),
    ("clap", "the feature `describe`: requests are arguments"),
    ("clap_builder", "the types of clap are defined here"),
    ("utoipa", "the feature `describe`: requests are schemas"),
    ("uuid", "a worker id is a UUID"),
    ("tokio_util", "the stop signal of a handler, which other libraries of tokio take"),
];

/// The paths of types whose fields or variants are part of the API, with the reason. They are the paths of the definitions, which
/// rustdoc gives, not those that programs use.
pub(super) const EXHAUSTIVE: [(&[&str], &str); 10] = [
    (
        &[
            "bellwether::client::group::members::MemberEnd",
            "bellwether::client::group::view::GroupStage",
            "bellwether::client::purge::Ended",
            "bellwether::client::view::State",
            "bellwether::election::state::LeadershipState",
            "bellwether_core::machine::election::leadership::event::Inactive",
            "bellwether_remedy::Remedy",
        ],
        "the states of a job, a group and a leader are the contract: a program that ignored a new one would be wrong",
    ),
    (
        &[
            "bellwether::client::cluster::DrainedWorker",
            "bellwether::client::control::Cancelled",
            "bellwether::client::control::Retried",
            "bellwether_actors::worker::pulse::Closed",
            "bellwether_core::job::identity::Accepted",
            "bellwether_core::machine::worker::wing::event::Drained",
            "bellwether_core::outcome::Reason",
            "bellwether_core::outcome::Rejection",
        ],
        "outcomes of calls: the caller must decide on each, and a new one changes the call",
    ),
    (
        &[
            "bellwether::schedule::Misfire",
            "bellwether::schedule::When",
            "bellwether_core::backoff::Backoff",
            "bellwether_core::duration::DurationText",
            "bellwether_core::instant::InstantText",
            "bellwether_core::job::identity::IfExists",
            "bellwether_core::machine::election::campaign::Strategy",
            "bellwether_core::machine::election::leadership::Policy",
            "bellwether_core::placement::BuiltInStrategy",
            "bellwether_core::schedule::record::SkipReason",
            "bellwether_core::schedule::spec::Overlap",
            "bellwether_core::txn::Lifetime",
            "bellwether_core::txn::Op",
            "bellwether_zk::access::Scheme",
        ],
        "settings that callers write, and that the stored form, the nodes and the simulator match completely",
    ),
    (
        &[
            "bellwether_actors::worker::takeover::Taken",
            "bellwether_core::takeover::HeldAttempt",
            "bellwether_core::takeover::Owner",
            "bellwether_core::takeover::Refusal",
        ],
        "what a program that takes over attempts writes and decides on, completely",
    ),
    (
        &[
            "bellwether_host::testing::probe::Fault",
            "bellwether_host::testing::probe::InjectedFault",
            "bellwether_host::testing::roster::Entry",
        ],
        "the faults that a test injects, and the table of the actors",
    ),
    (
        &["bellwether_core::job::attempt::AttemptOutcome"],
        "the history of a job, whose outcomes the stored form and the simulator match completely",
    ),
    (
        &[
            "bellwether_core::metric::Labels",
            "bellwether_core::metric::Metric",
            "bellwether_core::metric::MetricType",
            "bellwether_core::metric::Unit",
        ],
        "constants that dashboards are generated from",
    ),
    (
        &[
            "bellwether_keeper::model::ConnectionId",
            "bellwether_keeper::model::Effect",
            "bellwether_keeper::model::Input",
            "bellwether_keeper::model::Now",
            "bellwether_keeper::model::config::Config",
            "bellwether_keeper::model::inspect::SessionView",
            "bellwether_keeper::model::inspect::WatchView",
            "bellwether_keeper::model::log::Entry",
            "bellwether_keeper::model::log::Transaction",
            "bellwether_keeper::proto::client::Incoming",
            "bellwether_keeper::proto::code::ErrorCode",
            "bellwether_keeper::proto::compat::Compat",
            "bellwether_keeper::proto::reader::Malformed",
            "bellwether_keeper::proto::request::Acl",
            "bellwether_keeper::proto::request::AddWatchMode",
            "bellwether_keeper::proto::request::ConnectRequest",
            "bellwether_keeper::proto::request::CreateMode",
            "bellwether_keeper::proto::request::Id",
            "bellwether_keeper::proto::request::Intent",
            "bellwether_keeper::proto::request::Op",
            "bellwether_keeper::proto::request::Request",
            "bellwether_keeper::proto::request::WatcherKind",
            "bellwether_keeper::proto::response::ConnectResponse",
            "bellwether_keeper::proto::response::EventKind",
            "bellwether_keeper::proto::response::OpResult",
            "bellwether_keeper::proto::response::Reply",
            "bellwether_keeper::proto::response::Response",
            "bellwether_keeper::proto::response::Stat",
            "bellwether_keeper::proto::response::WatchedEvent",
            "bellwether_keeper::server::testing::Logged",
            "bellwether_keeper::store::Backup",
            "bellwether_keeper::store::Change",
            "bellwether_keeper::store::Changes",
            "bellwether_keeper::store::NodeRow",
            "bellwether_keeper::store::SessionRow",
            "bellwether_keeper::store::Snapshot",
            "bellwether_keeper::store::Status",
        ],
        "the protocol, the model and the store of the keeper, which its server, tests and tools write and match completely",
    ),
    (
        &["bellwether_gateway::access::role::Role", "bellwether_gateway::tls::ClientCertificates"],
        "settings of the gateway that programs write and match completely",
    ),
    (&["bellwether::client::job::kind::Untyped"], "a marker without values"),
];

/// The trait of errors.
pub(super) const ERROR: &str = "core::error::Error";

/// The paths of errors without `class`, `remedy` and `is_retryable`, with the reason.
pub(super) const WITHOUT_REMEDY: [(&[&str], &str); 4] = [
    (
        &[
            "bellwether::client::list::cursor::CursorError",
            "bellwether::client::timing::TimingError",
            "bellwether::connection::SessionTimeoutError",
            "bellwether_core::backoff::BackoffError",
            "bellwether_core::duration::DurationError",
            "bellwether_core::instant::InstantTextError",
            "bellwether_core::job::payload::NestingError",
            "bellwether_core::job::payload::ContentTypeError",
            "bellwether_core::job::payload::PayloadError",
            "bellwether_core::job::policy::PolicyError",
            "bellwether_core::job::priority::PriorityError",
            "bellwether_core::job::progress::ProgressError",
            "bellwether_core::name::NameError",
            "bellwether_core::placement::CustomStrategyError",
            "bellwether_core::retention::RetentionError",
            "bellwether_core::schedule::SpecError",
            "bellwether_core::trace::TraceContextError",
            "bellwether_core::worker::WorkerSettingsError",
            "bellwether_gateway::access::role::RoleError",
            "bellwether_gateway::limits::LimitsError",
            "bellwether_overflow::PrefixError",
            "bellwether_zk::access::AccessError",
            "bellwether_zk::connect_string::ConnectStringError",
            "bellwether_zk::roles::RolesError",
        ],
        "errors of a single value or setting: invalid, and it must be changed",
    ),
    (
        &[
            "bellwether_core::outcome::Rejection",
            "bellwether_core::wire::WireError",
            "bellwether_keeper::store::disk::row::RowError",
        ],
        "the reasons of other errors, which have them",
    ),
    (&["bellwether_host::worker::handler::error::HandlerError"], "the result of a handler"),
    (
        &["bellwether_keeper::proto::reader::Malformed"],
        "the other side of a connection has sent a wrong frame",
    ),
];

/// The paths of a list.
pub(super) fn listed(list: &[(&[&str], &str)]) -> BTreeSet<String> {
    list.iter().flat_map(|(paths, _)| *paths).map(ToString::to_string).collect()
}

/// The paths of public items that the documentation leaves out, with the reason.
pub(super) const HIDDEN: [(&[&str], &str); 5] = [
    (
        &[
            "bellwether::client::Client::over",
            "bellwether::client::Client::sub_group",
            "bellwether::client::group::spawn::Attempt",
            "bellwether::client::runtime",
        ],
        "the simulator and the fuzz targets run the client on their own session and clock",
    ),
    (&["bellwether_core::impl_values"], "the documents of the gateway implement schemas with it"),
    (&["bellwether::node::Node::actors"], "tests of the actors; only with the feature `testing`"),
    (
        &["bellwether::client::job::kind::AnyKind::KIND", "bellwether::client::job::kind::AnyKind::decode"],
        "the items of a sealed trait, which the library uses",
    ),
    (
        &[
            "bellwether_core::name::GroupId::further",
            "bellwether_core::name::GroupId::of_sub_jobs",
            "bellwether_core::retention::Retention::of",
            "bellwether_core::txn::Op::subject",
        ],
        "methods of core that other packages of the workspace use, on types that the library re-exports",
    ),
];
