//! Chooses the colour of a module, or of a function where no modules are known, by its name: the same in every picture.

use crate::profile::{Frame, FrameKind, Tree};

/// Number of hues that distinguish modules.
pub(super) const HUES: u32 = 18;

/// What functions have their hues by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HueBy {
    /// By their modules; those of none have no hue.
    Module,
    /// By their names, as in folded stacks, which have no modules.
    Function,
}

impl HueBy {
    /// What tells the functions of a tree apart.
    pub(super) fn of(tree: &Tree) -> Self {
        if tree.frames().any(|frame| !frame.module.is_empty()) { Self::Module } else { Self::Function }
    }
}

/// The class of a frame's rectangle.
pub(super) fn class(frame: &Frame<'_>, hue: HueBy) -> String {
    match frame.kind {
        FrameKind::Process | FrameKind::Other => "n".into(),
        FrameKind::Region => format!("h{}", hash(frame.name) % HUES),
        FrameKind::Function if hue == HueBy::Function => format!("h{}", hash(frame.name) % HUES),
        FrameKind::Function if frame.module.is_empty() => "n".into(),
        FrameKind::Function if frame.is_kernel() => "k".into(),
        FrameKind::Function => format!("h{}", hash(frame.module) % HUES),
    }
}

/// The rules of all classes, for light and dark pages.
pub(super) fn rules() -> String {
    let of = |saturation: f64, lightness: f64| {
        let hues = (0..HUES).map(|hue| {
            // Without the reds, which are the kernel's.
            let degrees = 30.0 + f64::from(hue) * 300.0 / f64::from(HUES);
            format!(".h{hue}{{fill:{}}}", hex(degrees, saturation, lightness))
        });
        let rules: String = hues.collect();
        format!("{rules}.k{{fill:{}}}.n{{fill:{}}}", hex(6.0, saturation, lightness), hex(0.0, 0.0, lightness))
    };
    format!("{}@media (prefers-color-scheme:dark){{{}}}", of(0.62, 0.74), of(0.34, 0.36))
}

/// Hashes text by FNV-1a.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Hue in degrees, saturation and lightness in 0..=1, as sRGB.
fn hex(hue: f64, saturation: f64, lightness: f64) -> String {
    let chroma = saturation * lightness.min(1.0 - lightness);
    let [red, green, blue] = [0.0, 8.0, 4.0].map(|offset| {
        let k = (offset + hue / 30.0) % 12.0;
        let value = lightness - chroma * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    });
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hues_are_those_of_css() {
        assert_eq!(hex(0.0, 1.0, 0.5), "#ff0000");
        assert_eq!(hex(120.0, 1.0, 0.25), "#008000");
        assert_eq!(hex(210.0, 0.0, 0.5), "#808080");
    }

    #[test]
    fn a_module_keeps_its_hue() {
        let of = |module| class(&Frame { module, ..Frame::function("f") }, HueBy::Module);
        assert_eq!(of("/lib/libc.so.6"), of("/lib/libc.so.6"));
        assert_ne!(of("/lib/libc.so.6"), of("/bin/sh"));
        assert_eq!((of("[kernel.kallsyms]"), of("")), ("k".into(), "n".into()));
    }

    #[test]
    fn functions_have_hues_where_no_modules_are_known() {
        let mut tree = Tree::default();
        tree.frame(&Frame::function("f"));
        assert_eq!(HueBy::of(&tree), HueBy::Function);
        let [f, g] = ["f", "g"].map(|name| class(&Frame::function(name), HueBy::Function));
        assert!(f != g && f.starts_with('h'), "{f} {g}");
        tree.frame(&Frame { module: "/bin/sh", ..Frame::function("g") });
        assert_eq!(HueBy::of(&tree), HueBy::Module);
    }
}
