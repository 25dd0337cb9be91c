use super::*;

fn parse(text: &str) -> Result<Tokens, TokenError> {
    Tokens::parse(text, Path::new("tokens"))
}

#[test]
fn a_token_is_found_by_its_secret_and_by_nothing_else() {
    let (ci, ops) = (Issued::new("ci", Role::Submit).unwrap(), Issued::new("ops", Role::Admin).unwrap());
    let tokens = parse(&format!("# who may\n\n{}\n  {}\n", ci.line, ops.line)).unwrap();
    let holder = |secret: &str| tokens.find(secret.as_bytes()).map(|holder| (holder.name, holder.role));
    assert_eq!(holder(&ci.secret), Some(("ci".into(), Role::Submit)));
    assert_eq!(holder(&ops.secret), Some(("ops".into(), Role::Admin)));
    let digest = ci.line.rsplit(' ').next().unwrap();
    for other in ["", "bw_", digest, &ci.secret[..ci.secret.len() - 1], &"x".repeat(MAX_SHOWN + 1)] {
        assert_eq!(tokens.find(other.as_bytes()), None, "{other}");
    }
    assert_ne!(ci.secret, Issued::new("ci", Role::Submit).unwrap().secret);
}

#[test]
fn a_token_is_issued_with_its_scope_on_its_line() {
    let issued = || Issued::new("ci", Role::Submit).unwrap();
    let scoped = issued().scope(&["kinds=mail", "max_priority=3 max_open_jobs=9"]).unwrap();
    assert!(scoped.line.ends_with(" kinds=mail max_priority=3 max_open_jobs=9"), "{}", scoped.line);
    let holder = parse(&format!("{} # nightly", scoped.line)).unwrap().find(scoped.secret.as_bytes());
    assert_eq!(holder.unwrap().scope.max_open_jobs, Some(9));
    for (words, said) in [(["priority=3"], "the keys after the digest"), (["kinds=a#"], "it contains '#'")] {
        let error = issued().scope(&words).unwrap_err().to_string();
        assert!(error.starts_with("the scope is malformed: ") && error.contains(said), "{error}");
    }
}

#[test]
fn a_certificate_is_found_by_one_of_its_names_if_only_one_line_has_it() {
    let ci = Issued::new("ci", Role::Submit).unwrap();
    let tokens = format!(
        "{}\nbackup operate uri:spiffe://example/backup max_priority=3 # nightly\nweb read dns:Web.example\n",
        ci.line
    );
    let tokens = parse(&tokens).unwrap();
    let names = |words: &[&str]| {
        words.iter().map(|word| SubjectName::parse(word).unwrap().unwrap()).collect::<Vec<_>>()
    };
    let holder =
        |words: &[&str]| tokens.find_certificate(&names(words)).map(|holder| (holder.name, holder.role));
    let backup = Some(("backup".into(), Role::Operate));
    assert_eq!(holder(&["uri:spiffe://example/backup"]), backup);
    assert_eq!(holder(&["dns:other.example", "uri:spiffe://example/backup"]), backup);
    assert_eq!(holder(&["dns:web.example"]), Some(("web".into(), Role::Read)));
    for other in [
        &[][..],
        &["uri:spiffe://example/backup/"],
        &["uri:spiffe://example/BACKUP"],
        &["dns:a.web.example"],
        &["dns:web.example", "uri:spiffe://example/backup"],
    ] {
        assert_eq!(holder(other), None, "{other:?}");
    }
    // A name is not a secret: it is no token.
    for shown in ["uri:spiffe://example/backup", "spiffe://example/backup", "dns:web.example", "web.example"]
    {
        assert_eq!(tokens.find(shown.as_bytes()), None, "{shown}");
    }
}

#[test]
fn neither_secrets_nor_digests_are_shown() {
    let ci = Issued::new("ci", Role::Submit).unwrap();
    let tokens = parse(&ci.line).unwrap();
    assert_eq!(format!("{tokens:?} {ci:?}"), "[(\"ci\", Submit)] Issued { .. }");
    // A secret in a wrong place.
    for line in [&*ci.secret, &format!("ci {} x", ci.secret), &format!("ci read {}", ci.secret)] {
        let said = parse(line).unwrap_err().to_string();
        assert!(!said.contains(&ci.secret[3..]), "{said}");
    }
}

#[test]
fn an_invalid_file_is_reported_with_its_line_and_the_expected_format() {
    let digest = "ab".repeat(32);
    let good = format!("ci read sha256:{digest}");
    for (text, said) in [
        ("ci read".to_owned(), "tokens, line 1: it has fewer than three words"),
        (format!("{good}\nci read sha256:{digest}"), "tokens, line 2: the name ci is already in use"),
        (
            format!("#\nci root sha256:{digest}"),
            "tokens, line 2: not a role: allowed are read, submit, operate, admin",
        ),
        (format!("c/i read sha256:{digest}"), "tokens, line 1: node id has '/' at byte 1"),
        (
            "ci read sha256:+b".to_owned(),
            "tokens, line 1: the digest is not `sha256:` and 64 hexadecimal digits",
        ),
        (format!("ci read sha256:{}", "+b".repeat(32)), "tokens, line 1: the digest is not"),
        (format!("ci read md5:{digest}"), "tokens, line 1: the digest is not"),
        ("ci read dns:*.example".to_owned(), "tokens, line 1: the DNS name of a certificate cannot be"),
        (
            "ci read uri:spiffe://a/b#c".to_owned(),
            "tokens, line 1: the URI of a certificate cannot contain '#'",
        ),
        (
            "ci read dns:a.example\nweb admin dns:A.example".to_owned(),
            "tokens, line 2: another line has the same certificate",
        ),
        ("# nobody\n".to_owned(), "tokens contains no token: create one"),
    ] {
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
    let many = (0..=MAX_TOKENS).map(|n| format!("t{n} read sha256:{digest}\n")).collect::<String>();
    assert_eq!(
        parse(&many).unwrap_err().to_string(),
        "tokens contains 1001 tokens: at most 1000 are allowed"
    );
}
