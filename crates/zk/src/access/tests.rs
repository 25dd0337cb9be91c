//! Logins: their bounds, their identities and their roles.

use super::*;

/// `echo -n bellwether:hunter2 | openssl sha1 -binary | base64`.
const OWN: &str = "bellwether:xa+ayMWDFdQpO9PXZdwnN9shmI0=";

fn digest(password: &str) -> Access {
    Access::login(Scheme::Digest, "bellwether", password)
}

fn sasl(user: &str) -> Access {
    Access::login(Scheme::SaslDigestMd5, user, "hunter2")
}

#[test]
fn no_text_of_a_login_contains_the_password() {
    let access = Access::login(Scheme::Digest, "bellwether", "hunter2");
    let texts = [format!("{access:?}"), format!("{access:#?}"), access.to_string()];
    assert!(texts.iter().all(|text| text.contains("bellwether")), "{texts:?}");
    let refused = ["hunter2\n", &"hunter2".repeat(147)]
        .map(|password| Access::login(Scheme::Digest, "bellwether", password).check_login().unwrap_err());
    let refused = refused.iter().flat_map(|error| [error.to_string(), format!("{error:?}")]);
    for text in refused.chain(texts) {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_digest_login_without_tls_is_only_for_servers_of_this_machine() {
    let [near, far] = ["127.0.0.1", "localhost,192.0.2.1/a"].map(|to| to.parse().unwrap());
    let login = |scheme| Access::login(scheme, "bellwether", "hunter2");
    let refused = Err(AccessError::ClearText { server: "192.0.2.1:2181".to_owned() });
    assert_eq!(login(Scheme::Digest).check(&far), refused);
    assert_eq!(login(Scheme::Digest).check(&near), Ok(()));
    for (allowed, is_login) in [
        (login(Scheme::Digest).insecure(true), true),
        (login(Scheme::SaslDigestMd5), true),
        (Access::default(), false),
    ] {
        assert_eq!((allowed.check(&far), allowed.is_login()), (Ok(()), is_login), "{allowed:?}");
    }
}

#[test]
fn invalid_logins_are_refused_with_the_bound() {
    let long = "x".repeat(129);
    for user in ["", "a:b", "a\nb", &long] {
        let said = Access::login(Scheme::Digest, user, "secret").check_login().unwrap_err().to_string();
        assert!(said.contains(MUST_BE_A_USER), "{said}");
    }
    let long = "x".repeat(1025);
    for (password, is) in [("", "is empty"), ("a\n", "has some"), (&long, "is longer")] {
        let said =
            Access::login(Scheme::Digest, "bellwether", password).check_login().unwrap_err().to_string();
        assert!(said.contains(MUST_BE_A_PASSWORD) && said.ends_with(is), "{said}");
    }
    for (user, password) in [(&long[..128], &long[..1024]), ("ü", "a:b c")] {
        assert_eq!(Access::login(Scheme::Digest, user, password).check_login(), Ok(()));
    }
}

#[test]
fn the_identity_of_a_login_is_as_in_a_file_of_roles() {
    assert_eq!(digest("hunter2").identity(), Some(format!("digest:{OWN}")));
    assert_eq!(sasl("app").identity().as_deref(), Some("sasl:app"));
    assert_eq!(Access::default().identity(), None);
    assert_eq!(
        [Scheme::Digest, Scheme::SaslDigestMd5].map(|scheme| scheme.to_string()),
        ["digest", "SASL DIGEST-MD5"]
    );
}

#[test]
fn a_login_has_the_identity_of_its_former_password_besides_its_own() {
    let own = |password: &str| digest(password).identity().unwrap();
    let [own, former] =
        ["new", "hunter2"].map(|password| AuthId::new("digest", &own(password)["digest:".len()..]));
    let access = digest("new").former_password("hunter2");
    assert_eq!((access.is_own(&own), access.is_former(&own)), (true, false));
    assert_eq!((access.is_own(&former), access.is_former(&former)), (false, true));
    assert!(!access.is_former(&AuthId::new("sasl", OWN)), "the scheme is part of the identity");
    assert!(!digest("hunter2").is_former(&former), "it is the present one");
}

#[test]
fn a_former_password_needs_a_valid_password_and_a_digest_login() {
    assert_eq!(digest("new").former_password("a\n").check_login(), check_password("a\n"));
    assert_eq!(sasl("app").former_password("hunter2").check_login(), Err(AccessError::Former));
    assert_eq!(Access::default().former_password("hunter2").check_login(), Err(AccessError::Former));
}

#[test]
fn the_login_decides_the_role() {
    let roles: Roles = format!("operator digest:{OWN}\nclient sasl:app").parse().unwrap();
    let with = |access: Access| access.roles(roles.clone());
    let operator = with(digest("hunter2"));
    assert_eq!(operator.check_login(), Ok(()));
    assert_eq!((operator.role(), operator.known_roles()), (Some(Role::Operator), Some(&roles)));
    assert_eq!(with(sasl("app")).role(), Some(Role::Client));
    assert_eq!(digest("hunter2").role(), None);
    assert!(matches!(with(sasl("other")).check_login(), Err(AccessError::NoRole { .. })));
    let former = digest("new").former_password("hunter2");
    assert_eq!(with(former).check_login(), Err(AccessError::FormerOfRole));
    assert_eq!(operator.former_password("new").check_login(), Err(AccessError::FormerOfRole));
}
