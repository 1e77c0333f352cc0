//! Renders rectangles as an SVG picture, or as an HTML page with that picture in it.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::change::{self, FlameChanges};
use super::color::{self, HueBy};
use super::layout::{FlameBox, FlameLayout, layout};
use crate::names::{markup, shown};
use crate::number::{counted, share, time};
use crate::profile::{Amount, EventId, Frame, SampleMeasure, Tree};
use crate::stack_formats::options::{WriteOptions, WrittenNumber};
use crate::stacks::{CUT, OFF_CPU};

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
    graph(tree, options, FlamePlace::Alone, out)
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
    graph(tree, options, FlamePlace::InPage, out)?;
    writeln!(out, "<script>{SCRIPT}</script>\n</body>\n</html>")
}

/// Where a graph is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FlamePlace {
    /// It is the file, with all that it needs.
    Alone,
    /// In a page that has the style, the script and what is clicked.
    InPage,
}

impl FlamePlace {
    /// What is narrower than so many pixels isn't drawn.
    fn narrowest(self) -> f64 {
        match self {
            Self::Alone => 1.0,
            Self::InPage => 0.1,
        }
    }
}

/// Writes a graph; one without rectangles where the tree has no event.
fn graph(tree: &Tree, options: &WriteOptions, place: FlamePlace, out: &mut dyn Write) -> io::Result<()> {
    let picture = options.event(tree).map(|event| FlamePicture::new(tree, event, options, place));
    let rows = picture.as_ref().map_or(0, |picture| picture.layout.rows);
    let height = TOP + (rows + 1) * ROW;
    writeln!(
        out,
        "<svg id=\"flame\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"DejaVu Sans Mono, monospace\" font-size=\"12\">"
    )?;
    if place == FlamePlace::Alone {
        writeln!(
            out,
            "<style>{STYLE}{}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>",
            rules(options)
        )?;
    }
    if let Some(picture) = picture {
        picture.head(out)?;
        picture.layout.places.iter().try_for_each(|flame| picture.rectangle(flame, out))?;
        picture.foot(height, out)?;
    }
    if place == FlamePlace::Alone {
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
enum FlameLook<'a> {
    Hue(HueBy),
    Change(FlameChanges<'a>),
}

/// What is drawn of an event.
struct FlamePicture<'a> {
    tree: &'a Tree,
    event: EventId,
    /// What was counted of the event: a sum over all nodes, which each rectangle asks for.
    counted: Amount,
    options: &'a WriteOptions,
    layout: FlameLayout,
    look: FlameLook<'a>,
    place: FlamePlace,
}

impl<'a> FlamePicture<'a> {
    fn new(tree: &'a Tree, event: EventId, options: &'a WriteOptions, place: FlamePlace) -> Self {
        let layout = layout(tree, event, options.unit, place.narrowest() / WIDTH);
        let look = match &options.difference {
            Some(difference) => FlameLook::Change(FlameChanges::of(tree, difference)),
            None => FlameLook::Hue(HueBy::of(tree)),
        };
        Self { tree, event, counted: tree.total(event), options, layout, look, place }
    }

    /// The number of the whole graph.
    fn total(&self) -> u64 {
        self.layout.places.first().map_or(0, |whole| whole.number)
    }

    /// A number of the graph, as text: exact, or about what samples stand for.
    fn number(&self, number: u64) -> String {
        let event = self.tree.event_of(self.event);
        match event.unit() {
            _ if self.is_of_samples() => counted(number, "sample"),
            _ if self.is_estimated() && number > 0 => format!("about {}", markup(&event.in_unit(number))),
            "nanoseconds" => time(number as f64),
            "count" => number.to_string(),
            unit => format!("{number} {}", markup(unit)),
        }
    }

    /// Whether samples are counted, not what they stand for.
    fn is_of_samples(&self) -> bool {
        let event = self.tree.event_of(self.event);
        event.measure == SampleMeasure::Samples || self.options.unit == WrittenNumber::Samples && event.has_samples()
    }

    /// Whether samples were taken of an event that nobody counted: it may have happened more or less often than they say. Waits are
    /// all sampled, and so is each occurrence where a sample stands for one.
    fn is_estimated(&self) -> bool {
        let (event, Amount { samples, weight }) = (self.tree.event_of(self.event), self.counted);
        event.has_samples() && !self.is_of_samples() && event.name != OFF_CPU && samples != weight
    }

    /// The number of the whole graph, and what it is of.
    fn whole(&self) -> String {
        let event = self.tree.event_of(self.event);
        let (number, name) = (self.number(self.total()), markup(&event.name));
        // Folded stacks don't say of what.
        if event.measure == SampleMeasure::Samples && event.name == "samples" {
            return number;
        }
        let of = if event.unit() == "count" && !self.is_of_samples() { "" } else { "of " };
        let by = match self.is_estimated() {
            true => format!(" by {}", counted(self.counted.samples, "sample")),
            false => String::new(),
        };
        format!("{number} {of}{name}{by}")
    }

    fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = markup(&self.tree.event_of(self.event).name);
        let title = markup(&self.options.title);
        match &self.look {
            FlameLook::Hue(_) => {
                let (whole, cut) = (self.whole(), self.cut_words());
                writeln!(out, "<text x=\"4\" y=\"16\">{title}: {whole}{cut}</text>")?;
            }
            FlameLook::Change(_) => {
                writeln!(out, "<text x=\"4\" y=\"16\">{title}: {name}, red where there is more, blue less</text>")?;
            }
        }
        writeln!(out, "<text id=\"words\" class=\"dim\" x=\"4\" y=\"35\">click: zoom, Esc: back, /: search</text>")?;
        if self.place == FlamePlace::Alone {
            writeln!(out, "<text id=\"reset\" class=\"button\" x=\"1048\" y=\"16\">reset zoom</text>")?;
            writeln!(out, "<text id=\"search\" class=\"button\" x=\"1150\" y=\"16\">search</text>")?;
        }
        Ok(())
    }

    /// How much of it is below a frame that says that outer frames are missing; nothing where nothing is.
    fn cut_words(&self) -> String {
        let unit = self.options.unit;
        let (mut below, mut cut) = (None, 0_u64);
        for node in self.tree.walk() {
            below = below.filter(|depth| node.depth() > *depth);
            if below.is_none() && node.frame().name == CUT {
                below = Some(node.depth());
            }
            if below.is_some() {
                cut = cut.saturating_add(unit.of(&node, self.event));
            }
        }
        match cut {
            0 => String::new(),
            cut => format!(", {} in cut stacks", markup(&share(cut as f64 / self.total().max(1) as f64))),
        }
    }

    fn rectangle(&self, flame: &FlameBox, out: &mut dyn Write) -> io::Result<()> {
        let frame = self.tree.node(flame.node).frame();
        let name = if flame.row == 0 { "all".into() } else { markup(frame.name) };
        let (class, words) = self.class_and_words(flame, &frame);
        // A seam between neighbours.
        let (x, width) = (flame.left * WIDTH, flame.width * WIDTH);
        let y = TOP + flame.row * ROW;
        write!(
            out,
            "<g class=\"f\" data-x=\"{:.7}\" data-w=\"{:.7}\" data-n=\"{name}\">\
             <title>{name}{}: {words}</title>\
             <rect class=\"{}\" x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" rx=\"1\"/>",
            flame.left,
            flame.width,
            origin(&frame),
            class,
            (width - 0.4).max(0.2),
            ROW - 1
        )?;
        let plain = if flame.row == 0 { "all".into() } else { shown(frame.name) };
        let text = markup(&middle(&plain, ((width - 6.0) / CHARACTER) as usize));
        writeln!(out, "<text x=\"{:.2}\" y=\"{}\">{text}</text></g>", x + 3.0, y + 13)
    }

    /// The colour of a rectangle, and what is said of it.
    fn class_and_words(&self, flame: &FlameBox, frame: &Frame<'_>) -> (String, String) {
        let share = 100.0 * flame.number as f64 / self.total().max(1) as f64;
        match &self.look {
            FlameLook::Hue(hue) => {
                let own = self.options.unit.of(&self.tree.node(flame.node), self.event);
                let words = format!("{}, {share:.2}%, {} in itself", self.number(flame.number), self.number(own));
                (color::class(frame, *hue), words)
            }
            FlameLook::Change(changes) => {
                let words = format!("{share:.2}% of both{}", changes.words(flame.node, frame));
                (changes.class(flame.node, frame), words)
            }
        }
    }

    fn foot(&self, height: usize, out: &mut dyn Write) -> io::Result<()> {
        let note = match &self.look {
            FlameLook::Hue(_) => "",
            FlameLook::Change(changes) => changes.note(),
        };
        let cut = format!("{} subtrees are too narrow or too deep to be drawn", self.layout.cut);
        let words = match (self.layout.cut, note) {
            (0, "") => return Ok(()),
            (0, note) => markup(note),
            (_, "") => cut,
            (_, note) => format!("{}; {cut}", markup(note)),
        };
        writeln!(out, "<text class=\"dim\" x=\"4\" y=\"{}\">{words}</text>", height - 5)
    }
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
    use crate::profile::ProfileEvent;

    /// The title of a graph of this event, without what stands above it; how often it was sampled, and what that stands for.
    fn title(name: &str, measure: SampleMeasure, (samples, weight): (u64, u64), unit: WrittenNumber) -> String {
        let mut tree = Tree::default();
        let event = tree.event(&ProfileEvent::new(name, measure));
        let (place, frame) = (tree.sampled(), tree.frame(&Frame::function("f")));
        tree.stack(place, [frame], event, Amount { samples, weight });
        let options = WriteOptions { unit, ..WriteOptions::default() };
        FlamePicture::new(&tree, event, &options, FlamePlace::Alone).whole()
    }

    #[test]
    fn titles_tell_samples_from_what_they_stand_for() {
        use SampleMeasure::{Samples, Sum, Weighted};
        use WrittenNumber::Weights;
        let [count, time] = [|| Weighted("count".into()), || Weighted("nanoseconds".into())];
        let all = [
            title("page-faults", count(), (411, 12_350), Weights),
            title("page-faults", count(), (1, 12_350), WrittenNumber::Samples),
            title("cpu-clock", time(), (1116, 1_116_000_000), Weights),
            title("cpu-clock", time(), (1116, 1_116_000_000), WrittenNumber::Samples),
            title(OFF_CPU, time(), (3, 1_500_000_000), Weights),
            title("page-faults", count(), (7, 7), Weights),
            title("samples", Samples, (7, 7), Weights),
            title("cycles", Samples, (7, 7), Weights),
            title("Ir", Sum("count".into()), (0, 12_350), Weights),
            title("space", Sum("bytes".into()), (0, 12_350), Weights),
        ];
        let expected = [
            "about 12.3k page-faults by 411 samples",
            "1 sample of page-faults",
            "about 1.12 s of cpu-clock by 1116 samples",
            "1116 samples of cpu-clock",
            "1.50 s of off-cpu",
            "7 page-faults",
            "7 samples",
            "7 samples of cycles",
            "12350 Ir",
            "12350 bytes of space",
        ];
        assert_eq!(all, expected);
    }

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
