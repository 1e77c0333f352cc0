//! Draws a buffer of cells as SVG.
//!
//! Cells are 9 x 18 pixels, whole numbers, so that no seams show between them. Block elements and
//! braille are drawn as rectangles: few fonts have all of them, and a fallback font would have
//! other widths. Backgrounds of one colour are one rectangle.

use std::fmt::Write as _;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};

use super::{index, rows};
use crate::tui::text::width;
use crate::tui::theme::indexed_rgb;

const CELL_WIDTH: usize = 9;
const CELL_HEIGHT: usize = 18;
/// Where letters stand in a cell, from its top.
const BASELINE: usize = 14;
const FONT_SIZE: usize = 15;

type Rgb = [u8; 3];

/// What the terminal's own colours are taken for: text and background.
const DARK: (Rgb, Rgb) = ([0xd5, 0xd9, 0xe2], [0x14, 0x16, 0x1b]);
const LIGHT: (Rgb, Rgb) = ([0x23, 0x27, 0x2f], [0xfb, 0xfb, 0xf9]);

pub(super) fn svg(buffer: &Buffer, light: bool) -> String {
    let own = if light { LIGHT } else { DARK };
    let (columns, lines) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let (width, height) = (columns * CELL_WIDTH, lines * CELL_HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans Mono, monospace\" font-size=\"{FONT_SIZE}\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
        hex(own.1)
    );
    for (line, row) in rows(buffer).enumerate() {
        let cells = place(&row, own);
        let y = line * CELL_HEIGHT;
        backgrounds(&mut svg, &cells, y, own.1);
        glyphs(&mut svg, &cells, y);
    }
    svg.push_str("</svg>\n");
    svg
}

/// A glyph with its column, width and colours.
struct Cell<'a> {
    symbol: &'a str,
    column: usize,
    cells: usize,
    fg: Rgb,
    bg: Rgb,
    modifiers: Modifier,
}

fn place<'a>(row: &[(&'a str, Style)], own: (Rgb, Rgb)) -> Vec<Cell<'a>> {
    let mut column = 0;
    let mut cells = Vec::with_capacity(row.len());
    for &(symbol, style) in row {
        let (mut fg, mut bg) = (rgb(style.fg, own.0), rgb(style.bg, own.1));
        if style.add_modifier.contains(Modifier::REVERSED) {
            (fg, bg) = (bg, fg);
        }
        if style.add_modifier.contains(Modifier::DIM) {
            fg = std::array::from_fn(|i| ((u16::from(fg[i]) * 3 + u16::from(bg[i]) * 2) / 5) as u8);
        }
        let wide = width(symbol).max(1);
        cells.push(Cell { symbol, column, cells: wide, fg, bg, modifiers: style.add_modifier });
        column += wide;
    }
    cells
}

fn rgb(color: Option<Color>, own: Rgb) -> Rgb {
    match color {
        None | Some(Color::Reset) => own,
        Some(Color::Rgb(r, g, b)) => [r, g, b],
        Some(color) => index(color).map_or(own, indexed_rgb),
    }
}

fn hex([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn backgrounds(svg: &mut String, cells: &[Cell<'_>], y: usize, own: Rgb) {
    for run in cells.chunk_by(|a, b| a.bg == b.bg).filter(|run| run[0].bg != own) {
        let (x, long) = (run[0].column, run.iter().map(|cell| cell.cells).sum::<usize>());
        let _ = writeln!(
            svg,
            "<rect x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{CELL_HEIGHT}\" fill=\"{}\" shape-rendering=\"crispEdges\"/>",
            x * CELL_WIDTH,
            long * CELL_WIDTH,
            hex(run[0].bg)
        );
    }
}

/// Letters of one look in one element, each with its place; drawn glyphs of one colour in one path.
fn glyphs(svg: &mut String, cells: &[Cell<'_>], y: usize) {
    let (drawn, written): (Vec<_>, Vec<_>) =
        cells.iter().filter(|cell| cell.symbol != " ").partition(|cell| !boxes(cell.symbol).is_empty());
    for run in drawn.chunk_by(|a, b| a.fg == b.fg) {
        let mut path = String::new();
        for cell in run {
            for [x, top, width, height] in boxes(cell.symbol) {
                let _ = write!(path, "M{} {}h{width}v{height}h-{width}z", cell.column * CELL_WIDTH + x, y + top);
            }
        }
        let _ = writeln!(svg, "<path d=\"{path}\" fill=\"{}\" shape-rendering=\"crispEdges\"/>", hex(run[0].fg));
    }
    for run in written.chunk_by(|a, b| a.fg == b.fg && a.modifiers == b.modifiers && a.column + a.cells == b.column) {
        let places: Vec<_> = run.iter().map(|cell| (cell.column * CELL_WIDTH).to_string()).collect();
        let _ = write!(svg, "<text x=\"{}\" y=\"{}\" fill=\"{}\"", places.join(" "), y + BASELINE, hex(run[0].fg));
        for (modifier, attribute) in [
            (Modifier::BOLD, " font-weight=\"bold\""),
            (Modifier::ITALIC, " font-style=\"italic\""),
            (Modifier::UNDERLINED, " text-decoration=\"underline\""),
        ] {
            if run[0].modifiers.contains(modifier) {
                svg.push_str(attribute);
            }
        }
        svg.push('>');
        run.iter().for_each(|cell| svg.push_str(&escaped(cell.symbol)));
        svg.push_str("</text>\n");
    }
}

fn escaped(symbol: &str) -> String {
    symbol.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The rectangles of a glyph that is drawn: x, y, width, height in pixels of its cell; none if it
/// is written with a font.
fn boxes(symbol: &str) -> Vec<[usize; 4]> {
    let Some(code) = symbol.chars().next().map(u32::from) else { return Vec::new() };
    let (w, h) = (CELL_WIDTH, CELL_HEIGHT);
    match code {
        // Lower eighths, and the full block.
        0x2581..=0x2588 => {
            let height = (code as usize - 0x2580) * h / 8;
            vec![[0, h - height, w, height]]
        }
        // Left eighths, from seven down to one.
        0x2589..=0x258f => vec![[0, 0, ((0x2590 - code as usize) * w).div_ceil(8), h]],
        // Light shade: a fine grid.
        0x2591 => (0..h).step_by(3).flat_map(|y| (y % 2..w).step_by(3).map(move |x| [x, y, 1, 1])).collect(),
        0x2800..=0x28ff => braille(code - 0x2800),
        0x2500 | 0x2502 | 0x250c..=0x253c | 0x254e | 0x256d..=0x2570 | 0x2501 => lines(code),
        _ => Vec::new(),
    }
}

/// Dots of 2 x 2 pixels in 2 columns and 4 rows.
fn braille(dots: u32) -> Vec<[usize; 4]> {
    const PLACES: [(usize, usize); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
    let places = PLACES.iter().enumerate().filter(|(bit, _)| dots & (1 << bit) != 0);
    places.map(|(_, (x, y))| [1 + x * 4 + x, 2 + y * 4 + y / 2, 2, 2]).collect()
}

/// Lines of one pixel from the middle of the cell to its edges; corners are cut, which looks round.
fn lines(code: u32) -> Vec<[usize; 4]> {
    let (w, h) = (CELL_WIDTH, CELL_HEIGHT);
    let (x, y) = (w / 2, h / 2);
    let left = [0, y, x + 1, 1];
    let right = [x, y, w - x, 1];
    let up = [x, 0, 1, y + 1];
    let down = [x, y, 1, h - y];
    match code {
        0x2500 => vec![[0, y, w, 1]],
        0x2501 => vec![[0, y, w, 2]],
        0x2502 => vec![[x, 0, 1, h]],
        // Two dashes.
        0x254e => vec![[x, 1, 1, y - 2], [x, y + 1, 1, h - y - 2]],
        0x250c => vec![right, down],
        0x2510 => vec![left, down],
        0x2514 => vec![right, up],
        0x2518 => vec![left, up],
        0x251c => vec![right, up, down],
        0x2524 => vec![left, up, down],
        0x252c => vec![left, right, down],
        0x2534 => vec![left, right, up],
        0x253c => vec![left, right, up, down],
        0x256d => vec![[x + 3, y, w - x - 3, 1], [x + 1, y + 1, 2, 1], [x, y + 2, 1, h - y - 2]],
        0x256e => vec![[0, y, x - 2, 1], [x - 2, y + 1, 2, 1], [x, y + 2, 1, h - y - 2]],
        0x256f => vec![[0, y, x - 2, 1], [x - 2, y - 1, 2, 1], [x, 0, 1, y - 1]],
        0x2570 => vec![[x + 3, y, w - x - 3, 1], [x + 1, y - 1, 2, 1], [x, 0, 1, y - 1]],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    #[test]
    fn letters_are_written_and_blocks_are_drawn() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 1));
        buffer.set_string(0, 0, "a<█ ", Style::new());
        let drawing = svg(&buffer, false);
        assert!(drawing.contains("<text x=\"0 9\" y=\"14\" fill=\"#d5d9e2\">a&lt;</text>"), "{drawing}");
        assert!(drawing.contains("M18 0h9v18h-9z"), "{drawing}");
    }

    #[test]
    fn every_drawn_glyph_stays_in_its_cell() {
        for code in (0x2500..0x25a0).chain(0x2800..0x2900) {
            let symbol = char::from_u32(code).map(String::from).unwrap_or_default();
            for [x, y, width, height] in boxes(&symbol) {
                assert!(x + width <= CELL_WIDTH && y + height <= CELL_HEIGHT, "{symbol} {x} {y} {width} {height}");
            }
        }
    }

    #[test]
    fn backgrounds_of_one_colour_are_one_rectangle() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 1));
        buffer.set_style(Rect::new(1, 0, 3, 1), Style::new().bg(Color::Rgb(1, 2, 3)));
        let drawing = svg(&buffer, true);
        assert_eq!(drawing.matches("fill=\"#010203\"").count(), 1);
        assert!(drawing.contains("<rect x=\"9\" y=\"0\" width=\"27\""), "{drawing}");
    }
}
