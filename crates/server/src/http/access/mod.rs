//! Who may do what.
//!
//! A caller shows a bearer token. What is known of a token is its name, its [`Role`] and its SHA-256, so a file of
//! tokens that leaks opens nothing: tokens are 256 random bits, which nobody guesses from a digest. A gateway without
//! tokens takes everybody for an admin, which is why it listens on the loopback interface only, unless told otherwise.

mod role;
mod token;

pub use role::Role;
pub use token::{Issued, MAX_TOKENS, TokenError, Tokens};
