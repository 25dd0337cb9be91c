//! Path rules, identical to those of ZooKeeper.

/// The root of the server's own znodes.
pub(super) const SYSTEM: &str = "/zookeeper";
/// The root of quotas.
pub(super) const QUOTA: &str = "/zookeeper/quota";
/// The configuration of an ensemble; empty on a single server.
pub(super) const CONFIG: &str = "/zookeeper/config";

/// Returns whether a znode can have this path: absolute, no trailing slash, no empty, `.` or `..` element, no character
/// that is invisible, private, or outside the basic multilingual plane.
pub(super) fn is_valid(path: &str) -> bool {
    if path == "/" {
        return true;
    }
    let Some(names) = path.strip_prefix('/') else { return false };
    names.split('/').all(|name| !matches!(name, "" | "." | "..")) && !path.contains(is_forbidden)
}

fn is_forbidden(character: char) -> bool {
    matches!(character, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// Returns the parent of a path in a request; `None` if it contains no slash or a NUL. The parent of a znode below the
/// root is `""`, which is another name of the root.
pub(super) fn parent(path: &str) -> Option<&str> {
    if path.contains('\0') {
        return None;
    }
    path.rsplit_once('/').map(|(parent, _name)| parent)
}

/// Returns the canonical path: the root has two names, and the model uses `/`.
pub(super) fn canonical(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// Returns the last element.
pub(super) fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_parent, name)| name)
}

/// Returns the ancestors, from the parent to the root.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let mut below = Some(path);
    std::iter::from_fn(move || {
        let path = below.filter(|&path| path != "/")?;
        let above = canonical(path.rsplit_once('/')?.0);
        below = Some(above);
        Some(above)
    })
}

/// Returns whether the znode exists on every server and cannot be deleted.
pub(super) fn is_special(path: &str) -> bool {
    matches!(path, "/" | SYSTEM | QUOTA | CONFIG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_paths_are_those_of_zookeeper() {
        for good in ["/", "/a", "/a/b", "/a.b", "/.a", "/a..", "/...", "/ä/日本", "/a b", "/\u{ffef}"] {
            assert!(is_valid(good), "{good:?}");
        }
        let bad = [
            "",
            "a",
            "a/b",
            "//",
            "/a/",
            "/a//b",
            "/.",
            "/..",
            "/a/.",
            "/a/../b",
            "/./a",
            "/\0",
            "/a\u{1f}",
            "/\u{7f}",
            "/\u{9f}",
            "/\u{e000}",
            "/\u{f8ff}",
            "/\u{fff0}",
            "/\u{fffd}",
            "/\u{1f600}",
        ];
        for bad in bad {
            assert!(!is_valid(bad), "{bad:?}");
        }
    }

    #[test]
    fn ancestors_end_at_the_root() {
        let above: Vec<_> = ancestors("/a/b/c").collect();
        assert_eq!(above, ["/a/b", "/a", "/"]);
        assert_eq!(ancestors("/a").collect::<Vec<_>>(), ["/"]);
        assert_eq!(ancestors("/").count(), 0);
    }

    #[test]
    fn the_parent_of_a_top_level_znode_is_the_root() {
        assert_eq!(parent("/a").map(canonical), Some("/"));
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("a"), None);
        assert_eq!(parent("/a\0"), None);
        assert_eq!(name("/a/b"), "b");
    }
}
