#![forbid(unsafe_code)]
//! Bellwether core.
