use bellwether_core::path;

use super::*;

const FILE: &str = "# roles of /bellwether\noperator digest:ops:aaa=\n\ncandidate  digest:lead:bbb=\nworker digest:work:ccc=\nclient sasl:app\n";

fn roles() -> Roles {
    FILE.parse().unwrap()
}

fn acl(may: Permission, scheme: &str, id: &str) -> Acl {
    Acl::new(may, AuthId::new(scheme, id))
}

fn told(path: &str, found: &[Acl]) -> &'static str {
    match roles().difference(path, found) {
        None => "same",
        Some(Difference::Readable(_)) => "readable",
        Some(Difference::Changeable(_)) => "changeable",
    }
}

#[test]
fn a_file_names_the_identities_of_the_roles() {
    let roles = roles();
    let of = |scheme: &str, id: &str| roles.of(|known| *known == AuthId::new(scheme, id));
    assert_eq!(of("digest", "work:ccc="), Some(Role::Worker));
    assert_eq!(of("sasl", "app"), Some(Role::Client));
    assert_eq!(of("digest", "work:other"), None);
    assert_eq!(roles.list(path::EPOCH, None).len(), 4);
}

#[test]
fn a_wrong_file_is_refused_with_the_line() {
    let refused = |text: &str| text.parse::<Roles>().unwrap_err();
    assert_eq!(refused("worker digest:a:b"), RolesError::NoOperator);
    assert_eq!(refused("\nboss digest:a:b"), RolesError::Role { given: "boss".to_owned() });
    for line in [
        "operator",
        "operator digest:a",
        "operator ip:127.0.0.1",
        "operator digest:owner:b",
        "operator sasl:",
        "operator sasl:a:b",
        "operator sasl:a b",
        "operator digest:a:b:c",
    ] {
        assert_eq!(refused(line), RolesError::Line { line: 1 }, "{line}");
    }
    assert_eq!(refused("operator sasl:a\nclient sasl:a"), RolesError::Twice { line: 2 });
}

#[test]
fn the_identities_are_limited_in_their_bytes_in_an_access_list() {
    let file =
        |bytes: usize| format!("operator digest:a:b\nclient sasl:{}", "x".repeat(bytes - 12 - 9 - 12 - 4));
    file(MAX_LIST_BYTES).parse::<Roles>().unwrap();
    let refused = file(MAX_LIST_BYTES + 1).parse::<Roles>().unwrap_err();
    assert_eq!(refused, RolesError::TooLong { bytes: MAX_LIST_BYTES + 1 });
}

#[test]
fn a_role_is_printed_as_in_a_file() {
    for role in ["operator", "candidate", "worker", "client"] {
        assert_eq!(role.parse::<Role>().unwrap().to_string(), role);
    }
}

#[test]
fn a_list_of_the_roles_is_recognised_also_without_its_hashes() {
    for path in ["/", path::EPOCH, path::WORKERS, "/workers/x", "/jobs/00", "/jobs/00/a", "/foreign"] {
        let list = roles().list(path, None);
        assert_eq!(told(path, &list), "same", "{path}");
        let masked = list.iter().map(|entry| match entry.scheme() {
            "digest" => acl(entry.permission(), "digest", &format!("{}:x", name(entry.id()))),
            _ => entry.clone(),
        });
        assert_eq!(told(path, &masked.collect::<Vec<_>>()), "same", "{path}");
    }
}

#[test]
fn each_permission_more_or_less_is_a_difference() {
    let list = || roles().list(path::EPOCH, None);
    let with = |more: Acl| list().into_iter().chain([more]).collect::<Vec<_>>();
    assert_eq!(told(path::EPOCH, &with(acl(Permission::READ, "world", "anyone"))), "readable");
    for may in [Permission::WRITE, Permission::CREATE, Permission::DELETE, Permission::ADMIN] {
        assert_eq!(told(path::EPOCH, &with(acl(may, "world", "anyone"))), "changeable");
        assert_eq!(told(path::EPOCH, &with(acl(may, "digest", "work:ccc="))), "changeable");
        assert_eq!(told(path::EPOCH, &with(acl(may, "digest", "owner:any"))), "changeable");
    }
    for left_out in 0..list().len() {
        let mut list = list();
        list.remove(left_out);
        assert_eq!(told(path::EPOCH, &list), "changeable", "{left_out}");
    }
    let owner = AuthId::new("digest", "owner:any");
    assert_eq!(told("/workers/x", &roles().list("/workers/x", Some(&owner))), "same");
    assert_eq!(told("/workers/x", &with(acl(Permission::ALL, "digest", "owner:any"))), "changeable");
}
