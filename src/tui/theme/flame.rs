//! Computes the backgrounds of frames, one for every hue.

use std::f64::consts::TAU;

use ratatui::style::Color;

use super::color;

/// Number of hues that distinguish modules.
const HUES: usize = 12;

/// What a frame's hue is taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum HueFrom {
    /// Whose code it is: the program's own, or a library's.
    #[default]
    Origin,
    /// The module: the frames of a library look alike.
    Module,
    /// The name of the function.
    Name,
    /// The part of the samples that was taken in the frame itself.
    Own,
}

impl HueFrom {
    /// All choices, with their names in theme files.
    pub(super) const NAMES: [(&'static str, Self); 4] =
        [("origin", Self::Origin), ("module", Self::Module), ("name", Self::Name), ("self", Self::Own)];
}

/// Hue of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::tui) enum Hue {
    /// A hue that distinguishes names.
    Hash(u32),
    /// A part of a whole: the more, the nearer to the kernel's colour.
    Heat(f64),
}

/// The hues, as light and as colourful as `user`, all around the circle but for the kernel's own hue. Colours that the
/// terminal's user chose can't be turned: then the series' colours tell modules apart.
pub(super) fn hues(user: Option<Color>, kernel: Option<Color>, series: &[Color]) -> Vec<Color> {
    let Some(user) = user else { return Vec::new() };
    let (rgb, is_indexed) = match user {
        Color::Rgb(r, g, b) => ([r, g, b], false),
        Color::Indexed(index) => (color::indexed_rgb(index), true),
        named => {
            let grey = [Color::White, Color::Gray, Color::DarkGray, Color::Black, Color::Reset];
            let taken = |color: &&Color| !grey.contains(color) && Some(**color) != kernel && **color != named;
            return std::iter::once(named).chain(series.iter().filter(taken).copied()).collect();
        }
    };
    let avoided = match kernel {
        Some(Color::Rgb(r, g, b)) => color::hue([r, g, b]),
        Some(Color::Indexed(index)) => color::hue(color::indexed_rgb(index)),
        _ => 0.5,
    };
    let turned = (0..HUES).map(|i| {
        let hue = avoided + TAU * (i + 1) as f64 / (HUES + 1) as f64;
        let rgb @ [r, g, b] = color::with_hue(rgb, hue);
        if is_indexed { Color::Indexed(color::nearest_index(rgb)) } else { Color::Rgb(r, g, b) }
    });
    turned.collect()
}

/// A colour between two, where colours can be mixed; else the nearer one.
pub(super) fn mixed(cold: Color, hot: Color, part: f64) -> Color {
    match (cold, hot) {
        (Color::Rgb(r, g, b), Color::Rgb(r2, g2, b2)) => {
            let [r, g, b] = color::between([r, g, b], [r2, g2, b2], part);
            Color::Rgb(r, g, b)
        }
        _ if part < 0.5 => cold,
        _ => hot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_colours_turn_and_named_ones_take_turns() {
        let all = hues(Some(Color::Rgb(0x2f, 0x5d, 0x62)), Some(Color::Rgb(0x7a, 0x33, 0x33)), &[]);
        assert_eq!(all.len(), HUES);
        assert!(all.iter().all(|color| matches!(color, Color::Rgb(..))));
        let named = hues(Some(Color::Cyan), Some(Color::Red), &[Color::Cyan, Color::Red, Color::Blue, Color::White]);
        assert_eq!(named, [Color::Cyan, Color::Blue]);
        assert!(hues(None, None, &[Color::Blue]).is_empty());
        assert!(hues(Some(Color::Indexed(30)), None, &[]).iter().all(|color| matches!(color, Color::Indexed(16..))));
    }

    #[test]
    fn heat_goes_from_one_colour_to_the_other() {
        let (cold, hot) = (Color::Rgb(0, 0, 0), Color::Rgb(200, 0, 0));
        assert_eq!((mixed(cold, hot, 0.0), mixed(cold, hot, 1.0)), (cold, hot));
        assert_eq!(
            (mixed(Color::Blue, Color::Red, 0.4), mixed(Color::Blue, Color::Red, 0.6)),
            (Color::Blue, Color::Red)
        );
    }
}
