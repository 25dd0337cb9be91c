//! What a path is: the server's own rules, character for character.

/// `/zookeeper` and below: the server's own znodes.
pub(super) const SYSTEM: &str = "/zookeeper";
/// Where quotas are kept.
pub(super) const QUOTA: &str = "/zookeeper/quota";
/// Where an ensemble keeps its configuration; a single server has none.
pub(super) const CONFIG: &str = "/zookeeper/config";

/// Whether a znode may have this path: absolute, no trailing slash, no empty, `.` or `..` element, no character that
/// is invisible, private, or outside of the basic plane.
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

/// The parent of what a request calls a path, `None` when there is no slash or a zero in it. The parent of a znode
/// below the root is `""`, as the root may be called, too.
pub(super) fn parent(path: &str) -> Option<&str> {
    if path.contains('\0') {
        return None;
    }
    path.rsplit_once('/').map(|(parent, _name)| parent)
}

/// The root has two names; everything inside of the model uses this one.
pub(super) fn canonical(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// The last element.
pub(super) fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_parent, name)| name)
}

/// The znodes above, nearest first, up to the root.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let mut below = Some(path);
    std::iter::from_fn(move || {
        let path = below.filter(|&path| path != "/")?;
        let above = canonical(path.rsplit_once('/')?.0);
        below = Some(above);
        Some(above)
    })
}

/// Znodes that every server has and nobody deletes.
pub(super) fn is_special(path: &str) -> bool {
    matches!(path, "/" | SYSTEM | QUOTA | CONFIG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_what_the_real_server_takes_for_paths() {
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
    fn a_znode_below_the_root_has_the_root_for_a_parent() {
        assert_eq!(parent("/a").map(canonical), Some("/"));
        assert_eq!(parent("/a/b"), Some("/a"));
        assert_eq!(parent("a"), None);
        assert_eq!(parent("/a\0"), None);
        assert_eq!(name("/a/b"), "b");
    }
}
