//! Helpers that several test binaries share.

pub(crate) mod imports;
