//! pprof's profiles in and out: protobuf, with gzip around it or without.

mod message;
mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;
