//! Renders rectangles as an SVG picture, or as an HTML page with that picture in it.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::change::{self, FlameChanges};
use super::color::{self, HueBy};
use super::layout::{FlameBox, FlameLayout, layout};
use crate::names::{markup, shown};
use crate::profile::{EventId, Frame, Tree};
use crate::stack_formats::options::WriteOptions;

const WIDTH: f64 = 1200.0;
const ROW: usize = 18;
/// The lines above the graph: the title and the words of the pointer.
const TOP: usize = 44;
/// The width of a character of 12 pixels.
const CHARACTER: f64 = 7.23;

/// Both files hold the same script.
const SCRIPT: &str = include_str!("flame.js");
const STYLE: &str = include_str!("flame.css");

/// Writes a picture. Nodes narrower than a pixel aren't in it.
pub(in crate::stack_formats) fn svg(tree: &Tree, options: &WriteOptions, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    graph(tree, options, 1.0, true, out)
}

/// Writes a page. Nodes down to a tenth of a pixel are in it, so that zooming in shows more.
pub(in crate::stack_formats) fn html(tree: &Tree, options: &WriteOptions, out: &mut dyn Write) -> io::Result<()> {
    let title = markup(&options.title);
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>")?;
    writeln!(out, "<style>{STYLE}{}</style>\n</head>\n<body>", rules(options))?;
    writeln!(
        out,
        "<p><input id=\"search\" type=\"search\" placeholder=\"search (regular expression)\" aria-label=\"search\">"
    )?;
    writeln!(out, " <button id=\"reset\" type=\"button\">reset zoom</button></p>")?;
    graph(tree, options, 0.1, false, out)?;
    writeln!(out, "<script>{SCRIPT}</script>\n</body>\n</html>")
}

fn graph(tree: &Tree, options: &WriteOptions, narrowest: f64, alone: bool, out: &mut dyn Write) -> io::Result<()> {
    let event = options.event(tree);
    let layout = event.map(|event| layout(tree, event, options.unit, narrowest / WIDTH)).unwrap_or_default();
    let height = TOP + (layout.rows + 1) * ROW;
    writeln!(
        out,
        "<svg id=\"flame\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"DejaVu Sans Mono, monospace\" font-size=\"12\">"
    )?;
    if alone {
        writeln!(
            out,
            "<style>{STYLE}{}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>",
            rules(options)
        )?;
    }
    if let Some(event) = event {
        head(tree, event, options, &layout, alone, out)?;
        let hue = HueBy::of(tree);
        let changes = options.difference.as_ref().map(|difference| FlameChanges::of(tree, difference));
        let look = match &changes {
            Some(changes) => FlameLook::Change(changes),
            None => FlameLook::Hue(hue),
        };
        for place in &layout.places {
            rectangle(tree, event, options, place, look, layout.places[0].number, out)?;
        }
        foot(&layout, height, changes.as_ref().map_or("", FlameChanges::note), out)?;
    }
    if alone {
        writeln!(out, "<script><![CDATA[{SCRIPT}]]></script>")?;
    }
    writeln!(out, "</svg>")
}

/// The rules of all colours of a graph.
fn rules(options: &WriteOptions) -> String {
    let changes = options.difference.as_ref().map_or_else(String::new, |_| change::rules());
    format!("{}{changes}", color::rules())
}

/// What the colours of rectangles mean.
#[derive(Clone, Copy)]
enum FlameLook<'a> {
    Hue(HueBy),
    Change(&'a FlameChanges<'a>),
}

fn head(
    tree: &Tree,
    event: EventId,
    options: &WriteOptions,
    layout: &FlameLayout,
    alone: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let total = layout.places.first().map_or(0, |place| place.number);
    let (name, unit) = (markup(&tree.event_of(event).name), markup(options.unit.name(tree, event)));
    let title = markup(&options.title);
    match &options.difference {
        None => writeln!(out, "<text x=\"4\" y=\"16\">{title}: {total} {unit} of {name}</text>")?,
        Some(_) => writeln!(out, "<text x=\"4\" y=\"16\">{title}: {name}, red where there is more, blue less</text>")?,
    }
    writeln!(out, "<text id=\"words\" class=\"dim\" x=\"4\" y=\"35\">click: zoom, Esc: back, /: search</text>")?;
    if alone {
        writeln!(out, "<text id=\"reset\" class=\"button\" x=\"1048\" y=\"16\">reset zoom</text>")?;
        writeln!(out, "<text id=\"search\" class=\"button\" x=\"1150\" y=\"16\">search</text>")?;
    }
    Ok(())
}

fn rectangle(
    tree: &Tree,
    event: EventId,
    options: &WriteOptions,
    place: &FlameBox,
    look: FlameLook<'_>,
    total: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let node = tree.node(place.node);
    let frame = node.frame();
    let name = if place.row == 0 { "all".into() } else { markup(frame.name) };
    let share = 100.0 * place.number as f64 / total.max(1) as f64;
    let (number, unit, own) = (place.number, markup(options.unit.name(tree, event)), options.unit.of(&node, event));
    let (class, words) = match look {
        FlameLook::Hue(hue) => (color::class(&frame, hue), format!("{number} {unit}, {share:.2}%, {own} in itself")),
        FlameLook::Change(changes) => {
            (changes.class(place.node, &frame), format!("{share:.2}% of both{}", changes.words(place.node, &frame)))
        }
    };
    // A seam between neighbours.
    let (x, width) = (place.left * WIDTH, place.width * WIDTH);
    let y = TOP + place.row * ROW;
    write!(
        out,
        "<g class=\"f\" data-x=\"{:.7}\" data-w=\"{:.7}\" data-n=\"{name}\">\
         <title>{name}{}: {words}</title>\
         <rect class=\"{}\" x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" rx=\"1\"/>",
        place.left,
        place.width,
        origin(&frame),
        class,
        (width - 0.4).max(0.2),
        ROW - 1
    )?;
    let plain = if place.row == 0 { "all".into() } else { shown(frame.name) };
    let text = markup(&middle(&plain, ((width - 6.0) / CHARACTER) as usize));
    writeln!(out, "<text x=\"{:.2}\" y=\"{}\">{text}</text></g>", x + 3.0, y + 13)
}

/// Where a frame's code is, as far as that is known.
fn origin(frame: &Frame<'_>) -> String {
    let mut words = String::new();
    if !frame.module.is_empty() {
        let _ = write!(words, " ({})", markup(frame.module));
    }
    if !frame.file.is_empty() {
        let _ = write!(words, " {}", markup(frame.file));
    }
    if let Some(line) = frame.line {
        let _ = write!(words, ":{line}");
    }
    words
}

fn foot(layout: &FlameLayout, height: usize, note: &str, out: &mut dyn Write) -> io::Result<()> {
    let cut = format!("{} subtrees are too narrow or too deep to be drawn", layout.cut);
    let words = match (layout.cut, note) {
        (0, "") => return Ok(()),
        (0, note) => markup(note),
        (_, "") => cut,
        (_, note) => format!("{}; {cut}", markup(note)),
    };
    writeln!(out, "<text class=\"dim\" x=\"4\" y=\"{}\">{words}</text>", height - 5)
}

/// A name cut in its middle to this many characters; nothing of it where that says nothing.
fn middle(name: &str, room: usize) -> String {
    let length = name.chars().count();
    if length <= room {
        return name.into();
    }
    if room < 3 {
        return String::new();
    }
    let (before, after) = (room / 2, room - 1 - room / 2);
    name.chars().take(before).chain(['…']).chain(name.chars().skip(length - after)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_in_the_middle() {
        for (room, cut) in [(9, "L2_MISSES"), (8, "L2_M…SES"), (3, "L…S"), (2, ""), (0, "")] {
            assert_eq!(middle("L2_MISSES", room), cut);
        }
    }

    #[test]
    fn names_are_text_and_nothing_else() {
        assert_eq!(markup("a<b>\"&'\u{1b}[2J"), "a&lt;b&gt;&quot;&amp;&#39;\\x1b[2J");
    }
}
