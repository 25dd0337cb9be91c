//! The documentation as a book: rendered by mdBook, then every link is checked.
//!
//! Links are checked in the rendered HTML, so that anchors are those that a reader meets. Markdown outside `docs/` is not part of
//! the book; its relative links are checked as well. Links to other sites are not followed, but a link into this repository on its
//! host must name a file of the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::cargo::{self, cargo};
use crate::failure::Failure;

/// Pinned, because a new version may render other anchors.
const VERSION: &str = "0.5.4";

/// Where a built mdBook stays between runs.
const TOOLS: &str = "target/tools";

const RENDERED: &str = "target/book";

/// Links of the book into files that are not part of it.
const REPOSITORY: &str = "https://github.com/bellwether-scheduler/bellwether/blob/main/";

/// Markdown outside the book.
const OUTSIDE: [&str; 9] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "python/README.md",
    "dashboards/README.md",
    "crates/keeper/tests/certificates/README.md",
    "crates/sim/README.md",
    "crates/model-check/README.md",
];

/// Renders the book into `target/book` and checks its links.
pub(crate) fn run() -> Result<(), Failure> {
    let mdbook = Path::new(TOOLS).join("bin/mdbook");
    if !mdbook.is_file() {
        // Without optimisations it is built in half the time, and this book takes it a second.
        let options =
            ["--locked", "--debug", "--no-default-features", "--features", "search", "--root", TOOLS];
        let mut install = cargo();
        install.args(["install", "mdbook", "--version", VERSION]).args(options);
        // As the workspace's profile compiles third-party crates. Without unwinding and with fewer codegen units mdBook needs 79 to 81 s
        // of processor time instead of 89 to 91.
        let profile = [
            ("CODEGEN_UNITS", "4"),
            ("DEBUG", "none"),
            ("DEBUG_ASSERTIONS", "false"),
            ("INCREMENTAL", "false"),
            ("OVERFLOW_CHECKS", "false"),
            ("PANIC", "abort"),
        ];
        install.envs(profile.map(|(setting, value)| (format!("CARGO_PROFILE_DEV_{setting}"), value)));
        cargo::run(&mut install)?;
    }
    cargo::run(Command::new(mdbook).arg("build"))?;
    let read = |source| Failure::Launch { line: "cargo xtask book".to_owned(), source };
    let broken = broken(Path::new("."), Path::new(RENDERED)).map_err(read)?;
    if broken.is_empty() { Ok(()) } else { Err(Failure::Links(broken)) }
}

/// Every broken link, with its page.
fn broken(root: &Path, rendered: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    html(rendered, &mut files)?;
    let mut pages = BTreeMap::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        pages.insert(file, text);
    }
    let anchors: BTreeMap<&Path, BTreeSet<&str>> =
        pages.iter().map(|(file, text)| (file.as_path(), quoted(text, " id=\"").collect())).collect();
    let mut broken = Vec::new();
    let whole = |path: &Path| {
        path.file_name().is_some_and(|name| name == "print.html" || name == "404.html" || name == "toc.html")
    };
    for (file, text) in pages.iter().filter(|(file, _)| !whole(file)) {
        for link in quoted(text, " href=\"") {
            let found = if let Some(path) = link.strip_prefix(REPOSITORY) {
                root.join(path.split('#').next().unwrap_or(path)).exists()
            } else if link.contains("://") || link.starts_with("mailto:") {
                true
            } else {
                let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target = if path.is_empty() { file.clone() } else { joined(file, path) };
                is_there(&target, anchor, &anchors)
            };
            if !found {
                broken.push(format!("{}: {link}", file.strip_prefix(rendered).unwrap_or(file).display()));
            }
        }
    }
    for name in OUTSIDE {
        let file = root.join(name);
        let text = fs::read_to_string(&file)?;
        for link in inline(&text).filter(|link| link.starts_with(REPOSITORY) || !link.contains("://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match path.strip_prefix(REPOSITORY) {
                Some(path) => normal(&root.join(path)),
                None => joined(&file, path),
            };
            let in_book = target.strip_prefix(normal(&root.join("docs"))).ok().filter(|_| !anchor.is_empty());
            let found = match in_book {
                Some(page) => is_there(&rendered.join(page).with_extension("html"), anchor, &anchors),
                None => path.is_empty() || target.exists(),
            };
            if !found {
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    Ok(broken)
}

fn is_there(target: &Path, anchor: &str, anchors: &BTreeMap<&Path, BTreeSet<&str>>) -> bool {
    match anchors.get(target) {
        Some(ids) => anchor.is_empty() || ids.contains(anchor),
        None => target.exists(),
    }
}

fn html(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            html(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            found.push(path);
        }
    }
    Ok(())
}

/// What stands between each `before` and the next quotation mark.
fn quoted<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split_once('"').map(|(value, _)| value))
}

/// The targets of Markdown's inline links.
fn inline(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

/// `path` as a link in `file` means it.
fn joined(file: &Path, path: &str) -> PathBuf {
    normal(&file.parent().unwrap_or(Path::new("")).join(path))
}

fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

    #[test]
    fn every_markdown_file_is_in_the_book_or_in_the_list() {
        let mut unlisted = Vec::new();
        let mut directories = vec![PathBuf::new()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(Path::new(TREE).join(&directory)).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                let path = directory.join(&name);
                if Path::new(TREE).join(&path).is_dir() {
                    if !name.starts_with('.') && !["target", "docs"].contains(&name.as_str()) {
                        directories.push(path);
                    }
                } else if name.ends_with(".md") && !OUTSIDE.iter().any(|listed| Path::new(listed) == path) {
                    unlisted.push(path);
                }
            }
        }
        assert_eq!(unlisted, Vec::<PathBuf>::new());
    }

    #[test]
    fn the_lists_of_decisions_have_the_titles_of_their_pages() {
        let docs = Path::new(TREE).join("docs");
        let read = |page: &str| fs::read_to_string(docs.join(page)).unwrap();
        let (summary, list) = (read("SUMMARY.md"), read("adr/README.md"));
        let mut decisions = 0;
        for entry in fs::read_dir(docs.join("adr")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name != "README.md" {
                let page = read(&format!("adr/{name}"));
                let title = page.lines().next().unwrap().strip_prefix("# ").unwrap();
                assert!(summary.contains(&format!("- [{title}](adr/{name})\n")), "SUMMARY.md: {title}");
                let (number, title) = title.split_once(". ").unwrap();
                assert!(list.contains(&format!("\n{number}. [{title}]({name})\n")), "adr/README.md: {title}");
                decisions += 1;
            }
        }
        assert!(decisions > 20, "{decisions}");
    }

    #[test]
    fn a_link_to_a_missing_page_anchor_or_file_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let rendered = root.join("target/book");
        fs::create_dir_all(&rendered).unwrap();
        for name in OUTSIDE {
            let file = root.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        fs::write(root.join("README.md"), format!("[a](docs/b.md#there) [b](docs/b.md#gone) [c](absent.md) [d]({REPOSITORY}SECURITY.md) [e]({REPOSITORY}absent.md)")).unwrap();
        fs::write(
            rendered.join("b.html"),
            r#"<h2 id="there"><a href="c.html#x"><a href="https://other.site/x">"#,
        )
        .unwrap();
        let c = format!(
            r##"<a id="x" href="b.html#gone"><a href="#x"><a href="{REPOSITORY}absent"><a href="{REPOSITORY}README.md">"##
        );
        fs::write(rendered.join("c.html"), c).unwrap();
        let expected = [
            "c.html: b.html#gone".to_owned(),
            format!("c.html: {REPOSITORY}absent"),
            "README.md: docs/b.md#gone".to_owned(),
            "README.md: absent.md".to_owned(),
            format!("README.md: {REPOSITORY}absent.md"),
        ];
        assert_eq!(broken(root, &rendered).unwrap(), expected);
    }
}
