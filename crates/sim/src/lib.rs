//! Proof of Bellwether's invariants.
