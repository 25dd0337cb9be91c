//! A codec that encrypts with AES-256-GCM, with several keys.
//!
//! | bytes | content |
//! | --- | --- |
//! | 4 | `BWE1`: the format and its version |
//! | 4 | the id of the key, big endian |
//! | 12 | the nonce: random, so one key encrypts at most 2³² values |
//! | the rest | the ciphertext, and a tag of 16 bytes |
//!
//! The tag also authenticates the id of the key and the job: a payload that is moved to another job is refused.
//!
//! **To replace a key:** add the new one to all clients and workers with [`Keys::also`]; then make it the first key of each of
//! them; remove the old one when no record has it, which is after the retention and the longest wait of a job.

use std::collections::BTreeMap;

use aes_gcm::aead::{Aead, AeadCore, KeyInit, OsRng, Payload};
use aes_gcm::{Aes256Gcm, Nonce};
use bellwether::{CodecContext, CodecError, PayloadCodec};

const FORMAT: [u8; 4] = *b"BWE1";
const NONCE_BYTES: usize = 12;

/// Keys by their ids. One of them encrypts, and all of them decrypt.
#[derive(Clone)]
pub(crate) struct Keys {
    encrypts: u32,
    keys: BTreeMap<u32, Aes256Gcm>,
}

impl Keys {
    /// Encrypts and decrypts with this key.
    pub(crate) fn new(id: u32, key: [u8; 32]) -> Self {
        Self { encrypts: id, keys: BTreeMap::new() }.also(id, key)
    }

    /// Also decrypts with this key.
    pub(crate) fn also(mut self, id: u32, key: [u8; 32]) -> Self {
        self.keys.insert(id, Aes256Gcm::new(&key.into()));
        self
    }
}

/// Returns the additional authenticated data.
fn authenticated(id: u32, context: &CodecContext) -> Vec<u8> {
    [FORMAT, id.to_be_bytes()].into_iter().flatten().chain(context.binding()).collect()
}

impl PayloadCodec for Keys {
    async fn encode(&self, plain: Vec<u8>, context: &CodecContext) -> Result<Vec<u8>, CodecError> {
        let id = self.encrypts;
        let nonce = Aes256Gcm::generate_nonce(&mut OsRng);
        let aad = authenticated(id, context);
        let sealed = self.keys[&id].encrypt(&nonce, Payload { msg: &plain, aad: &aad });
        let sealed = sealed.map_err(CodecError::invalid)?;
        Ok([&FORMAT[..], &id.to_be_bytes(), &nonce, &sealed].concat())
    }

    async fn decode(&self, encoded: Vec<u8>, context: &CodecContext) -> Result<Vec<u8>, CodecError> {
        let foreign = || CodecError::invalid("it is not encrypted in a known format");
        let (format, rest) = encoded.split_first_chunk().ok_or_else(foreign)?;
        let (id, rest) = rest.split_first_chunk().ok_or_else(foreign)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or_else(foreign)?;
        if *format != FORMAT {
            return Err(foreign());
        }
        let id = u32::from_be_bytes(*id);
        // A client may have a new key before this process has it.
        let key =
            self.keys.get(&id).ok_or_else(|| CodecError::retryable(format!("key {id} is not known")))?;
        let aad = authenticated(id, context);
        key.decrypt(Nonce::from_slice(nonce), Payload { msg: sealed, aad: &aad }).map_err(|_| {
            CodecError::invalid(format!(
                "it was changed, belongs to another job, or key {id} has another value"
            ))
        })
    }

    /// A plain payload is from a submitter without a key.
    fn accepts_plain(&self) -> bool {
        false
    }
}
