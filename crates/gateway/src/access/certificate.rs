//! Names of client certificates.
//!
//! A certificate is known by the names in its extension Subject Alternative Name: `uri:spiffe://example.org/ci` or
//! `dns:ci.example.org`. The Common Name counts for nothing: it has no type, and RFC 9525 no longer uses it.

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// Maximum bytes of a name, as for a URI in SPIFFE. Longer names of a certificate count for nothing.
const MAX_BYTES: usize = 2_048;

/// A name of a certificate, with its type. Names are compared as a whole: there are no patterns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SubjectName(Box<str>);

impl SubjectName {
    /// Parses a word of the token file; `None` if the word is not one of a certificate.
    pub(super) fn parse(word: &str) -> Option<Result<Self, &'static str>> {
        let parsed = match word.split_once(':')? {
            ("uri", name) if name.contains(':') => Ok(Self::uri(name)),
            ("uri", _) => Err("the URI of the certificate has no scheme"),
            ("dns", "") => Err("the DNS name of the certificate is empty"),
            ("dns", name) if name.contains('*') => Err("the DNS name of a certificate cannot be a pattern"),
            ("dns", name) => Ok(Self::dns(name)),
            (_, _) => return None,
        };
        Some(parsed.and_then(|name| name.ok_or("the name of the certificate is too long")))
    }

    /// Returns the names of a certificate that was verified.
    pub(crate) fn all(certificate: &CertificateDer<'_>) -> Box<[Self]> {
        let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Box::default() };
        let uris = certificate.valid_uri_names().filter_map(Self::uri);
        uris.chain(certificate.valid_dns_names().filter_map(Self::dns)).collect()
    }

    fn uri(name: &str) -> Option<Self> {
        (name.len() <= MAX_BYTES).then(|| Self(format!("uri:{name}").into()))
    }

    /// DNS names do not distinguish capitals.
    fn dns(name: &str) -> Option<Self> {
        (name.len() <= MAX_BYTES).then(|| Self(format!("dns:{}", name.to_ascii_lowercase()).into()))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn parse(word: &str) -> Result<SubjectName, &'static str> {
        SubjectName::parse(word).unwrap()
    }

    #[test]
    fn names_of_a_certificate_are_those_of_its_extension_and_not_its_common_name() {
        let mut params =
            CertificateParams::new(vec!["CI.example".to_owned(), "10.0.0.7".to_owned()]).unwrap();
        params.subject_alt_names.push(SanType::URI("spiffe://example/ci".try_into().unwrap()));
        params.subject_alt_names.push(SanType::Rfc822Name("ci@example".try_into().unwrap()));
        params.distinguished_name.push(DnType::CommonName, "admin");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let names = SubjectName::all(certificate.der());
        assert_eq!(*names, [parse("uri:spiffe://example/ci").unwrap(), parse("dns:ci.EXAMPLE").unwrap()]);
        assert_eq!(*SubjectName::all(&CertificateDer::from(vec![0x30, 0x80])), []);
    }

    #[test]
    fn a_name_has_a_type_and_a_bound_and_no_pattern() {
        for (word, said) in [
            ("uri:ci", "the URI of the certificate has no scheme"),
            ("dns:", "the DNS name of the certificate is empty"),
            ("dns:*.example", "the DNS name of a certificate cannot be a pattern"),
            (&*format!("dns:{}", "x".repeat(MAX_BYTES + 1)), "the name of the certificate is too long"),
        ] {
            assert_eq!(parse(word), Err(said), "{word}");
        }
        assert_eq!(SubjectName::parse("sha256:ab"), None);
        assert_eq!(SubjectName::parse("ci"), None);
        assert_ne!(parse("uri:dns:ci").unwrap(), parse("dns:ci").unwrap());
    }
}
