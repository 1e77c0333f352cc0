//! Draws charts as SVG pictures: points, lines, bands and places on the axes.

mod axis;
mod fit;
mod svg;

pub use axis::{ChartAxis, Scale};
pub use fit::fit_picture;
pub use svg::picture;

/// A place in a chart, in the units of its axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChartPoint {
    /// Along the axis to the right.
    pub x: f64,
    /// Along the axis upwards.
    pub y: f64,
}

/// What is drawn in a chart, in the order of a list: what comes later covers what came before.
#[derive(Clone, Debug, PartialEq)]
pub enum Drawn {
    /// The room between two lines, each place with the lower and the upper end.
    Band {
        /// What the key calls it.
        name: String,
        /// Places along the axis to the right, with both ends.
        ends: Vec<(f64, (f64, f64))>,
        /// Whether it is drawn lighter, as what stands behind another one.
        is_light: bool,
    },
    /// A line.
    Line {
        /// What the key calls it.
        name: String,
        /// The places it passes.
        points: Vec<ChartPoint>,
    },
    /// Points.
    Points {
        /// What the key calls them.
        name: String,
        /// The places.
        points: Vec<ChartPoint>,
    },
    /// A line upwards at a place that has a name.
    Mark {
        /// The name.
        name: String,
        /// The place along the axis to the right.
        x: f64,
    },
}

/// A chart.
#[derive(Clone, Debug)]
pub struct ChartPart {
    /// What it shows.
    pub title: String,
    /// The axis to the right.
    pub x: ChartAxis,
    /// The axis upwards.
    pub y: ChartAxis,
    /// What is drawn.
    pub drawn: Vec<Drawn>,
}

/// A chart and the part of the picture that it has, all from 0 to 1: left, top, width, height.
pub type Placed = (ChartPart, [f64; 4]);
