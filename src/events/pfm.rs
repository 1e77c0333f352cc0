//! stub
#![allow(missing_docs)]
pub(super) struct Pfm {
    pub(super) canonical: String,
    pub(super) encoding: super::Encoding,
    pub(super) modifiers: super::Modifiers,
}
pub(super) fn encode(_: &str) -> Result<Pfm, ()> {
    Err(())
}
pub(super) fn names() -> Vec<String> {
    Vec::new()
}
