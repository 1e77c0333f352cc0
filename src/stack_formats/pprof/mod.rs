//! Reads and writes pprof's profiles: protobuf, with or without gzip around it.

mod labels;
mod message;
mod read;
mod texts;
mod write;

pub(super) use read::{is_profile, read};
pub(super) use write::write;
