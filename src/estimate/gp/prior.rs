//! Complete counts of programs in, how events by name tend to vary together out.

use super::covariance::Covariances;
use super::linear_algebra::Square;
use super::time::{PROCESSES, PerProcess, Span, TimedSpan};

/// How events vary together in programs at large, by their names.
#[derive(Clone, Debug, Default)]
pub struct Prior {
    names: Vec<String>,
    values: Vec<PerProcess>,
}

/// Without any knowledge: the variance of a relative rate in each process.
const UNKNOWN: PerProcess = [0.04, 0.04, 0.02, 0.02];

impl Prior {
    pub(crate) fn covariances(&self, names: &[&str], diagonal: f64) -> Covariances {
        let places: Vec<Option<usize>> =
            names.iter().map(|name| self.names.iter().position(|known| known == name)).collect();
        let mut covariances = Covariances::zeros(names.len());
        for a in 0..names.len() {
            for b in 0..names.len() {
                let value = match (places[a], places[b]) {
                    (Some(a), Some(b)) => self.values[a * self.names.len() + b],
                    _ if a == b => UNKNOWN.map(|v| v * super::Tuning::default().unknown),
                    _ => [0.0; PROCESSES],
                };
                *covariances.at_mut(a, b) = if a == b { value.map(|v| v + 1e-4) } else { value.map(|v| (1.0 - diagonal) * v) };
            }
        }
        covariances
    }

    /// From programs' complete counts: names, rows of counts, the length of a row in ms.
    pub fn learn(programs: &[(&[String], &[Vec<f64>], f64)]) -> Self {
        let mut names: Vec<String> = Vec::new();
        for (columns, _, _) in programs {
            for name in *columns {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        let n = names.len();
        let mut sums = vec![[0.0; PROCESSES]; n * n];
        let mut weights = vec![0.0; n * n];
        let mut log_sizes = vec![(0.0f64, 0.0f64); n];
        for (columns, rows, row_ms) in programs {
            let rounds = (4.0 / row_ms) as usize;
            let mut series = relative(rows, rounds);
            let sizes: Vec<f64> = (0..columns.len())
                .map(|e| (series.iter().map(|row| row[e] * row[e]).sum::<f64>() / series.len().max(1) as f64).sqrt().max(1e-3))
                .collect();
            if super::Tuning::default().equal {
                series.iter_mut().for_each(|row| row.iter_mut().zip(&sizes).for_each(|(v, size)| *v /= size));
                for (i, a) in columns.iter().enumerate() {
                    let a = names.iter().position(|name| name == a).unwrap_or(0);
                    log_sizes[a].0 += sizes[i].ln();
                    log_sizes[a].1 += 1.0;
                }
            }
            let fitted = fit(&series, rounds as f64 * row_ms);
            for (i, a) in columns.iter().enumerate() {
                for (j, b) in columns.iter().enumerate() {
                    let (a, b) = (
                        names.iter().position(|name| name == a).unwrap_or(0),
                        names.iter().position(|name| name == b).unwrap_or(0),
                    );
                    for k in 0..PROCESSES {
                        sums[a * n + b][k] += fitted[k].at(i, j);
                    }
                    weights[a * n + b] += 1.0;
                }
            }
        }
        let values = sums.iter().zip(&weights).map(|(sum, &w)| sum.map(|v| if w > 0.0 { v / w } else { 0.0 })).collect();
        let mut values: Vec<PerProcess> = values;
        for a in 0..n {
            for b in 0..n {
                let size = |e: usize| if log_sizes[e].1 > 0.0 { (log_sizes[e].0 / log_sizes[e].1).exp() } else { 1.0 };
                values[a * n + b] = values[a * n + b].map(|v| v * size(a) * size(b));
            }
        }
        Self { names, values }
    }
}

/// Relative deviations from the running mean, of rounds of so many rows.
fn relative(rows: &[Vec<f64>], per_round: usize) -> Vec<Vec<f64>> {
    let events = rows.first().map_or(0, Vec::len);
    let tuning = super::Tuning::default();
    let mut levels = vec![super::level::Level::new(&tuning); events];
    let mut pending: Vec<Vec<f64>> = Vec::new();
    let mut series = Vec::new();
    for (i, chunk) in rows.chunks_exact(per_round).enumerate() {
        let sums: Vec<f64> = (0..events).map(|e| chunk.iter().map(|row| row[e]).sum()).collect();
        pending.push(sums);
        if pending.len() < 25 {
            continue;
        }
        let window = std::mem::take(&mut pending);
        for e in 0..events {
            levels[e].update(window.iter().map(|row| row[e]).sum(), 25.0, 100.0);
        }
        if i >= 50 {
            for sums in &window {
                series.push((0..events).map(|e| sums[e] / levels[e].rate().unwrap_or(1.0).max(0.01) - 1.0).collect::<Vec<f64>>());
            }
        }
    }
    if tuning.standard {
        standardise(&mut series, events);
    }
    for e in 0..events {
        let variance = series.iter().map(|row| row[e] * row[e]).sum::<f64>() / series.len().max(1) as f64;
        if variance > 9.0 {
            let scale = 3.0 / variance.sqrt();
            series.iter_mut().for_each(|row| row[e] *= scale);
        }
    }
    series
}

/// Scales deviations from windows' means so that they are as large in every window as on average.
fn standardise(series: &mut [Vec<f64>], events: usize) {
    for e in 0..events {
        let windows: Vec<(f64, f64)> = series
            .chunks_exact(25)
            .map(|window| {
                let mean = window.iter().map(|row| row[e]).sum::<f64>() / 25.0;
                (mean, window.iter().map(|row| (row[e] - mean).powi(2)).sum::<f64>() / 25.0)
            })
            .collect();
        let overall = windows.iter().map(|w| w.1).sum::<f64>() / windows.len().max(1) as f64 + 1e-12;
        let level = windows.iter().map(|w| w.0 * w.0).sum::<f64>() / windows.len().max(1) as f64 + 1e-12;
        let (mut rest_now, mut level_now) = ((overall, 1.0), (0.3 * level, 0.3));
        for (window, (mean, variance)) in series.chunks_exact_mut(25).zip(windows) {
            rest_now = (0.9 * rest_now.0 + variance, 0.9 * rest_now.1 + 1.0);
            level_now = (0.7 * level_now.0 + mean * mean, 0.7 * level_now.1 + 1.0);
            let rest = (overall / (rest_now.0 / rest_now.1)).clamp(1e-2, 1e3).sqrt();
            let by_level = (level / (level_now.0 / level_now.1)).clamp(1.0 / 400.0, 4.0).sqrt();
            for row in window {
                row[e] = by_level * mean + rest * (row[e] - mean);
            }
        }
    }
}

const LAGS: [usize; 12] = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 36, 50];

/// Least squares of lagged covariances on the processes', each clipped to be positive semidefinite.
fn fit(series: &[Vec<f64>], round_ms: f64) -> Vec<Square> {
    let events = series.first().map_or(0, Vec::len);
    let lagged: Vec<Square> = LAGS.iter().map(|&lag| lagged(series, lag, events)).collect();
    let span = |lag: usize| {
        let start = lag as f64 * round_ms;
        TimedSpan::new(Span { start, end: start + round_ms }, 0.0)
    };
    let basis: Vec<PerProcess> = LAGS.iter().map(|&lag| span(0).covariances(&span(lag))).collect();
    let mut fitted = vec![Square::zeros(events); PROCESSES];
    for _ in 0..6 {
        for j in 0..PROCESSES {
            let norm: f64 = basis.iter().map(|b| b[j] * b[j]).sum();
            let mut matrix = Square::zeros(events);
            for a in 0..events {
                for b in 0..events {
                    let mut sum = 0.0;
                    for (lag, basis) in lagged.iter().zip(&basis) {
                        let others: f64 = (0..PROCESSES).filter(|&k| k != j).map(|k| basis[k] * fitted[k].at(a, b)).sum();
                        sum += basis[j] * (lag.at(a, b) - others);
                    }
                    *matrix.at_mut(a, b) = sum / norm;
                }
            }
            fitted[j] = super::linear_algebra::clipped(&matrix, 0.0);
        }
    }
    fitted
}

fn lagged(series: &[Vec<f64>], lag: usize, events: usize) -> Square {
    let mut sums = Square::zeros(events);
    let pairs = series.len().saturating_sub(lag);
    for t in 0..pairs {
        for a in 0..events {
            let value = series[t][a];
            for (to, other) in sums.row_mut(a).iter_mut().zip(&series[t + lag]) {
                *to += value * other / pairs as f64;
            }
        }
    }
    let mut symmetric = Square::zeros(events);
    for a in 0..events {
        for b in 0..events {
            *symmetric.at_mut(a, b) = 0.5 * (sums.at(a, b) + sums.at(b, a));
        }
    }
    symmetric
}
