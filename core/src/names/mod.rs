//! Escapes names from outside, shortens those of functions, suggests what a misspelt one meant, and matches globs.
//!
//! Names of events, files, commands and relations are written by others. None of them reaches a
//! terminal, a page or a picture but through [`shown()`], [`shown_path`], [`quoted`], [`markup`] or [`markdown`].

mod escape;
mod first;
pub mod glob;
mod short;
mod suggest;

pub use escape::{for_shell, in_path, is_hidden, markdown, markup, push_shown, quoted, quoted_path, shown, shown_path};
pub use first::first_of;
pub use short::short_name;
pub use suggest::{MAX_SUGGESTIONS, nearest};
