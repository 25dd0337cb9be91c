//! The OpenAPI document, and its page: Swagger UI, from the archive in `utoipa-swagger-ui-vendored`.
//!
//! `utoipa-swagger-ui` serves the same page. Each build of the command would compile a regular expression engine and a zip writer for
//! its build script, and the command would contain files that the page does not load.

mod archive;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use utoipa::openapi::OpenApi;
use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;

use super::console::{accepts_gzip, content_type};
use crate::problem::Fault;
use crate::state::App;

use archive::Entry;

const DOCUMENT: &str = "/openapi.json";
const PAGE: &str = "/docs";

/// The files of Swagger UI that its page loads. A test loads the page.
const FILES: [&str; 7] = [
    "favicon-16x16.png",
    "favicon-32x32.png",
    "index.css",
    "index.html",
    "swagger-ui-bundle.js",
    "swagger-ui-standalone-preset.js",
    "swagger-ui.css",
];

/// The page also loads this configuration. The address of the document is relative, so that a proxy can add a prefix.
const INITIALIZER: (&str, &str) = (
    "swagger-initializer.js",
    r##"window.onload = () => {
  window.ui = SwaggerUIBundle({
    url: "../openapi.json",
    dom_id: "#swagger-ui",
    deepLinking: true,
    presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
    plugins: [SwaggerUIBundle.plugins.DownloadUrl],
    layout: "StandaloneLayout",
  });
};
"##,
);

/// A file in both forms, which all answers share.
struct File {
    plain: Bytes,
    gzip: Option<Bytes>,
}

impl From<Entry> for File {
    fn from(entry: Entry) -> Self {
        Self { plain: entry.plain().into(), gzip: entry.gzip().map(Into::into) }
    }
}

/// The files by name, from the archive at the first request.
static FOUND: LazyLock<BTreeMap<&str, File>> = LazyLock::new(|| {
    let found = archive::entries(SWAGGER_UI_VENDORED).into_iter().flatten();
    let named = found.filter_map(|(path, entry)| {
        let (folder, name) = path.rsplit_once('/')?;
        let name = FILES.into_iter().find(|file| *file == name)?;
        folder.ends_with("/dist").then(|| (name, entry.into()))
    });
    named.collect()
});

/// Whether a path belongs to the page.
pub(crate) fn is_docs(path: &str) -> bool {
    path == PAGE || path.starts_with("/docs/")
}

/// Whether the path is that of the document or belongs to its page.
pub(super) fn serves(path: &str) -> bool {
    path == DOCUMENT || is_docs(path)
}

pub(super) fn router(document: &OpenApi) -> Router<App> {
    let document = Bytes::from(serde_json::to_vec(document).expect("the document is JSON"));
    let json = HeaderValue::from_static("application/json");
    let page = |headers: HeaderMap| async move { answer("index.html", &headers) };
    let file = |Path(name): Path<String>, headers: HeaderMap| async move { answer(&name, &headers) };
    Router::new()
        .route(DOCUMENT, get(|| async move { ([(CONTENT_TYPE, json)], document) }))
        .route(PAGE, get(|| async { Redirect::to("docs/") }))
        .route("/docs/", get(page))
        .route("/docs/{*name}", get(file))
}

fn answer(name: &str, request: &HeaderMap) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
    if name == INITIALIZER.0 {
        return (headers, INITIALIZER.1).into_response();
    }
    let Some(file) = FOUND.get(name) else {
        return Fault::NotFound.because(format!("the page of the API has no file {name}")).into_response();
    };
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    match file.gzip.as_ref().filter(|_| accepts_gzip(request)) {
        Some(gzip) => {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            (headers, gzip.clone()).into_response()
        }
        None => (headers, file.plain.clone()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_has_every_file_of_the_page() {
        assert_eq!(FOUND.keys().copied().collect::<Vec<_>>(), FILES);
        let page = str::from_utf8(&FOUND["index.html"].plain).unwrap();
        let named = page.split('"').map(|word| word.trim_start_matches("./"));
        let loaded = named.filter(|word| [".js", ".css", ".png"].iter().any(|end| word.ends_with(end)));
        let missing = loaded.filter(|word| !FOUND.contains_key(word) && *word != INITIALIZER.0);
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
