//! The web console: the files of `console/`, which the browser runs as they are.
//!
//! The program contains them, so the console needs neither files nor a network. They need no token: they contain nothing of
//! the namespace, and the console asks for a token when the API requires one.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::LazyLock;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY,
    VARY,
};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::problem::Fault;
use crate::state::App;

/// The path below which the files are.
const FOLDER: &str = "/console/";

/// Only files of this gateway, no inline scripts or styles, and no frames around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// Files by name. A test compares them with the folder.
macro_rules! files {
    ($($name:literal)*) => {
        &[$(($name, include_bytes!(concat!("../../../../console/", $name)))),*]
    };
}

const FILES: &[(&str, &[u8])] = files![
    "api.js" "chart.js" "dom.js" "format.js" "icon.svg" "index.html" "live.js" "main.js" "many.js" "payload.js" "refresh.js" "style.css" "table.js"
    "pages/audit.js" "pages/group.js" "pages/groups.js" "pages/job.js" "pages/jobs.js" "pages/kinds.js" "pages/lanes.js" "pages/overview.js" "pages/schedule.js" "pages/schedules.js"
    "pages/settings.js" "pages/worker.js" "pages/workers.js"
];

/// The same files, compressed at the first request.
static COMPRESSED: LazyLock<BTreeMap<&str, Bytes>> =
    LazyLock::new(|| FILES.iter().map(|(name, bytes)| (*name, compressed(bytes))).collect());

fn compressed(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("writing to memory does not fail").into()
}

pub(super) fn router() -> Router<App> {
    let page = |headers: HeaderMap| async move { answer("index.html", &headers) };
    let file = |Path(name): Path<String>, headers: HeaderMap| async move { answer(&name, &headers) };
    Router::new().route("/", get(page)).route("/console/{*name}", get(file))
}

/// Whether the path is that of the console.
pub(super) fn serves(path: &str) -> bool {
    path == "/" || path.starts_with(FOLDER)
}

fn answer(name: &str, request: &HeaderMap) -> Response {
    let Some((_, bytes)) = FILES.iter().find(|(file, _)| *file == name) else {
        return Fault::NotFound.because(format!("the console has no file {name}")).into_response();
    };
    let mut headers = vec![
        (CONTENT_TYPE, content_type(name)),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        // A browser must not mix the files of two versions.
        (CACHE_CONTROL, "no-cache"),
        (VARY, "accept-encoding"),
    ];
    let mut body = Bytes::from_static(bytes);
    if accepts_gzip(request) {
        headers.push((CONTENT_ENCODING, "gzip"));
        body = COMPRESSED[name].clone();
    }
    let headers = headers.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value)));
    (headers.collect::<HeaderMap>(), body).into_response()
}

/// Whether the caller accepts gzip; a weight of zero, which no browser sends, is not looked at.
pub(super) fn accepts_gzip(request: &HeaderMap) -> bool {
    let accepted = request.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| coding.trim().split(';').next() == Some("gzip"))
}

pub(super) fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    fn add(root: &Path, folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(root, &path, found);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn every_file_of_the_console_is_served() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console");
        let mut found = BTreeSet::new();
        add(&root, &root, &mut found);
        assert_eq!(FILES.iter().map(|(name, _)| (*name).to_owned()).collect::<BTreeSet<_>>(), found);
    }

    #[test]
    fn a_browser_loads_less_than_45_kilobytes() {
        let mut request = HeaderMap::new();
        request.insert(ACCEPT_ENCODING, HeaderValue::from_static("br, gzip;q=1.0"));
        assert!(accepts_gzip(&request));
        assert!(!accepts_gzip(&HeaderMap::new()));
        let bytes = COMPRESSED.values().map(Bytes::len).sum::<usize>();
        assert!(bytes <= 45_000, "{bytes} bytes");
    }
}
