//! Helpers that several test binaries share.

pub mod imports;
