//! Escapes words from outside, and suggests what a wrong word meant.
//!
//! Names of events, files, commands and relations are written by others. None of them reaches a
//! terminal, a page or a picture but through [`shown()`] or [`quoted`].

pub mod glob;
mod shown;
mod suggest;

pub use shown::{is_hidden, push_shown, quoted, shown};
pub use suggest::{MOST, nearest};
