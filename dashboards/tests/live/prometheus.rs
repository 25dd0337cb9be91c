//! A real Prometheus process and its query API.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bellwether_testkit::{eventually, unused_address};
use serde_json::Value;
use tempfile::TempDir;

use crate::SOON;

/// The interval of scrapes and rule evaluations: short, so a window of a few seconds contains several.
const INTERVAL: &str = "500ms";

/// A running Prometheus, killed when dropped.
pub(crate) struct Prometheus {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
    began: f64,
    _home: TempDir,
}

impl Prometheus {
    /// Starts Prometheus with these targets as the namespace `bellwether` and with the rules of this repository. Waits
    /// until it is ready.
    pub(crate) async fn start(targets: &[SocketAddr]) -> Self {
        let home = tempfile::Builder::new().prefix("bellwether-prometheus-").tempdir().unwrap();
        let config = home.path().join("prometheus.yml");
        std::fs::write(&config, configuration(targets)).unwrap();
        let (address, log) = (unused_address().unwrap(), home.path().join("log"));
        // The kernel kills the process if the thread that started it ends without doing so.
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "prometheus"])
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", home.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap_or_else(|error| panic!("prometheus: {error}; `apt-get install prometheus`"));
        let mut prometheus = Self { child, address, log, began: now(), _home: home };
        eventually("prometheus is ready", SOON, async || {
            let ended = prometheus.child.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "prometheus ended, {ended:?}: is it installed? `apt-get install prometheus`"
            );
            get(prometheus.address, "/-/ready").is_ok_and(|answer| answer.starts_with("HTTP/1.0 200"))
        })
        .await;
        prometheus
    }

    /// Returns the current series of an expression, each with its labels.
    pub(crate) fn now(&self, expr: &str) -> Vec<Value> {
        let answer = self.ask(&format!("/api/v1/query?query={}", encoded(expr)));
        answer["result"].as_array().unwrap_or_else(|| panic!("{expr}: {answer}")).clone()
    }

    /// Returns the largest current value of an expression, or `None` if it has no finite value.
    pub(crate) fn largest(&self, expr: &str) -> Option<f64> {
        let series = self.now(expr);
        series.iter().filter_map(|series| finite(&series["value"])).reduce(f64::max)
    }

    /// Counts the finite points of an expression since the start, one second apart, as a dashboard would draw them.
    pub(crate) fn points(&self, expr: &str) -> usize {
        let (from, to) = (self.began, now());
        let range = format!("/api/v1/query_range?start={from}&end={to}&step=1&query={}", encoded(expr));
        let answer = self.ask(&range);
        let series = answer["result"].as_array().unwrap_or_else(|| panic!("{expr}: {answer}"));
        let values = series.iter().filter_map(|series| series["values"].as_array());
        values.flatten().filter(|value| finite(value).is_some()).count()
    }

    /// Returns the values of a label in the series of a metric, as Grafana does for a variable.
    pub(crate) fn label_values(&self, label: &str, metric: &str) -> Vec<Value> {
        let answer = self.ask(&format!("/api/v1/label/{label}/values?match[]={}", encoded(metric)));
        answer.as_array().cloned().unwrap_or_default()
    }

    /// Returns every rule that cannot be evaluated, with the reason.
    pub(crate) fn ailing_rules(&self) -> Vec<Value> {
        let answer = self.ask("/api/v1/rules");
        let groups = answer["groups"].as_array().cloned().unwrap_or_default();
        let rules: Vec<Value> =
            groups.iter().filter_map(|group| group["rules"].as_array()).flatten().cloned().collect();
        assert!(!rules.is_empty(), "Prometheus has no rules");
        rules.into_iter().filter(|rule| rule["health"] != "ok").collect()
    }

    fn ask(&self, path: &str) -> Value {
        let answer = get(self.address, path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let mut body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{path}: {answer}"));
        assert_eq!(body["status"], "success", "{path}: {body}");
        body["data"].take()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Both calls fail only if the process has ended.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            eprintln!("--- log of prometheus:\n{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

fn configuration(targets: &[SocketAddr]) -> String {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("prometheus");
    let targets = targets.iter().map(|target| format!("\"{target}\"")).collect::<Vec<_>>().join(", ");
    format!(
        "global: {{ scrape_interval: {INTERVAL}, scrape_timeout: {INTERVAL}, evaluation_interval: {INTERVAL} }}\n\
         rule_files: [\"{rules}/recording.yml\", \"{rules}/alerts.yml\"]\n\
         scrape_configs: [{{ job_name: bellwether, static_configs: [{{ targets: [{targets}] }}] }}]\n",
        rules = rules.display()
    )
}

/// Sends a GET request. With HTTP/1.0 the server closes the connection after the response, which is not chunked.
fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, SOON)?;
    stream.set_read_timeout(Some(SOON))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Parses a sample `[time, "value"]`, if the value is finite.
fn finite(value: &Value) -> Option<f64> {
    value[1].as_str()?.parse().ok().filter(|value: &f64| value.is_finite())
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}

fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}
