//! Empty: see `tests/s3.rs`.
