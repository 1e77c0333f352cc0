//! Draws flame graphs: an SVG picture or an HTML page that need nothing else, with zoom and search where a
//! script may run.
//!
//! The root is on top. What is narrower than a pixel isn't drawn; the picture says how much that is.

mod change;
mod color;
mod layout;
mod page;

pub(super) use page::{html, svg};
