use std::sync::Arc;

use proptest::prelude::*;

use super::arbitrary::request;
use super::client::{
    Incoming, decode_connected, decode_incoming, decode_response, encode_connect, encode_request,
};
use super::*;

/// Returns a frame without its length, after checking the length.
fn unframed(frame: &[u8]) -> &[u8] {
    let (length, body) = frame.split_first_chunk().expect("a frame starts with a length");
    assert_eq!(u32::from_be_bytes(*length) as usize, body.len());
    body
}

fn encoded(xid: i32, request: &Request) -> Vec<u8> {
    let mut frame = Vec::new();
    encode_request(xid, request, &mut frame);
    unframed(&frame).to_vec()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("ascii"), 16).expect("hex");
    digits.chunks(2).map(byte).collect()
}

#[test]
fn the_first_frame_of_a_real_client_is_decoded() {
    let frame = hex(
        "00000000 0000000000000007 00002710 0100000000000001 00000010 000102030405060708090a0b0c0d0e0f 00",
    );
    let mut request = ConnectRequest {
        last_zxid_seen: 7,
        timeout_ms: 10_000,
        session_id: 0x0100_0000_0000_0001,
        password: (0..16).collect(),
        read_only: Some(false),
    };
    assert_eq!(decode_connect(&frame), Ok(request.clone()));
    request.read_only = None;
    assert_eq!(decode_connect(&frame[..frame.len() - 1]), Ok(request.clone()), "a client before 3.4");
    let mut ours = Vec::new();
    encode_connect(&request, &mut ours);
    assert_eq!(unframed(&ours), &frame[..frame.len() - 1]);
}

#[test]
fn a_reply_to_a_multi_is_encoded_as_by_zookeeper() {
    let answer = Response::Multi(vec![
        OpResult::Create { path: "/a".to_owned() },
        OpResult::Check,
        OpResult::Error(-2),
    ]);
    let mut frame = Vec::new();
    encode_reply(&Reply { xid: 5, zxid: 6, result: Ok(answer.clone()) }, &mut frame);
    let expected = hex("00000005 0000000000000006 00000000
         00000001 00 00000000 00000002 2f61
         0000000d 00 00000000
         ffffffff 00 fffffffe fffffffe
         ffffffff 01 ffffffff");
    assert_eq!(unframed(&frame), expected);
    let Ok(Incoming::Reply { xid: 5, zxid: 6, error: 0, body }) = decode_incoming(&expected) else {
        panic!("not a reply")
    };
    assert_eq!(decode_response(&Request::Multi(vec![]), body), Ok(answer));
}

#[test]
fn a_notification_is_encoded_as_by_zookeeper() {
    let event = WatchedEvent { kind: EventKind::NodeDeleted, path: "/a".to_owned(), zxid: -1 };
    let mut frame = Vec::new();
    encode_event(&event, &mut frame);
    let expected = hex("ffffffff ffffffffffffffff 00000000 00000002 00000003 00000002 2f61");
    assert_eq!(unframed(&frame), expected);
    assert_eq!(decode_incoming(&expected), Ok(Incoming::Event(event)));
}

#[test]
fn a_connect_response_round_trips() {
    for read_only in [None, Some(false)] {
        let response = ConnectResponse { timeout_ms: 5, session_id: 9, password: vec![3; 16], read_only };
        let mut frame = Vec::new();
        encode_connected(&response, &mut frame);
        assert_eq!(decode_connected(unframed(&frame)), Ok(response));
    }
}

#[test]
fn an_error_reply_is_only_a_header() {
    let mut frame = Vec::new();
    encode_reply(&Reply { xid: 1, zxid: 2, result: Err(ErrorCode::NoNode) }, &mut frame);
    assert_eq!(unframed(&frame), hex("00000001 0000000000000002 ffffff9b"));
}

/// A `setACL` of the root up to the scheme of its single entry.
const SET_ACL: &str = "00000001 00000007 00000001 2f 00000001 0000001f";

#[test]
fn hostile_frames_are_malformed() {
    for headless in ["", "00000001 000000"] {
        assert!(decode_request(&hex(headless), Compat::V3_9).is_err());
    }
    let malformed = |frame: &str, intent| {
        assert_eq!(decode_request(&hex(frame), Compat::V3_9), Ok((1, Request::Malformed(intent))), "{frame}");
    };
    malformed("00000001 00000004", Intent::Read); // no path
    malformed("00000001 00000004 fffffffe", Intent::Read); // a negative length
    malformed("00000001 00000004 ffffffff 00", Intent::Read); // a null path
    malformed("00000001 00000004 7fffffff 2f", Intent::Read); // beyond the end of the frame
    malformed("00000001 00000004 00000001 2f", Intent::Read); // no flag
    malformed("00000001 00000001 00000001 2f 00000000 7fffffff 00000000", Intent::Write); // an ACL of two billion
    malformed("00000001 00000065 0000000000000000 40000000 00000000 00000000", Intent::Read); // a billion watches
    malformed("00000001 00000065 0000000000000000 ffffffff ffffffff ffffffff", Intent::Read); // null vectors
    malformed("00000001 0000000e 00000063 00 ffffffff", Intent::Multi); // an unknown operation
    malformed("00000001 0000000e 00000001 00", Intent::Multi); // half a header
    malformed("00000001 0000000e", Intent::Multi); // a multi without an end marker
    malformed(
        "00000001 00000016 0000000d 00 ffffffff 00000001 2f ffffffff ffffffff 01 ffffffff",
        Intent::Read,
    ); // not a read
    malformed(&format!("{SET_ACL} 00000002 6970 ffffffff ffffffff"), Intent::Write); // a null id, for `ip`
    malformed("00000001 0000006a 00000001 2f 00000009", Intent::Read); // an unknown mode
    malformed("00000001 00000011 00000001 2f 00000009", Intent::Read); // an unknown kind
    malformed("00000001 00000010", Intent::Read); // a reconfig without a body
    malformed("00000001 00000064 00000000 00000009", Intent::Auth); // a truncated scheme
}

#[test]
fn irregular_frames_that_java_accepts_are_decoded() {
    let read = |frame: &str| decode_request(&hex(frame), Compat::V3_9).expect(frame).1;
    let get = |path: &str, watch| Request::GetData { path: path.to_owned(), watch };
    assert_eq!(read("00000001 00000004 00000001 2f 07"), get("/", true), "every byte except 0 is true");
    assert_eq!(read("00000001 00000004 00000001 2f 00 dead"), get("/", false), "trailing bytes are ignored");
    assert_eq!(read("00000001 00000004 00000002 2fff 00"), get("/\u{fffd}", false), "invalid UTF-8");
    let spelled = read("00000001 00000004 00000008 2feda080fffe2fc3 00");
    assert_eq!(spelled, get("/\u{fffd}\u{fffd}\u{fffd}/\u{fffd}", false), "one replacement per surrogate");
    assert_eq!(read("00000001 0000270f"), Request::Unsupported { code: 9999 });
    assert_eq!(read("00000001 00000067 ffffffff"), Request::GetEphemerals { prefix: String::new() });
    let reconfig = "00000001 00000010 ffffffff ffffffff 00000001 78 ffffffffffffffff";
    assert_eq!(read(reconfig), Request::Unsupported { code: 16 });
    let watches = "00000001 00000065 0000000000000000 fffffffe 80000000 00000000";
    assert!(matches!(read(watches), Request::SetWatches { .. }), "a negative number of watches means none");
    let create = "00000001 00000001 00000002 2f61 ffffffff ffffffff";
    let (path, acl) = ("/a".to_owned(), vec![]);
    let expected = Op::Create { path, data: None, acl, mode: CreateMode::Persistent, stat: false };
    assert_eq!(read(&format!("{create} 00000000")), Request::Write(expected.clone()), "null data, null list");
    assert_eq!(
        read(&format!("{create} 00000004")),
        Request::Write(expected),
        "the container flag of a create is ignored"
    );
    assert_eq!(read(&format!("{create} 00000063")), Request::Write(Op::Unknown { code: 1 }));

    let null_id = format!("{SET_ACL} 00000004 61757468 ffffffff ffffffff"); // auth
    let id = Id { scheme: "auth".to_owned(), id: String::new() };
    let expected =
        Request::SetAcl { path: "/".to_owned(), acl: vec![Acl { permissions: 31, id }], version: -1 };
    assert_eq!(read(&null_id), expected, "kazoo's CREATOR_ALL_ACL");
}

#[test]
fn the_code_of_a_create_container_in_a_multi_overrides_its_flags_in_3_9_only() {
    use CreateMode::{Container, ContainerSequential, EphemeralSequential, Persistent};
    let modes = [
        (0, Persistent, Container),
        (3, EphemeralSequential, ContainerSequential),
        (4, Container, Container),
    ];
    for (flags, in_3_8, in_3_9) in modes {
        // The path `/a`, null data, an empty ACL.
        let multi = format!(
            "00000001 0000000e 00000013 00 ffffffff 00000002 2f61 ffffffff 00000000 {flags:08x} ffffffff 01 ffffffff"
        );
        for (compat, mode) in [(Compat::V3_8_0, in_3_8), (Compat::V3_9, in_3_9)] {
            let create = Op::Create { path: "/a".to_owned(), data: None, acl: vec![], mode, stat: true };
            let expected = Ok((1, Request::Multi(vec![create])));
            assert_eq!(decode_request(&hex(&multi), compat), expected, "{flags}, {compat:?}");
        }
    }
}

fn compat() -> impl Strategy<Value = Compat> {
    prop::sample::select(vec![Compat::V3_9, Compat::V3_8_0])
}

fn stat() -> impl Strategy<Value = Stat> {
    (any::<[i64; 5]>(), any::<[i32; 5]>(), any::<i64>()).prop_map(|(long, int, owner)| Stat {
        czxid: long[0],
        mzxid: long[1],
        ctime: long[2],
        mtime: long[3],
        version: int[0],
        cversion: int[1],
        aversion: int[2],
        ephemeral_owner: owner,
        data_length: int[3],
        num_children: int[4],
        pzxid: long[4],
    })
}

/// A request and a reply to it.
fn exchange() -> impl Strategy<Value = (Request, Response)> {
    let path = || "/[a-z]{0,5}";
    let data = || prop::option::of(prop::collection::vec(any::<u8>(), 0..9).prop_map(Arc::<[u8]>::from));
    let names = || prop::collection::vec("[a-z]{0,5}", 0..4);
    let acl = prop::collection::vec((any::<i32>(), "[a-z]{1,3}", "[a-z]{0,3}"), 0..3).prop_map(|entries| {
        let entry = |(permissions, scheme, id)| Acl { permissions, id: Id { scheme, id } };
        entries.into_iter().map(entry).collect::<Vec<_>>()
    });
    let ids = prop::collection::vec(("[a-z]{1,3}", "[a-z]{0,3}"), 0..3)
        .prop_map(|ids| ids.into_iter().map(|(scheme, id)| Id { scheme, id }).collect());
    let result = prop_oneof![
        path().prop_map(|path| OpResult::Create { path }),
        (path(), stat()).prop_map(|(path, stat)| OpResult::Create2 { path, stat }),
        Just(OpResult::Delete),
        stat().prop_map(OpResult::SetData),
        Just(OpResult::Check),
        (data(), stat()).prop_map(|(data, stat)| OpResult::GetData { data, stat }),
        names().prop_map(OpResult::GetChildren),
        any::<i32>().prop_map(OpResult::Error),
    ];
    let text = String::new;
    let create = move |stat| {
        Request::Write(Op::Create {
            path: text(),
            data: None,
            acl: vec![],
            mode: CreateMode::Persistent,
            stat,
        })
    };
    let list = move |stat| Request::GetChildren { path: text(), watch: false, stat };
    let with = |request: Request| move |response| (request.clone(), response);
    prop_oneof![
        path().prop_map(Response::Path).prop_map(with(create(false))),
        (path(), stat()).prop_map(|(path, stat)| Response::PathStat(path, stat)).prop_map(with(create(true))),
        stat().prop_map(Response::Stat).prop_map(with(Request::Exists { path: text(), watch: false })),
        (data(), stat())
            .prop_map(|(data, stat)| Response::Data(data, stat))
            .prop_map(with(Request::GetData { path: text(), watch: false })),
        names().prop_map(Response::Names).prop_map(with(list(false))),
        (names(), stat())
            .prop_map(|(names, stat)| Response::NamesStat(names, stat))
            .prop_map(with(list(true))),
        (acl, stat())
            .prop_map(|(acl, stat)| Response::Acl(acl, stat))
            .prop_map(with(Request::GetAcl { path: text() })),
        any::<i32>().prop_map(Response::Count).prop_map(with(Request::CountDescendants { path: text() })),
        prop::collection::vec(result, 0..5).prop_map(Response::Multi).prop_map(with(Request::Multi(vec![]))),
        path().prop_map(Response::Synced).prop_map(with(Request::Sync { path: text() })),
        ids.prop_map(Response::Identities).prop_map(with(Request::WhoAmI)),
        Just((Request::AddWatch { path: text(), mode: AddWatchMode::Persistent }, Response::WatchAdded)),
        Just((Request::Ping, Response::Empty)),
    ]
}

proptest! {
    #[test]
    fn encoded_requests_are_decoded_unchanged(xid: i32, request in request(), compat in compat()) {
        prop_assert_eq!(decode_request(&encoded(xid, &request), compat), Ok((xid, request)));
    }

    #[test]
    fn encoded_replies_are_decoded_unchanged((request, response) in exchange(), xid in 0..i32::MAX, zxid: i64) {
        let mut frame = Vec::new();
        encode_reply(&Reply { xid, zxid, result: Ok(response.clone()) }, &mut frame);
        let incoming = decode_incoming(unframed(&frame)).expect("a reply");
        let Incoming::Reply { xid: read_xid, zxid: read_zxid, error: 0, body } = incoming else {
            panic!("{incoming:?}")
        };
        prop_assert_eq!((read_xid, read_zxid), (xid, zxid));
        prop_assert_eq!(decode_response(&request, body), Ok(response));
    }

    #[test]
    fn a_truncated_frame_is_malformed_or_still_complete(request in request(), keep in 0.0..1.0) {
        let frame = encoded(1, &request);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let kept = (frame.len() as f64 * keep) as usize;
        if let Ok((_xid, read)) = decode_request(&frame[..kept], Compat::V3_9) {
            let cut = matches!(read, Request::Malformed(_));
            prop_assert!(cut || read == request, "only ignored bytes were cut off");
        }
    }

    #[test]
    fn any_bytes_are_decoded_without_a_panic(
        code in prop_oneof![-12..120_i32, any::<i32>()],
        bytes in prop::collection::vec(prop_oneof![Just(0_u8), Just(0xff), 0..16_u8, any::<u8>()], 0..200),
        compat in compat(),
    ) {
        let mut frame = vec![0, 0, 0, 1];
        frame.extend(code.to_be_bytes());
        frame.extend(&bytes);
        match decode_request(&frame, compat) {
            Ok((xid, _request)) => prop_assert_eq!(xid, 1),
            Err(malformed) => panic!("a frame with a header was rejected: {malformed}"),
        }
        // Only the absence of a panic matters.
        std::hint::black_box(decode_connect(&bytes).is_ok());
    }
}
