//! The stored form, chains, and the bytes that a context authenticates.

use bellwether_core::job::{ContentType, Payload};
use bellwether_core::name::{JobId, Kind};

use super::*;

/// Appends the binding of its context, and expects it.
struct Bind;

impl PayloadCodec for Bind {
    async fn encode(&self, plain: Vec<u8>, context: &CodecContext) -> Result<Vec<u8>, CodecError> {
        Ok([plain, context.binding()].concat())
    }

    async fn decode(&self, encoded: Vec<u8>, context: &CodecContext) -> Result<Vec<u8>, CodecError> {
        let plain = encoded.strip_suffix(context.binding().as_slice());
        plain.map(<[u8]>::to_vec).ok_or_else(|| CodecError::invalid("of another context"))
    }

    fn accepts_plain(&self) -> bool {
        false
    }
}

/// Appends a byte, and expects it.
struct Mark(u8);

impl PayloadCodec for Mark {
    async fn encode(&self, plain: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        Ok([plain, vec![self.0]].concat())
    }

    async fn decode(&self, mut encoded: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        if encoded.pop() == Some(self.0) { Ok(encoded) } else { Err(CodecError::invalid("another mark")) }
    }
}

fn text(text: &str) -> Payload {
    Payload::new(ContentType::new("text/plain").unwrap(), text.as_bytes()).unwrap()
}

fn kind(kind: &str) -> Kind {
    Kind::new(kind).unwrap()
}

fn id(id: &str) -> JobId {
    JobId::new(id).unwrap()
}

#[tokio::test]
async fn a_stored_payload_is_decoded_only_in_its_own_context() {
    let codec = Codec::new(Bind);
    let (sum, a) = (kind("sum"), id("a"));
    let context = CodecContext::new(Part::Payload, sum.clone(), a.clone());
    let stored = codec.encode(&text("1"), &context).await.unwrap();
    assert!(is_encoded(&stored) && !is_for_kind(&stored));
    let decode = async |part, kind: &Kind, job: &JobId| codec.decode(&stored, (part, kind, job)).await;
    assert_eq!(decode(Part::Payload, &sum, &a).await, Ok(text("1")));
    for (part, kind, job) in
        [(Part::Result, &sum, &a), (Part::Payload, &kind("su"), &a), (Part::Payload, &sum, &id("b"))]
    {
        assert!(decode(part, kind, job).await.is_err(), "{part} of {kind} {job}");
    }
}

#[tokio::test]
async fn the_payload_of_a_schedule_is_decoded_for_each_job_of_its_kind() {
    let codec = Codec::new(Bind);
    let sum = kind("sum");
    let stored =
        codec.encode(&text("1"), &CodecContext::new(Part::Payload, sum.clone(), None)).await.unwrap();
    assert!(is_encoded(&stored) && is_for_kind(&stored));
    for job in ["a", "b"] {
        let decoded = codec.decode(&stored, (Part::Payload, &sum, &id(job))).await;
        assert_eq!(decoded, Ok(text("1")));
    }
    // The content type is not authenticated, but the context that follows from it is.
    let moved = Payload::new(ContentType::new("application/vnd.bellwether.encoded").unwrap(), stored.bytes());
    let refused = codec.decode(&moved.unwrap(), (Part::Payload, &sum, &id("a"))).await;
    assert_eq!(refused, Err(CodecError::invalid("of another context")));
}

#[tokio::test]
async fn plain_bytes_are_accepted_only_by_a_codec_that_says_so_or_from_the_leader() {
    let (sum, a) = (kind("sum"), id("a"));
    let value = (Part::Payload, &sum, &a);
    let strict = Codec::new(Mark(1).then(Bind));
    let refused = strict.decode(&text("1"), value).await.unwrap_err();
    assert!(refused.to_string().contains("stored without a codec") && !refused.is_retryable());
    let (join, of_group) = (kind("sum.join"), id("sum.join:@november"));
    assert_eq!(strict.decode(&text("1"), (Part::Payload, &join, &of_group)).await, Ok(text("1")));
    assert!(strict.decode(&text("1"), (Part::Result, &join, &of_group)).await.is_err());
    let lenient = Codec::new(Mark(1).then(Mark(2)));
    assert_eq!(lenient.decode(&text("1"), value).await, Ok(text("1")));
}

#[tokio::test]
async fn a_chain_decodes_in_the_reverse_order() {
    let context = CodecContext::new(Part::Result, kind("sum"), id("a"));
    let chain = Mark(1).then(Mark(2)).then(Mark(3));
    let encoded = chain.encode(vec![7], &context).await.unwrap();
    assert_eq!(encoded, [7, 1, 2, 3]);
    assert_eq!(chain.decode(encoded, &context).await, Ok(vec![7]));
}

#[test]
fn a_part_has_a_name_and_the_debug_text_of_a_codec_names_its_trait() {
    assert_eq!([Part::Payload, Part::Result].map(|part| part.to_string()), ["payload", "result"]);
    assert_eq!(format!("{:?}", Codec::new(Mark(1))), "PayloadCodec");
}

#[tokio::test]
async fn an_encoded_payload_over_64_kib_is_refused_with_its_size() {
    let codec = Codec::new(Mark(1));
    let context = CodecContext::new(Part::Payload, kind("sum"), id("a"));
    let large = Payload::plain(ContentType::json(), vec![b'1'; 65_536]).unwrap();
    let refused = codec.encode(&large, &context).await.unwrap_err();
    assert!(refused.to_string().starts_with("it has, once encoded, 65555 bytes: at most 65536"), "{refused}");
}

#[test]
fn a_malformed_frame_is_refused_with_its_reason() {
    for (frame, reason) in [
        (&[][..], "its frame is cut"),
        (&[1], "its frame is cut"),
        (&[1, 3, b'a', b'/'], "its frame is cut"),
        (&[2, 0], "its frame has version 2: only 1 is known"),
        (&[1, 0], "content type \"\" is not 1 to 127 visible ASCII characters"),
    ] {
        assert_eq!(unframed(frame).unwrap_err().to_string(), reason, "{frame:?}");
    }
    assert_eq!(unframed(&framed(&text(""))), Ok(text("")));
}
