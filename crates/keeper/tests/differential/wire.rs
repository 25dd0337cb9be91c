//! ZooKeeper's encoding, written separately for this test: with the keeper's own codec an error would cancel out.

/// Encodes requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn int(mut self, value: i32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn long(mut self, value: i64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn bool(mut self, value: bool) -> Self {
        self.0.push(u8::from(value));
        self
    }

    /// Appends a buffer; `None` is the null buffer, with length −1.
    pub(crate) fn buffer(self, bytes: Option<&[u8]>) -> Self {
        match bytes {
            None => self.int(-1),
            Some(bytes) => {
                let length = i32::try_from(bytes.len()).expect("test data are far below 2 GiB");
                let mut with_length = self.int(length);
                with_length.0.extend(bytes);
                with_length
            }
        }
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    /// Appends a vector of strings.
    pub(crate) fn strings(self, strings: &[Vec<u8>]) -> Self {
        let count = i32::try_from(strings.len()).expect("a small number");
        strings.iter().fold(self.int(count), |writer, string| writer.buffer(Some(string)))
    }
}

/// Decodes replies; every method returns `None` if the bytes end too early.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn bool(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// Reads a buffer. The outer `None` means that the bytes end too early, the inner one a null buffer.
    pub(crate) fn buffer(&mut self) -> Option<Option<&'a [u8]>> {
        match self.int()? {
            -1 => Some(None),
            length => self.take(usize::try_from(length).ok()?).map(Some),
        }
    }
}

/// Formats bytes for the report, so that different bytes have different texts.
pub(crate) fn readable(bytes: &[u8]) -> String {
    const SHOWN: usize = 60;
    if bytes.len() <= SHOWN {
        return format!("\"{}\"", bytes.escape_ascii());
    }
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("\"{}…\" ({} bytes, hash {hash:016x})", bytes[..SHOWN].escape_ascii(), bytes.len())
}
