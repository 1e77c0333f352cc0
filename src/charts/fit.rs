//! Draws a fitted cost model: its growth, how far measurements are from it, and both beside one another.

use super::{ChartAxis, ChartPart, ChartPoint, Drawn, Placed, Scale, picture};
use crate::bench::nanoseconds;
use crate::cost::{CostModel, Fit, FittedPoint};
use crate::number::{change, si, time};

/// Places along the axis of sizes at which the model is computed.
const PLACES: usize = 200;

/// A picture of a fit: of one size how the model grows beside what was measured, and of any number of them the model's
/// values beside the measured ones and what is left.
pub fn fit_picture(fit: &Fit, model: &CostModel) -> String {
    let fitted = &fit.fitted;
    let title = format!("{} = {}", fitted.response, fitted.model);
    let coefficients = fitted.coefficients.iter().map(|found| format!("{} = {}", found.name, amount(fit)(found.value)));
    let breakpoints = fitted.breakpoints.iter().map(|found| format!("{} = {}", found.name, si(found.value)));
    let words: Vec<String> = coefficients.chain(breakpoints).collect();
    let r_squared = fit.r_squared.map_or_else(String::new, |value| format!(", R² {value:.4}"));
    let words = words.join(", ") + &r_squared;
    let (compared, left) = (compared(fit), what_is_left(fit));
    match growth(fit, model) {
        Some(growth) => {
            let below: [Placed; 2] = [(compared, [0.0, 0.56, 0.5, 0.44]), (left, [0.5, 0.56, 0.5, 0.44])];
            let all: Vec<Placed> = [(growth, [0.0, 0.0, 1.0, 0.56])].into_iter().chain(below).collect();
            picture(&title, &words, 760.0, &all)
        }
        None => picture(&title, &words, 400.0, &[(compared, [0.0, 0.0, 0.5, 1.0]), (left, [0.5, 0.0, 0.5, 1.0])]),
    }
}

fn amount(fit: &Fit) -> fn(f64) -> String {
    match nanoseconds(&fit.fitted.response) {
        None => si,
        Some(1e9) => |seconds| time(seconds * 1e9),
        Some(1e6) => |milliseconds| time(milliseconds * 1e6),
        Some(1e3) => |microseconds| time(microseconds * 1e3),
        Some(_) => time,
    }
}

/// What was measured over the size, and the model with its interval; `None` where the model has several sizes.
fn growth(fit: &Fit, model: &CostModel) -> Option<ChartPart> {
    let fitted = &fit.fitted;
    let mut names = fitted.measured.keys();
    let (Some(name), None) = (names.next(), names.next()) else { return None };
    let points = points(&fit.points, |point| Some((*point.sizes.get(name)?, point.measured)));
    let x = ChartAxis::of_chosen(name, si, &points.iter().map(|point| point.x).collect::<Vec<_>>());
    let predicted: Vec<_> = (0..=PLACES)
        .filter_map(|place| {
            let size = between(&x, place as f64 / PLACES as f64);
            Some((size, fitted.predict(model, &[(name.clone(), size)].into()).ok()?))
        })
        .collect();
    let band =
        |name: &str, is_light, ends: Vec<(f64, (f64, f64))>| Drawn::Band { name: name.to_owned(), ends, is_light };
    let level = format!("{}% interval", fitted.confidence_in_percent());
    let interval: Vec<_> = predicted.iter().filter_map(|(size, found)| Some((*size, found.interval?))).collect();
    let next: Vec<_> = predicted.iter().filter_map(|(size, found)| Some((*size, found.next?))).collect();
    let line = predicted.iter().map(|(size, found)| ChartPoint { x: *size, y: found.value }).collect();
    let marks = fitted
        .breakpoints
        .iter()
        .map(|found| Drawn::Mark { name: format!("{} = {}", found.name, si(found.value)), x: found.value });
    let y = ChartAxis::of(&fitted.response, amount(fit), points.iter().map(|point| point.y));
    Some(ChartPart {
        title: format!("{} over {name}", fitted.response),
        x,
        y,
        drawn: [band(&fitted.measurement, true, next), band(&level, false, interval)]
            .into_iter()
            .chain([Drawn::Line { name: "model".to_owned(), points: line }])
            .chain(marks)
            .chain([Drawn::Points { name: "measured".to_owned(), points }])
            .collect(),
    })
}

/// The model's values over those that were measured.
fn compared(fit: &Fit) -> ChartPart {
    let points = points(&fit.points, |point| Some((point.measured, point.predicted)));
    let all = || points.iter().flat_map(|point| [point.x, point.y]);
    let x = ChartAxis::of("measured", amount(fit), all());
    let y = ChartAxis { label: "model".to_owned(), ..x.clone() };
    let (low, high) = x.ends;
    let line = vec![ChartPoint { x: low, y: low }, ChartPoint { x: high, y: high }];
    ChartPart {
        title: "model over measured".to_owned(),
        x,
        y,
        drawn: vec![Drawn::Line { name: String::new(), points: line }, Drawn::Points { name: String::new(), points }],
    }
}

/// How far the model is off, as a part of what was measured, over the model's value.
fn what_is_left(fit: &Fit) -> ChartPart {
    let off = |point: &FittedPoint| Some((point.predicted, point.predicted / point.measured - 1.0));
    let points = points(&fit.points, off);
    let x = ChartAxis::of("model", amount(fit), points.iter().map(|point| point.x));
    let y = ChartAxis::around_zero("", change, points.iter().map(|point| point.y));
    let (low, high) = x.ends;
    let zero = vec![ChartPoint { x: low, y: 0.0 }, ChartPoint { x: high, y: 0.0 }];
    ChartPart {
        title: "how far the model is off".to_owned(),
        x,
        y,
        drawn: vec![Drawn::Line { name: String::new(), points: zero }, Drawn::Points { name: String::new(), points }],
    }
}

/// The places of what has one.
fn points(all: &[FittedPoint], place: impl Fn(&FittedPoint) -> Option<(f64, f64)>) -> Vec<ChartPoint> {
    let places = all.iter().filter_map(place).filter(|(x, y)| x.is_finite() && y.is_finite());
    places.map(|(x, y)| ChartPoint { x, y }).collect()
}

/// The number at a place of an axis.
fn between(axis: &ChartAxis, place: f64) -> f64 {
    let (low, high) = axis.ends;
    match axis.scale {
        Scale::Linear => low + place * (high - low),
        Scale::Logarithmic => low * (high / low).powf(place),
    }
}
