//! Splits a byte stream into frames, in one reused buffer.
//!
//! A frame is a big-endian length followed by that many bytes. The buffer grows only for an announced frame within the
//! limit, and only as its bytes arrive. It shrinks when it is empty.

use super::limits::{BUFFER_KEEPS, FRAME_BYTES, LONG_BYTES};

/// Free space reserved for each read.
const ROOM: usize = 32 * 1024;

/// An invalid frame length: negative or above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid frame length {0}: at most {FRAME_BYTES} bytes are allowed")]
pub(super) struct BadLength(pub i32);

/// Received bytes that are not consumed yet.
#[derive(Debug, Default)]
pub(super) struct Frames {
    buffer: Vec<u8>,
    /// Offset of the first unconsumed byte.
    start: usize,
}

impl Frames {
    /// Returns the buffer for the next read: it always has free space, and little more than the current frame needs.
    pub(super) fn space(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if self.buffer.is_empty() && self.buffer.capacity() > BUFFER_KEEPS {
            self.buffer = Vec::new();
        }
        self.buffer.reserve(ROOM);
        &mut self.buffer
    }

    /// Returns the first four bytes, which can be a four-letter word instead of a length.
    pub(super) fn first_four(&self) -> Option<[u8; 4]> {
        self.rest().first_chunk().copied()
    }

    /// Returns the next complete frame, without its length.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, BadLength> {
        let Some(announced) = self.rest().first_chunk().copied().map(i32::from_be_bytes) else {
            return Ok(None);
        };
        let length = usize::try_from(announced)
            .ok()
            .filter(|length| *length <= FRAME_BYTES)
            .ok_or(BadLength(announced))?;
        let begin = self.start + size_of::<i32>();
        if self.buffer.len() < begin + length {
            return Ok(None);
        }
        self.start = begin + length;
        Ok(Some(&self.buffer[begin..begin + length]))
    }

    /// Whether the next frame is complete and long: decoding and handling it can take milliseconds.
    pub(super) fn has_long(&self) -> bool {
        let announced = self.rest().first_chunk().copied().map(i32::from_be_bytes);
        let length = announced.and_then(|announced| usize::try_from(announced).ok()).unwrap_or(0);
        length >= LONG_BYTES && self.received() >= size_of::<i32>() + length
    }

    /// Returns the number of bytes that are not consumed yet.
    pub(super) fn received(&self) -> usize {
        self.rest().len()
    }

    /// Returns the memory of the buffer beyond what each connection keeps.
    pub(super) fn held(&self) -> usize {
        self.buffer.capacity().saturating_sub(BUFFER_KEEPS)
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(body: &[u8]) -> Vec<u8> {
        let mut frame = i32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
        frame.extend(body);
        frame
    }

    #[test]
    fn frames_are_unchanged_wherever_the_stream_is_split() {
        let bodies = [&b"first"[..], b"", b"third one"];
        let stream: Vec<u8> = bodies.iter().flat_map(|body| framed(body)).collect();
        for cut in 0..=stream.len() {
            let mut frames = Frames::default();
            let mut seen = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                frames.space().extend(part);
                while let Some(frame) = frames.next().unwrap() {
                    seen.push(frame.to_vec());
                }
            }
            assert_eq!(seen, bodies, "cut at {cut}");
        }
    }

    #[test]
    fn negative_and_excessive_lengths_are_rejected() {
        for length in [-1, i32::MIN, i32::try_from(FRAME_BYTES).unwrap() + 1, i32::MAX] {
            let mut frames = Frames::default();
            frames.space().extend(length.to_be_bytes());
            assert_eq!(frames.next(), Err(BadLength(length)));
        }
    }

    #[test]
    fn the_longest_frame_is_read_and_its_memory_is_released() {
        let mut frames = Frames::default();
        let body = vec![7; FRAME_BYTES];
        for part in framed(&body).chunks(ROOM) {
            frames.space().extend(part);
        }
        assert_eq!(frames.next().unwrap().map(<[u8]>::len), Some(FRAME_BYTES));
        assert!(frames.space().capacity() <= BUFFER_KEEPS, "{}", frames.buffer.capacity());
    }

    /// Splits a stream that arrives in these pieces; returns all frames and the error, if any.
    fn cut(stream: &[u8], mut piece: impl FnMut() -> usize) -> (Vec<Vec<u8>>, Option<BadLength>) {
        let (mut frames, mut seen, mut rest) = (Frames::default(), Vec::new(), stream);
        while !rest.is_empty() {
            let (arrived, later) = rest.split_at(piece().clamp(1, rest.len()));
            rest = later;
            frames.space().extend(arrived);
            loop {
                match frames.next() {
                    Ok(Some(frame)) => seen.push(frame.to_vec()),
                    Ok(None) => break,
                    Err(refused) => return (seen, Some(refused)),
                }
            }
            assert!(
                frames.buffer.capacity() <= stream.len() + 2 * ROOM,
                "an announced length allocates nothing"
            );
        }
        (seen, None)
    }

    #[test]
    fn any_bytes_are_split_into_the_same_frames_in_any_pieces() {
        let seed = fastrand::u64(..);
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..3_000 {
            let mut stream = Vec::new();
            for _ in 0..rng.usize(..6) {
                match rng.u32(..8) {
                    0 => stream.extend((0..rng.usize(..9)).map(|_| rng.u8(..))),
                    _ => stream.extend(framed(&vec![rng.u8(..); rng.usize(..40)])),
                }
            }
            let whole = cut(&stream, || usize::MAX);
            assert_eq!(cut(&stream, || rng.usize(1..9)), whole, "seed {seed}: {}", stream.escape_ascii());
        }
    }
}
