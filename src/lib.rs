//! Bellwether.
