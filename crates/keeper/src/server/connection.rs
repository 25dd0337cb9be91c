//! The task of one connection: it reads, decodes and writes. It has no protocol semantics.
//!
//! ```text
//!  accepted ──first four bytes──► a word ──► report, close
//!      │
//!      └──first frame──► Connect ──► requests … ──► end of stream, bad frame, engine's end ──► Disconnected
//! ```
//!
//! Limits: the first frame must arrive within [`Limits::handshake_time`](super::Limits::handshake_time), a frame has at most
//! [`FRAME_BYTES`](super::limits::FRAME_BYTES), and the [`Outbox`] limits unanswered requests. At that limit the socket
//! is not read, and TCP slows the client down. The end of a connection does not end its session: the client can
//! re-attach with another connection until the session expires.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{MutexGuard, oneshot};
use tokio::time::{sleep, timeout};

use super::fourletter::{self, Report};
use super::frames::{BadLength, Frames};
use super::inbox::{Asked, Closed, Inbox, Message};
use super::limits::{BUFFER_KEEPS, FIRST_FRAME_BYTES, LINGER, READ_BYTES, TURN_REQUESTS};
use super::memory::Share;
use super::outbox::{End, Outbox, Taken};
use crate::model::ConnectionId;
use crate::proto::{self, Compat, ConnectRequest};

/// The reason why a connection ended, for the log.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("the client closed the connection")]
    EndOfStream,
    #[error("the socket failed")]
    Socket(#[from] io::Error),
    #[error("the first frame did not arrive in time")]
    Silent,
    #[error(transparent)]
    Length(#[from] BadLength),
    /// The first frame announced more than [`FIRST_FRAME_BYTES`].
    #[error("the first frame of {0} bytes is longer than {FIRST_FRAME_BYTES}")]
    LongFirst(i32),
    #[error("a frame cannot be decoded")]
    Malformed(#[source] proto::Malformed),
    #[error("the server closed the connection")]
    ByServer,
    #[error("the client did not read the bytes sent to it")]
    Unread,
    #[error("no random bytes for the session's password")]
    Unsafe(#[source] getrandom::Error),
    #[error("the server has stopped")]
    Stopped,
}

impl From<Closed> for Ended {
    fn from(_: Closed) -> Self {
        Self::Stopped
    }
}

/// The first message of a new connection.
enum First {
    Report([u8; 4], Report),
    Session(ConnectRequest, usize),
}

/// Serves one connection until it ends.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite,
    connection: ConnectionId,
    peer: SocketAddr,
    handshake: std::time::Duration,
    inbox: &Inbox,
) -> Ended {
    let stream = pin!(stream);
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut frames = Frames::default();
    let first = tokio::select! {
        first = timeout(handshake, first(&mut reader, &mut frames)) => first,
        Closed = inbox.closed() => return Ended::Stopped,
    };
    let (request, size) = match first {
        Err(_elapsed) => return Ended::Silent,
        Ok(Err(ended)) => return ended,
        Ok(Ok(First::Report(word, report))) => {
            let refused = report.refused(word, peer.ip());
            return tell(report, refused, &mut reader, &mut writer, inbox).await;
        }
        Ok(Ok(First::Session(request, size))) => (request, size),
    };

    let mut password = [0; 16];
    if let Err(error) = getrandom::fill(&mut password) {
        return Ended::Unsafe(error);
    }
    let outbox = Arc::new(Outbox::new(Share::of(Arc::clone(&inbox.memory))));
    let hello = Message::Connect { connection, request, peer, outbox: Arc::clone(&outbox), password, size };
    if inbox.send(&mut vec![hello]).await.is_err() {
        return Ended::Stopped;
    }
    let ended = tokio::select! {
        ended = read(&mut reader, &mut frames, connection, &outbox, inbox) => ended,
        ended = write(&mut writer, connection, &outbox, inbox) => ended,
        ended = cut(&outbox) => ended,
    };
    match inbox.tell(Message::Disconnected(connection)) {
        Ok(()) => ended,
        Err(Closed) => Ended::Stopped,
    }
}

async fn first(reader: &mut (impl AsyncRead + Unpin), frames: &mut Frames) -> Result<First, Ended> {
    loop {
        if let Some(word) = frames.first_four() {
            if let Some(report) = fourletter::parse(word) {
                return Ok(First::Report(word, report));
            }
            let announced = i32::from_be_bytes(word);
            if usize::try_from(announced).is_ok_and(|length| length > FIRST_FRAME_BYTES) {
                return Err(Ended::LongFirst(announced));
            }
        }
        if let Some(frame) = frames.next()? {
            let request = proto::decode_connect(frame).map_err(Ended::Malformed)?;
            return Ok(First::Session(request, frame.len()));
        }
        receive(reader, frames).await?;
    }
}

async fn receive(reader: &mut (impl AsyncRead + Unpin), frames: &mut Frames) -> Result<(), Ended> {
    match reader.take(READ_BYTES).read_buf(frames.space()).await? {
        0 => Err(Ended::EndOfStream),
        _ => Ok(()),
    }
}

/// Sends the reply to a four-letter word and ends the connection.
async fn tell(
    report: Report,
    refused: Option<String>,
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    inbox: &Inbox,
) -> Ended {
    let text = match refused {
        Some(text) => text,
        None => ask(report, inbox).await,
    };
    let sent = async {
        writer.write_all(text.as_bytes()).await?;
        writer.shutdown().await?;
        // If a socket is closed with unread bytes (the newline of `echo ruok | nc`), the client may lose the text.
        tokio::io::copy(reader, &mut tokio::io::sink()).await
    };
    match timeout(LINGER, sent).await {
        Ok(Ok(_)) => Ended::ByServer,
        Ok(Err(error)) => Ended::Socket(error),
        Err(_elapsed) => Ended::Unread,
    }
}

async fn ask(report: Report, inbox: &Inbox) -> String {
    let (answer, answered) = oneshot::channel();
    match inbox.tell(Message::Report(report, answer)) {
        Ok(()) => answered.await.unwrap_or_else(|_gone| fourletter::NOT_SERVING.to_owned()),
        Err(Closed) => fourletter::NOT_SERVING.to_owned(),
    }
}

/// Sends requests to the engine; all requests of one turn are added under one lock.
async fn read(
    reader: &mut (impl AsyncRead + Unpin),
    frames: &mut Frames,
    connection: ConnectionId,
    outbox: &Outbox,
    inbox: &Inbox,
) -> Ended {
    let mut messages = Vec::new();
    let mut held = 0;
    let mut count = |frames: &Frames| {
        outbox.share.hold(frames.held());
        outbox.share.release(std::mem::replace(&mut held, frames.held()));
    };
    let mut received = Instant::now();
    loop {
        let Ok(turn) = may_decode(frames, outbox, inbox).await else { return Ended::Stopped };
        let decoded = decode(frames, connection, received, inbox.compat, &mut messages);
        let more = messages.len() == TURN_REQUESTS;
        if !messages.is_empty() {
            outbox.asked(messages.len(), messages.iter().map(Message::weight).sum());
            if inbox.send(&mut messages).await.is_err() {
                return Ended::Stopped;
            }
            drop(turn);
            messages.shrink_to(BUFFER_KEEPS / size_of::<Message>());
            outbox.may_ask().await;
        }
        if let Err(ended) = decoded {
            return ended;
        }
        if more {
            continue;
        }
        // The client may stay silent for a long time, so the buffer is counted before the wait.
        frames.space();
        count(frames);
        if let Err(ended) = receive(reader, frames).await {
            return ended;
        }
        received = Instant::now();
        count(frames);
    }
}

/// Waits until the received frames may be decoded. A long one needs a turn, until its requests have been sent to the engine. While
/// the client does not read its replies, the engine would only park them, so the frame waits as it is.
async fn may_decode<'i>(
    frames: &Frames,
    outbox: &Outbox,
    inbox: &'i Inbox,
) -> Result<Option<MutexGuard<'i, ()>>, Closed> {
    let turn = if frames.has_long() {
        outbox.is_read().await;
        Some(inbox.long_frames.lock().await)
    } else {
        None
    };
    if !inbox.memory.may_decode(&outbox.share, frames.received()) {
        inbox.tell(Message::Crowded)?;
        inbox.memory.room().await;
    }
    Ok(turn)
}

/// Decodes complete frames, at most [`TURN_REQUESTS`]. Requests before an invalid frame are kept.
fn decode(
    frames: &mut Frames,
    connection: ConnectionId,
    received: Instant,
    compat: Compat,
    messages: &mut Vec<Message>,
) -> Result<(), Ended> {
    while messages.len() < TURN_REQUESTS
        && let Some(frame) = frames.next()?
    {
        let length = frame.len();
        let (xid, request) = proto::decode_request(frame, compat).map_err(Ended::Malformed)?;
        let size = size_of::<Message>() + length + request.parts_bytes();
        messages.push(Message::Request { connection, asked: Asked { xid, request, size, received } });
    }
    Ok(())
}

async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    connection: ConnectionId,
    outbox: &Outbox,
    inbox: &Inbox,
) -> Ended {
    let mut taken = Taken::default();
    loop {
        outbox.take(&mut taken).await;
        if let Err(error) = writer.write_all(&taken.bytes).await {
            return Ended::Socket(error);
        }
        if taken.last {
            return match writer.shutdown().await {
                Ok(()) => Ended::ByServer,
                Err(error) => Ended::Socket(error),
            };
        }
        if let Err(error) = writer.flush().await {
            return Ended::Socket(error);
        }
        if outbox.written(&mut taken) && inbox.tell(Message::Drained(connection)).is_err() {
            return Ended::Stopped;
        }
    }
}

/// Limits the time that a closing connection waits for its client.
async fn cut(outbox: &Outbox) -> Ended {
    if outbox.ended().await == End::Flushed {
        sleep(LINGER).await;
    }
    Ended::Unread
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;
    use crate::server::limits::{LONG_BYTES, REPLIES_HIGH};

    #[test]
    fn a_request_counts_its_decoded_size_and_not_its_frame_size() {
        const READS: usize = 60_000;
        let mut body = [1_i32.to_be_bytes(), 22_i32.to_be_bytes()].concat();
        for _ in 0..READS {
            // `getData` of "/", without a watch.
            body.extend(b"\0\0\0\x04\0\xff\xff\xff\xff\0\0\0\x01/\0");
        }
        body.extend(b"\xff\xff\xff\xff\x01\xff\xff\xff\xff");
        let mut frames = Frames::default();
        frames.space().extend(i32::try_from(body.len()).unwrap().to_be_bytes());
        frames.space().extend(&body);
        let mut messages = Vec::new();
        decode(&mut frames, ConnectionId(1), Instant::now(), Compat::default(), &mut messages).unwrap();
        let weight: usize = messages.iter().map(Message::weight).sum();
        assert!(weight > READS * size_of::<proto::Request>(), "{weight} for {READS} reads");
    }

    fn received(length: usize) -> Frames {
        let mut frames = Frames::default();
        frames.space().extend(i32::try_from(length).unwrap().to_be_bytes());
        frames.space().extend(vec![0; length]);
        frames
    }

    /// Whether the received frames may be decoded now.
    fn is_clear(frames: &Frames, outbox: &Outbox, inbox: &Inbox) -> bool {
        let mut waiting = pin!(may_decode(frames, outbox, inbox));
        waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn long_frames_are_decoded_one_at_a_time_and_short_ones_do_not_wait() {
        let (inbox, outbox) = (Inbox::default(), Outbox::default());
        let (long, short) = (received(LONG_BYTES), received(LONG_BYTES - 1));
        let turn = inbox.long_frames.try_lock().unwrap();
        assert!(!is_clear(&long, &outbox, &inbox));
        assert!(is_clear(&short, &outbox, &inbox));
        assert!(is_clear(&Frames::default(), &outbox, &inbox));
        drop(turn);
        assert!(is_clear(&long, &outbox, &inbox));
    }

    #[tokio::test]
    async fn a_long_frame_is_decoded_once_its_client_has_read_its_replies() {
        let (inbox, outbox) = (Inbox::default(), Outbox::default());
        let long = received(LONG_BYTES);
        outbox.share.hold(REPLIES_HIGH);
        outbox.promise(REPLIES_HIGH, 0);
        let mut waiting = pin!(may_decode(&long, &outbox, &inbox));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert!(inbox.long_frames.try_lock().is_ok(), "it waits without a turn");
        let mut taken = Taken::default();
        outbox.deliver(&mut vec![0; REPLIES_HIGH], 0);
        outbox.take(&mut taken).await;
        outbox.written(&mut taken);
        assert!(waiting.await.unwrap().is_some());
    }

    #[tokio::test]
    async fn an_idle_connection_is_not_counted_for_its_last_long_frame() {
        let (mut client, server) = tokio::io::duplex(LONG_BYTES);
        let (inbox, outbox) = (Inbox::default(), Outbox::default());
        let (mut server, mut frames) = (server, Frames::default());
        let mut reading = pin!(read(&mut server, &mut frames, ConnectionId(1), &outbox, &inbox));
        let frame = [&200_000_i32.to_be_bytes()[..], &[0; 200_000]].concat();
        let handled = async {
            client.write_all(&frame).await.unwrap();
            let mut batch = Vec::new();
            while batch.is_empty() {
                tokio::task::yield_now().await;
                inbox.take(&mut batch, Some(std::time::Duration::ZERO));
            }
            outbox.answer(1, batch.iter().map(Message::weight).sum());
        };
        tokio::select! {
            () = handled => {}
            _ended = &mut reading => panic!("the client is connected"),
        }
        assert!(reading.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(outbox.share.bytes(), 0);
    }

    #[tokio::test]
    async fn a_remote_client_cannot_list_clients_and_sessions() {
        let (mut client, server) = tokio::io::duplex(1_024);
        let inbox = Inbox::default();
        let stranger = SocketAddr::from(([192, 0, 2, 1], 4_000));
        let serving = serve(server, ConnectionId(1), stranger, crate::server::limits::HANDSHAKE, &inbox);
        let asking = async {
            let mut text = String::new();
            client.write_all(b"cons").await.unwrap();
            client.read_to_string(&mut text).await.unwrap();
            drop(client);
            text
        };
        // The inbox has no engine: a request to it would never complete.
        let (_ended, text) = tokio::join!(serving, asking);
        assert_eq!(text, "cons is not executed because it is not in the whitelist.\n");
    }
}
