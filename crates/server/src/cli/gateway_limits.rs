//! Limits of a gateway.

use std::time::Duration;

use bellwether_gateway::Limits;
use clap::Args;

use super::input;

/// One option for each of the gateway's [`Limits`].
#[derive(Debug, Args)]
pub(super) struct LimitOptions {
    /// Maximum number of open connections; further connections are answered with 503. Each connection needs a file
    /// descriptor and up to 16 KiB.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().connections, value_parser = count)]
    http_connections: usize,
    /// Maximum number of open connections of one address, including this machine's. Raise it for the address of a proxy [default: a
    /// quarter of --http-connections; no limit for addresses of this machine].
    #[arg(long, value_name = "COUNT", value_parser = count)]
    http_connections_per_address: Option<usize>,
    /// Maximum number of requests at a time; further requests are answered with 503. Each can hold a body of
    /// 256 KiB.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().requests, value_parser = count)]
    http_requests: usize,
    /// Maximum number of requests of one caller at a time; further requests are answered with 429.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().requests_per_caller, value_parser = count)]
    http_requests_per_caller: usize,
    /// Maximum number of long polls; further ones are answered with 503. Each remote worker has one, so it must be at
    /// least --http-remote-workers [default: 512, or twice
    /// --http-remote-workers if that is more].
    #[arg(long, value_name = "COUNT", value_parser = count)]
    http_waits: Option<usize>,
    /// Maximum number of event streams; further ones are answered with 503.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().streams, value_parser = count)]
    http_streams: usize,
    /// Maximum number of remote workers; further registrations are answered with 503. Each has a session in ZooKeeper, and
    /// ZooKeeper allows 60 connections from one address by default (`maxClientCnxns`).
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().remote_workers, value_parser = count)]
    http_remote_workers: usize,
    /// Time limit for the headers of a request, and for an idle connection.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = input::time_limit)]
    http_header_time: Duration,
    /// Time limit for a request with its body, except long polls and event streams; after it the request is answered with 504.
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = input::time_limit)]
    http_request_time: Duration,
}

fn count(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().ok().filter(|count| (1..=1_000_000).contains(count));
    count.ok_or_else(|| "must be 1 to 1000000".to_owned())
}

impl LimitOptions {
    /// Returns the limits.
    pub(super) fn limits(&self) -> Limits {
        let limits = Limits::default()
            .connections(self.http_connections)
            .connections_per_address(self.http_connections_per_address)
            .requests(self.http_requests)
            .requests_per_caller(self.http_requests_per_caller)
            .streams(self.http_streams)
            .remote_workers(self.http_remote_workers)
            .header_time(self.http_header_time)
            .request_time(self.http_request_time);
        self.http_waits.map_or(limits, |waits| limits.waits(waits))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        limits: LimitOptions,
    }

    fn limits(options: &[&str]) -> Limits {
        Command::parse_from([&["test"], options].concat()).limits.limits()
    }

    #[test]
    fn without_options_a_gateway_has_the_limits_of_the_library() {
        assert_eq!(limits(&[]), Limits::default());
        assert_eq!(limits(&["--http-remote-workers", "400"]), Limits::default().remote_workers(400));
    }

    #[test]
    fn each_limit_has_an_option() {
        let options = [
            ["--http-connections", "2"],
            ["--http-connections-per-address", "3"],
            ["--http-requests", "4"],
            ["--http-requests-per-caller", "5"],
            ["--http-waits", "6"],
            ["--http-streams", "7"],
            ["--http-remote-workers", "8"],
            ["--http-header-time", "9s"],
            ["--http-request-time", "10s"],
        ];
        // The debug output has every field, so a new limit without an option is noticed.
        let expected = "Limits { connections: 2, connections_per_address: Some(3), requests: 4, requests_per_caller: 5, waits: 6, \
                        streams: 7, remote_workers: 8, header_time: 9s, request_time: 10s }";
        assert_eq!(format!("{:?}", limits(options.as_flattened())), expected);
    }
}
