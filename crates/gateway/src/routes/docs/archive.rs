//! Reads an archive in the format zip, without its extensions for large and encrypted archives.
//!
//! An entry keeps its compressed bytes. A body with the coding gzip has the same bytes between another header and trailer (RFC 1952), so
//! nothing is compressed again.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

/// A file of the archive.
pub(super) struct Entry {
    is_deflated: bool,
    checksum: [u8; 4],
    size: [u8; 4],
    bytes: &'static [u8],
}

impl Entry {
    /// As a body with the coding gzip; `None` if the archive has it uncompressed.
    pub(super) fn gzip(&self) -> Option<Vec<u8>> {
        /// Compressed with deflate, without a name and a time, by an unknown system.
        const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
        self.is_deflated.then(|| [&HEADER, self.bytes, &self.checksum, &self.size].concat())
    }

    /// The content.
    pub(super) fn plain(&self) -> Vec<u8> {
        if !self.is_deflated {
            return self.bytes.to_vec();
        }
        let mut plain = Vec::with_capacity(u32::from_le_bytes(self.size) as usize);
        DeflateDecoder::new(self.bytes).read_to_end(&mut plain).expect("a test reads every file");
        plain
    }
}

/// The entries with their paths; `None` if the bytes are no such archive.
pub(super) fn entries(archive: &'static [u8]) -> Option<Vec<(&'static str, Entry)>> {
    const END: [u8; 4] = *b"PK\x05\x06";
    let end = archive.windows(4).rposition(|bytes| bytes == END)?;
    let mut at = four(archive, end + 16)?;
    let count = two(archive, end + 10)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let [name, extra, comment] = [two(archive, at + 28)?, two(archive, at + 30)?, two(archive, at + 32)?];
        let path = str::from_utf8(archive.get(at + 46..at + 46 + name)?).ok()?;
        let local = four(archive, at + 42)?;
        let begin = local + 30 + two(archive, local + 26)? + two(archive, local + 28)?;
        let entry = Entry {
            is_deflated: two(archive, at + 10)? == 8,
            checksum: array(archive, at + 16)?,
            size: array(archive, at + 24)?,
            bytes: archive.get(begin..begin + four(archive, at + 20)?)?,
        };
        entries.push((path, entry));
        at += 46 + name + extra + comment;
    }
    Some(entries)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn two(bytes: &[u8], at: usize) -> Option<usize> {
    array(bytes, at).map(u16::from_le_bytes).map(usize::from)
}

fn four(bytes: &[u8], at: usize) -> Option<usize> {
    array(bytes, at).map(u32::from_le_bytes).map(|value| value as usize)
}

#[cfg(test)]
mod tests {
    use flate2::Crc;
    use flate2::read::GzDecoder;
    use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;

    use super::*;

    #[test]
    fn each_file_has_the_checksum_of_the_archive_plain_and_with_gzip() {
        let entries = entries(SWAGGER_UI_VENDORED).unwrap();
        assert!(entries.len() > 100, "{} entries", entries.len());
        for (path, entry) in entries {
            let plain = entry.plain();
            let mut checksum = Crc::new();
            checksum.update(&plain);
            assert_eq!(checksum.sum().to_le_bytes(), entry.checksum, "{path}");
            if let Some(compressed) = entry.gzip() {
                let mut again = Vec::new();
                GzDecoder::new(&compressed[..]).read_to_end(&mut again).unwrap();
                assert!(again == plain, "{path}");
            }
        }
    }

    #[test]
    fn other_bytes_and_a_truncated_archive_have_no_entries() {
        assert!(entries(b"").is_none());
        assert!(entries(b"<html></html>").is_none());
        assert!(entries(b"PK\x05\x06").is_none());
        assert!(entries(&SWAGGER_UI_VENDORED[SWAGGER_UI_VENDORED.len() / 2..]).is_none());
    }
}
