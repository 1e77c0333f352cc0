//! Writes charts as an SVG picture, light or dark as its reader has it.

use std::fmt::Write;

use super::{ChartAxis, ChartPart, ChartPoint, Drawn, Placed};
use crate::names::markup;

const WIDTH: f64 = 960.0;
/// Room for the numbers and words around a chart: left, top, right, below.
const LEFT: f64 = 84.0;
const TOP: f64 = 30.0;
const RIGHT: f64 = 16.0;
const BELOW: f64 = 44.0;
/// The height of the picture's title.
const TITLE: f64 = 34.0;
/// The width of a character.
const CHARACTER: f64 = 7.3;

const STYLE: &str = "text { fill: #1b1f24; } .page { fill: #fbfbf9; } .dim { fill: #5c6470; } \
.grid { stroke: #dcdcd6; } .axis { stroke: #8a909a; fill: none; } .line { stroke: #1f6feb; fill: none; stroke-width: 1.8; } \
.points { fill: #c2410c; } .band { fill: #1f6feb; fill-opacity: 0.25; } .light { fill: #1f6feb; fill-opacity: 0.1; } \
.mark { stroke: #7c3aed; stroke-dasharray: 5 4; } \
@media (prefers-color-scheme: dark) { text { fill: #e4e7ec; } .page { fill: #14161b; } .dim { fill: #9aa3b2; } \
.grid { stroke: #2b303a; } .axis { stroke: #6b7280; } .line { stroke: #6ea8fe; } .points { fill: #fb923c; } \
.band { fill: #6ea8fe; } .light { fill: #6ea8fe; } .mark { stroke: #c4b5fd; } }";

/// A picture of charts, 960 wide and `height` high, with a title and a line of words below it.
pub fn picture(title: &str, words: &str, height: f64, charts: &[Placed]) -> String {
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" \
         height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"DejaVu Sans Mono, monospace\" font-size=\"12\">\n\
         <style>{STYLE}</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n\
         <text x=\"12\" y=\"22\" font-size=\"15\">{}</text>\n<text class=\"dim\" x=\"12\" y=\"42\">{}</text>\n",
        markup(title),
        markup(words)
    );
    let below = TITLE + 14.0;
    for (chart, [left, top, width, part]) in charts {
        let frame = ChartRoom {
            left: left * WIDTH + LEFT,
            top: below + top * (height - below) + TOP,
            width: width * WIDTH - LEFT - RIGHT,
            height: part * (height - below) - TOP - BELOW,
        };
        frame.chart(chart, &mut out);
    }
    out + "</svg>\n"
}

/// Where a chart's own room is in the picture, in pixels.
struct ChartRoom {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl ChartRoom {
    fn chart(&self, chart: &ChartPart, out: &mut String) {
        let Self { left, top, width, height } = *self;
        self.text(out, ("text-anchor=\"start\"", left, top - 12.0), &chart.title);
        self.ticks(&chart.x, &chart.y, out);
        let _ = writeln!(out, "<svg x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">");
        chart.drawn.iter().for_each(|drawn| self.drawn(chart, drawn, out));
        let _ = writeln!(out, "</svg>");
        let _ = writeln!(
            out,
            "<rect class=\"axis\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
        self.text(
            out,
            ("class=\"dim\" text-anchor=\"middle\"", left + width / 2.0, top + height + 34.0),
            &chart.x.label,
        );
        self.key(chart, out);
    }

    fn text(&self, out: &mut String, (attributes, x, y): (&str, f64, f64), text: &str) {
        let _ = writeln!(out, "<text {attributes} x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", markup(text));
    }

    fn ticks(&self, x: &ChartAxis, y: &ChartAxis, out: &mut String) {
        let Self { left, top, width, height } = *self;
        for tick in x.ticks((width / 90.0) as usize) {
            let at = left + x.place(tick).unwrap_or(0.0) * width;
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top:.1}\" y2=\"{:.1}\"/>",
                top + height
            );
            self.text(out, ("class=\"dim\" text-anchor=\"middle\"", at, top + height + 16.0), &(x.format)(tick));
        }
        for tick in y.ticks((height / 36.0) as usize) {
            let at = top + (1.0 - y.place(tick).unwrap_or(0.0)) * height;
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>",
                left + width
            );
            self.text(out, ("class=\"dim\" text-anchor=\"end\"", left - 6.0, at + 4.0), &(y.format)(tick));
        }
    }

    /// A place within the frame; what has none lies far below.
    fn pixel(&self, chart: &ChartPart, point: ChartPoint) -> (f64, f64) {
        let x = chart.x.place(point.x).unwrap_or(-1.0) * self.width;
        // Far out of the frame is far enough.
        let y = chart.y.place(point.y).unwrap_or(-1.0).clamp(-2.0, 3.0);
        (x, (1.0 - y) * self.height)
    }

    fn path(&self, chart: &ChartPart, points: impl Iterator<Item = ChartPoint>) -> String {
        let pixels = points.map(|point| self.pixel(chart, point));
        pixels.map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
    }

    fn drawn(&self, chart: &ChartPart, drawn: &Drawn, out: &mut String) {
        let _ = match drawn {
            Drawn::Band { ends, is_light, .. } => {
                let class = if *is_light { "light" } else { "band" };
                let upper = ends.iter().map(|&(x, (_, y))| ChartPoint { x, y });
                let lower = ends.iter().rev().map(|&(x, (y, _))| ChartPoint { x, y });
                writeln!(out, "<polygon class=\"{class}\" points=\"{}\"/>", self.path(chart, upper.chain(lower)))
            }
            Drawn::Line { points, .. } => {
                writeln!(out, "<polyline class=\"line\" points=\"{}\"/>", self.path(chart, points.iter().copied()))
            }
            Drawn::Points { points, .. } => {
                for &point in points {
                    let (x, y) = self.pixel(chart, point);
                    let _ = writeln!(out, "<circle class=\"points\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>");
                }
                Ok(())
            }
            Drawn::Mark { name, x } => {
                let at = chart.x.place(*x).unwrap_or(-1.0) * self.width;
                let (anchor, by) = if at > self.width / 2.0 { ("end", -6.0) } else { ("start", 6.0) };
                let anchor = format!("text-anchor=\"{anchor}\"");
                let _ = writeln!(
                    out,
                    "<line class=\"mark\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"{:.1}\"/>",
                    self.height
                );
                self.text(out, (&anchor, at + by, self.height - 8.0), name);
                Ok(())
            }
        };
    }

    /// What is what, at the right above the chart.
    fn key(&self, chart: &ChartPart, out: &mut String) {
        let mut right = self.left + self.width;
        for drawn in chart.drawn.iter().rev() {
            let (class, name) = match drawn {
                Drawn::Band { name, is_light: true, .. } => ("light", name),
                Drawn::Band { name, .. } => ("band", name),
                Drawn::Line { name, .. } => ("line", name),
                Drawn::Points { name, .. } => ("points", name),
                Drawn::Mark { .. } => continue,
            };
            if name.is_empty() {
                continue;
            }
            let y = self.top - 12.0;
            self.text(out, ("class=\"dim\" text-anchor=\"end\"", right, y), name);
            let x = right - CHARACTER * name.chars().count() as f64 - 20.0;
            let _ = match class {
                "line" => writeln!(
                    out,
                    "<line class=\"line\" x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>",
                    x + 14.0,
                    y - 4.0,
                    y - 4.0
                ),
                "points" => {
                    writeln!(out, "<circle class=\"points\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"/>", x + 8.0, y - 4.0)
                }
                class => writeln!(
                    out,
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"10\"/>",
                    y - 9.0
                ),
            };
            right = x - 14.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_outside_are_text_and_what_has_no_place_stays_out() {
        let axis = ChartAxis::of("<n>", |number| number.to_string(), [1.0, 2.0]);
        let chart = ChartPart {
            title: "a & b".to_owned(),
            x: axis.clone(),
            y: axis,
            drawn: vec![
                Drawn::Line { name: "line".to_owned(), points: vec![ChartPoint { x: 1.0, y: f64::NAN }] },
                Drawn::Points { name: "points".to_owned(), points: vec![ChartPoint { x: 1.5, y: 1.5 }] },
                Drawn::Mark { name: "here".to_owned(), x: 1.5 },
            ],
        };
        let text = picture("\u{1b}[2J", "", 300.0, &[(chart, [0.0, 0.0, 1.0, 1.0])]);
        assert!(text.contains("&lt;n&gt;") && text.contains("a &amp; b") && text.contains("\\x1b[2J"), "{text}");
        assert!(!text.contains("NaN") && text.contains("<circle"), "{text}");
    }
}
