//! The keeper's model behind the plainest server there is. Temporary.
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bellwether_keeper::model::*;
use bellwether_keeper::proto::*;

pub(crate) fn start(config: Config) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = listener.local_addr().expect("addr");
    let (tx, rx) = mpsc::channel::<(ConnectionId, Input, Option<TcpStream>)>();
    thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("accept");
            stream.set_nodelay(true).expect("nodelay");
            let tx = tx.clone();
            thread::spawn(move || {
                let id = ConnectionId(n as u64);
                let mut first = true;
                loop {
                    let mut len = [0; 4];
                    if stream.read_exact(&mut len).is_err() {
                        break;
                    }
                    let len = i32::from_be_bytes(len);
                    if len < 0 || len >= 0xfffff {
                        break;
                    }
                    let mut frame = vec![0; len as usize];
                    if stream.read_exact(&mut frame).is_err() {
                        break;
                    }
                    let input = if first {
                        let Ok(request) = decode_connect(&frame) else { break };
                        Input::Connect { request, peer: "127.0.0.1".parse().expect("ip"), password: [(n + 1) as u8; 16] }
                    } else {
                        match decode_request(&frame) {
                            Ok((xid, request)) => Input::Request { xid, request },
                            Err(MalformedRequest { xid: Some(xid), .. }) => Input::Malformed { xid },
                            Err(_) => break,
                        }
                    };
                    let clone = first.then(|| stream.try_clone().expect("clone"));
                    first = false;
                    tx.send((id, input, clone)).expect("send");
                }
                drop(stream.shutdown(Shutdown::Both));
                drop(tx.send((id, Input::Disconnected, None)));
            });
        }
    });
    thread::spawn(move || {
        let t0 = Instant::now();
        let now = || Now {
            wall_ms: SystemTime::now().duration_since(UNIX_EPOCH).expect("t").as_millis() as i64,
            monotonic_ms: t0.elapsed().as_millis() as u64,
        };
        let mut model = Model::new(config, now());
        let mut sockets = HashMap::new();
        let mut out = Vec::new();
        while let Ok((id, input, stream)) = rx.recv() {
            if let Some(stream) = stream {
                sockets.insert(id, stream);
            }
            model.handle(now(), id, input, &mut out);
            for effect in out.drain(..) {
                let mut bytes = Vec::new();
                match effect {
                    Effect::Connected(id, r) => {
                        encode_connected(&r, &mut bytes);
                        drop(sockets.get_mut(&id).map(|s| s.write_all(&bytes)));
                    }
                    Effect::Reply(id, r) => {
                        encode_reply(&r, &mut bytes);
                        drop(sockets.get_mut(&id).map(|s| s.write_all(&bytes)));
                    }
                    Effect::Notify(id, r) => {
                        encode_event(&r, &mut bytes);
                        drop(sockets.get_mut(&id).map(|s| s.write_all(&bytes)));
                    }
                    Effect::Close(id) => {
                        drop(sockets.remove(&id).map(|s| s.shutdown(Shutdown::Both)));
                    }
                }
            }
        }
    });
    address
}
