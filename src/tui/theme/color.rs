//! Converts a theme's colours to ones that the terminal can show.

use ratatui::style::Color;

/// How many colours a terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// 24-bit colours.
    #[default]
    TrueColor,
    /// The 256 colours of xterm.
    Indexed,
    /// The 16 named colours.
    Named,
    /// No colours: states show by glyph and word, the selection is reversed.
    Mono,
}

impl Depth {
    /// All depths, most colours first.
    pub const ALL: [Self; 4] = [Self::TrueColor, Self::Indexed, Self::Named, Self::Mono];

    /// What the environment says: `NO_COLOR` (set and not empty), `COLORTERM`, `TERM`.
    pub fn detect(no_color: Option<&str>, colorterm: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or("");
        if no_color.is_some_and(|value| !value.is_empty()) || matches!(term, "" | "dumb") {
            Self::Mono
        } else if matches!(colorterm, Some("truecolor" | "24bit")) || term.ends_with("-direct") {
            Self::TrueColor
        } else if term.contains("256color") {
            Self::Indexed
        } else {
            Self::Named
        }
    }
}

/// A colour in a theme file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Rgb(u8, u8, u8),
    Index(u8),
    Named(Color),
}

/// Names of the 16 colours, and of the terminal's own.
pub(super) const NAMES: [(&str, Color); 17] = [
    ("default", Color::Reset),
    ("black", Color::Black),
    ("red", Color::Red),
    ("green", Color::Green),
    ("yellow", Color::Yellow),
    ("blue", Color::Blue),
    ("magenta", Color::Magenta),
    ("cyan", Color::Cyan),
    ("white", Color::Gray),
    ("light-black", Color::DarkGray),
    ("light-red", Color::LightRed),
    ("light-green", Color::LightGreen),
    ("light-yellow", Color::LightYellow),
    ("light-blue", Color::LightBlue),
    ("light-magenta", Color::LightMagenta),
    ("light-cyan", Color::LightCyan),
    ("light-white", Color::White),
];

/// A name or `#rgb` or `#rrggbb`.
pub(super) fn parse(text: &str) -> Option<Choice> {
    if let Some(hex) = text.strip_prefix('#') {
        return parse_hex(hex);
    }
    NAMES.iter().find(|(name, _)| *name == text).map(|(_, color)| Choice::Named(*color))
}

fn parse_hex(hex: &str) -> Option<Choice> {
    if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let digit = |at: usize, digits: usize| u8::from_str_radix(&hex[at * digits..(at + 1) * digits], 16).ok();
    match hex.len() {
        3 => Some(Choice::Rgb(digit(0, 1)? * 17, digit(1, 1)? * 17, digit(2, 1)? * 17)),
        6 => Some(Choice::Rgb(digit(0, 2)?, digit(1, 2)?, digit(2, 2)?)),
        _ => None,
    }
}

/// The first of the choices that the terminal can show, or the nearest to the first; `None` where
/// only the role's own default can say (a mixed colour on 16 colours) or colours are off.
pub(super) fn resolve(choices: &[Choice], depth: Depth) -> Option<Color> {
    let fits = |choice: &&Choice| match (choice, depth) {
        (_, Depth::TrueColor) => true,
        (Choice::Rgb(..), _) | (_, Depth::Mono) => false,
        (_, Depth::Indexed) | (Choice::Named(_), _) => true,
        (Choice::Index(index), Depth::Named) => *index < 16,
    };
    match (choices.iter().find(fits), depth) {
        (Some(Choice::Rgb(r, g, b)), _) => Some(Color::Rgb(*r, *g, *b)),
        (Some(Choice::Index(index)), _) => Some(Color::Indexed(*index)),
        (Some(Choice::Named(color)), _) => Some(*color),
        (None, Depth::Indexed) => choices.iter().find_map(|choice| match choice {
            Choice::Rgb(r, g, b) => Some(Color::Indexed(nearest_index([*r, *g, *b]))),
            _ => None,
        }),
        (None, _) => None,
    }
}

/// A colour of the same lightness and chroma, and another hue in radians (OKLCh); as saturated as sRGB can show.
pub(super) fn with_hue(rgb: [u8; 3], hue: f64) -> [u8; 3] {
    let [lightness, a, b] = oklab(rgb);
    let chroma = a.hypot(b);
    // Ever less chroma: grey can always be shown.
    let steps = (0..=20).rev().map(|step| chroma * f64::from(step) / 20.0);
    let mut shown = steps.filter_map(|chroma| of_oklab([lightness, chroma * hue.cos(), chroma * hue.sin()]));
    shown.next().unwrap_or(rgb)
}

/// The hue of a colour in radians.
pub(super) fn hue(rgb: [u8; 3]) -> f64 {
    let [_, a, b] = oklab(rgb);
    b.atan2(a)
}

/// A colour between two, mixed in OKLab.
pub(super) fn between(one: [u8; 3], other: [u8; 3], part: f64) -> [u8; 3] {
    let (from, to) = (oklab(one), oklab(other));
    of_oklab([0, 1, 2].map(|i| from[i] + (to[i] - from[i]) * part.clamp(0.0, 1.0))).unwrap_or(one)
}

/// The inverse of [`oklab`]; `None` where sRGB has no such colour.
fn of_oklab([lightness, a, b]: [f64; 3]) -> Option<[u8; 3]> {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    let light = [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ];
    let channel = |c: f64| if c <= 0.003_130_8 { 12.92 * c } else { 1.055 * c.powf(1.0 / 2.4) - 0.055 };
    light
        .iter()
        .all(|c| (-0.001..=1.001).contains(c))
        .then(|| light.map(|c| (channel(c.clamp(0.0, 1.0)) * 255.0).round() as u8))
}

/// The nearest of the colours 16 to 255; those below are the user's own and can be anything.
pub(super) fn nearest_index(rgb: [u8; 3]) -> u8 {
    let wanted = oklab(rgb);
    let distance = |index: &u8| {
        let lab = oklab(indexed_rgb(*index));
        (0..3).map(|i| (lab[i] - wanted[i]).powi(2)).sum::<f64>()
    };
    (16..=255u8).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(16)
}

/// The red, green and blue of a colour, with a common palette for the 16 that users choose.
pub(crate) fn indexed_rgb(index: u8) -> [u8; 3] {
    const SIXTEEN: [[u8; 3]; 16] = [
        [0x1c, 0x1e, 0x24],
        [0xd1, 0x5b, 0x56],
        [0x6f, 0xa8, 0x5f],
        [0xc9, 0x9b, 0x3f],
        [0x5b, 0x8d, 0xc9],
        [0xa9, 0x7b, 0xc0],
        [0x4f, 0xa6, 0xa6],
        [0xc4, 0xc8, 0xcf],
        [0x7d, 0x83, 0x8e],
        [0xe8, 0x7d, 0x78],
        [0x93, 0xc7, 0x84],
        [0xe3, 0xbd, 0x6b],
        [0x82, 0xae, 0xe3],
        [0xc7, 0x9f, 0xdb],
        [0x78, 0xc7, 0xc7],
        [0xf2, 0xf4, 0xf8],
    ];
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    match index {
        0..=15 => SIXTEEN[usize::from(index)],
        16..=231 => {
            let cube = usize::from(index - 16);
            [STEPS[cube / 36], STEPS[cube / 6 % 6], STEPS[cube % 6]]
        }
        232..=255 => [8 + 10 * (index - 232); 3],
    }
}

fn linear(channel: u8) -> f64 {
    let c = f64::from(channel) / 255.0;
    if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
}

/// Björn Ottosson, "A perceptual color space for image processing", 2020.
fn oklab(rgb: [u8; 3]) -> [f64; 3] {
    oklab_of_light(rgb.map(linear))
}

/// Converts linear light to Oklab.
fn oklab_of_light([r, g, b]: [f64; 3]) -> [f64; 3] {
    let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
    let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
    let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
    [
        0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
        1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
        0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
    ]
}

/// The contrast of two colours by WCAG 2.1, from 1 to 21.
#[cfg(test)]
pub(super) fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let luminance = |rgb: [u8; 3]| {
        let [r, g, b] = rgb.map(linear);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (a, b) = (luminance(one), luminance(other));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// What a person without green cones sees of a colour, in linear light: Machado, Oliveira and
/// Fernandes, "A physiologically-based model for simulation of color vision deficiency", 2009.
#[cfg(test)]
pub(super) fn without_green_cones(rgb: [u8; 3]) -> [f64; 3] {
    let [r, g, b] = rgb.map(linear);
    [
        0.367_322 * r + 0.860_646 * g - 0.227_968 * b,
        0.280_085 * r + 0.672_501 * g + 0.047_413 * b,
        -0.011_820 * r + 0.042_940 * g + 0.968_881 * b,
    ]
    .map(|channel| channel.clamp(0.0, 1.0))
}

/// How far apart two colours of linear light look: the distance in OKLab, where black to white is 1.
#[cfg(test)]
pub(super) fn distance(one: [f64; 3], other: [f64; 3]) -> f64 {
    let (one, other) = (oklab_of_light(one), oklab_of_light(other));
    (0..3).map(|i| (one[i] - other[i]).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_in_all_spellings() {
        assert_eq!(parse("#f80"), Some(Choice::Rgb(255, 136, 0)));
        assert_eq!(parse("#FAB387"), Some(Choice::Rgb(0xfa, 0xb3, 0x87)));
        assert_eq!(parse("light-red"), Some(Choice::Named(Color::LightRed)));
        for bad in ["#12", "#ggg", "#1234567", "oragne", "", "#é0"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_nearest_of_256_is_exact_where_it_can_be() {
        assert_eq!(nearest_index([255, 0, 0]), 196);
        assert_eq!(nearest_index([0, 0, 0]), 16);
        assert_eq!(nearest_index([8, 8, 8]), 232);
        assert_eq!(nearest_index([0x5f, 0xaf, 0xd7]), 74);
    }

    #[test]
    fn the_first_that_can_be_shown_wins() {
        let orange = [Choice::Rgb(0xfa, 0xb3, 0x87), Choice::Index(216), Choice::Named(Color::Yellow)];
        assert_eq!(resolve(&orange, Depth::TrueColor), Some(Color::Rgb(0xfa, 0xb3, 0x87)));
        assert_eq!(resolve(&orange, Depth::Indexed), Some(Color::Indexed(216)));
        assert_eq!(resolve(&orange, Depth::Named), Some(Color::Yellow));
        assert_eq!(resolve(&orange, Depth::Mono), None);
        assert_eq!(resolve(&orange[..1], Depth::Named), None);
    }

    #[test]
    fn hues_turn_and_come_back() {
        for rgb in [[0x6c, 0xc7, 0xd1], [0x14, 0x16, 0x1b], [0xff, 0, 0], [7, 7, 7]] {
            let back = with_hue(rgb, hue(rgb));
            assert!((0..3).all(|i| rgb[i].abs_diff(back[i]) <= 1), "{rgb:?} {back:?}");
            assert_eq!((between(rgb, [0, 0, 0], 0.0), between([0, 0, 0], rgb, 1.0)), (rgb, rgb));
        }
    }

    #[test]
    fn contrast_of_black_and_white() {
        assert!((contrast([0; 3], [255; 3]) - 21.0).abs() < 1e-9);
        assert!((contrast([9; 3], [9; 3]) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn red_and_green_look_alike_without_green_cones() {
        let (red, green) = ([0xb0, 0x40, 0x10], [0x5a, 0x70, 0x18]);
        let light = |rgb: [u8; 3]| rgb.map(linear);
        let seen = distance(without_green_cones(red), without_green_cones(green));
        assert!(seen < 0.5 * distance(light(red), light(green)), "{seen:.3}");
        assert!((distance([0.0; 3], [1.0; 3]) - 1.0).abs() < 1e-3);
        // Greys stay what they are: the rows of the matrix add up to 1.
        assert!(distance(without_green_cones([90; 3]), light([90; 3])) < 1e-3);
    }

    #[test]
    fn the_environment_decides_the_depth() {
        assert_eq!(Depth::detect(Some("1"), Some("truecolor"), Some("xterm")), Depth::Mono);
        assert_eq!(Depth::detect(Some(""), Some("truecolor"), Some("xterm")), Depth::TrueColor);
        assert_eq!(Depth::detect(None, None, Some("screen-256color")), Depth::Indexed);
        assert_eq!(Depth::detect(None, None, Some("xterm")), Depth::Named);
        assert_eq!(Depth::detect(None, None, Some("dumb")), Depth::Mono);
    }
}
