//! The formats of pictures.

/// Format of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PictureFormat {
    /// Characters only.
    #[default]
    Text,
    /// Characters with escape sequences for their colours.
    Ansi,
    /// A drawing that shows the same in every browser.
    Svg,
}
