//! Shares helpers between test binaries.

pub(crate) mod imports;
