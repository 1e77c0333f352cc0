//! Holds how events tend to vary together by their names, and learns it from complete counts of programs.

use serde::{Deserialize, Serialize};

use super::super::fading::FadingMean;
use super::covariance::Covariances;
use super::level::Level;
use super::time::{PROCESSES, PerProcess, ROUND_MS, Span, TimedSpan};
use super::{Settings, volatility};
use perfprop_linear_algebra::Square;

/// How events vary together in programs at large, by their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    families: Vec<EventFamily>,
}

/// Events that were counted together in the same programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct EventFamily {
    /// How many programs it was learnt from.
    programs: usize,
    events: Vec<String>,
    /// Row after row of the lower triangle, a number for each process.
    covariances: Vec<PerProcess>,
}

/// A program's complete counts.
#[derive(Clone, Copy, Debug)]
pub struct Complete<'a> {
    /// Names of the events.
    pub names: &'a [String],
    /// Their counts in each row of time.
    pub rows: &'a [Vec<f64>],
    /// The length of a row, in milliseconds.
    pub row_ms: f64,
}

impl Complete<'_> {
    /// Whether it holds more than the first windows, in which the running mean isn't one yet.
    pub fn is_long_enough(&self) -> bool {
        self.rows.len() >= self.rows_per_round() * WINDOW * (FIRST_WINDOWS + 1)
    }

    fn rows_per_round(&self) -> usize {
        ((ROUND_MS / self.row_ms) as usize).max(1)
    }
}

/// Variance of a relative rate in each process, where nothing is known.
const UNKNOWN: PerProcess = [0.04, 0.04, 0.02, 0.02];

/// The event that the clock's rate shows in.
const CYCLES: &str = "cycles";
/// Variance of the clock's rate: all events go along with it. Programs that a prior is learnt from may have had a
/// steady one, but those that are measured may not. Where cycles are steady, they say so.
const CLOCK: PerProcess = [0.02, 0.01, 0.005, 0.0];

/// Names of perf and presets, and by which name a prior knows what they count.
const ALIASES: &[(&str, &str)] = &[
    ("cpu-cycles", "cycles"),
    ("slots", "cycles"),
    ("branch-instructions", "branches"),
    ("branch-misses", "br_misp"),
    ("branch_misses", "br_misp"),
    ("cond_branches", "br_cond"),
    ("taken_branches", "br_taken"),
    ("l1-dcache-loads", "loads"),
    ("l1-dcache-stores", "stores"),
    ("l1-dcache-load-misses", "l1d_load_miss"),
    ("l1_load_misses", "l1d_load_miss"),
    ("l1-icache-load-misses", "l1i_miss"),
    ("l1i_misses", "l1i_miss"),
    ("l1i_accesses", "l1i_access"),
    ("l2_accesses", "l2_access"),
    ("l2_hits", "l2_hit"),
    ("l2_misses", "l2_miss"),
    ("l2_code_misses", "l2_code_miss"),
    ("cache-references", "llc_access"),
    ("llc_accesses", "llc_access"),
    ("cache-misses", "llc_miss"),
    ("llc_misses", "llc_miss"),
    ("llc-load-misses", "llc_load_miss"),
    ("llc_load_misses", "llc_load_miss"),
    ("llc-store-misses", "llc_store_miss"),
    ("dtlb-load-misses", "dtlb_load_miss"),
    ("dtlb_load_misses", "dtlb_load_miss"),
    ("dtlb-store-misses", "dtlb_store_miss"),
    ("dtlb_store_misses", "dtlb_store_miss"),
    ("itlb-load-misses", "itlb_miss"),
    ("itlb_misses", "itlb_miss"),
    ("stalls_memory", "stall_mem"),
    ("stalls_frontend", "stall_fe"),
    ("stalls_l3_miss", "stall_llc"),
    ("topdown-be-bound", "stall_mem"),
    ("topdown-fe-bound", "stall_fe"),
    ("topdown-bad-spec", "stall_misp"),
    ("topdown-retiring", "uops"),
];

impl Prior {
    /// The prior that comes with the program. Without one, in case its file is damaged, everything
    /// works from the program's own run alone.
    pub fn shipped() -> Self {
        serde_json::from_str(include_str!("../../../relations/prior.json")).unwrap_or_default()
    }

    /// As a file holds it.
    ///
    /// # Errors
    /// Returns the JSON writer's error; none is known.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// The covariances of these events. `doubt` is taken off all between two events.
    pub(crate) fn covariances(&self, names: &[&str], doubt: f64) -> Covariances {
        let places = |family: &EventFamily| -> Vec<Option<usize>> {
            names.iter().map(|name| family.events.iter().position(|event| is(name, event))).collect()
        };
        let known = |places: &Vec<Option<usize>>| places.iter().flatten().count();
        let best = self.families.iter().map(|family| (family, places(family))).max_by_key(|(_, places)| known(places));
        let mut covariances = Covariances::zeros(names.len());
        (0..names.len()).for_each(|event| *covariances.at_mut(event, event) = UNKNOWN);
        let Some((family, places)) = best else { return covariances };
        let clock = if names.iter().any(|name| is(name, CYCLES)) { CLOCK } else { PerProcess::default() };
        for a in 0..names.len() {
            for b in 0..=a {
                let (Some(x), Some(y)) = (places[a], places[b]) else { continue };
                let shared = (1.0 - doubt) * likeness(names[a]) * likeness(names[b]);
                let mut value = *family.at(x, y);
                value.iter_mut().zip(clock).for_each(|(value, clock)| *value += clock);
                // What several of one name share is less than what each varies by, or they would be one.
                let value = value.map(|value| if a == b { value + 1e-4 } else { shared * value });
                *covariances.at_mut(a, b) = value;
                *covariances.at_mut(b, a) = value;
            }
        }
        covariances
    }

    /// What programs have in common, each that is long enough as important as any other. It takes seconds a program;
    /// `told` gets how many are done.
    pub fn learn(programs: &[Complete<'_>], mut told: impl FnMut(usize)) -> Self {
        let mut families: Vec<Vec<&Complete<'_>>> = Vec::new();
        for program in programs.iter().filter(|program| program.is_long_enough()) {
            let alike = |family: &&mut Vec<&Complete<'_>>| {
                let shared = family[0].names.iter().filter(|name| program.names.contains(name)).count();
                2 * shared > program.names.len()
            };
            match families.iter_mut().find(alike) {
                Some(family) => family.push(program),
                None => families.push(vec![program]),
            }
        }
        let mut done = 0;
        let mut one_more = || {
            done += 1;
            told(done);
        };
        Self { families: families.iter().map(|programs| EventFamily::learn(programs, &mut one_more)).collect() }
    }
}

/// A name as users write it without its modifiers, and these.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once(':').filter(|(_, modifiers)| modifiers.len() <= 3).unwrap_or((name, ""))
}

/// How an event of this name correlates with all that a prior knows by it: what happens in the kernel is a part that
/// goes its own ways.
fn likeness(name: &str) -> f64 {
    match split(name).1 {
        "" => 1.0,
        modifiers if modifiers.contains('k') && !modifiers.contains('u') => 0.5,
        _ => 0.95,
    }
}

/// Whether a name as users write it is that of an event of a prior.
fn is(name: &str, event: &str) -> bool {
    if name == event {
        return true;
    }
    let name = name.to_lowercase();
    let plain = split(&name).0;
    plain == event || ALIASES.iter().any(|(alias, known)| *alias == plain && *known == event)
}

impl EventFamily {
    fn at(&self, a: usize, b: usize) -> &PerProcess {
        let (row, column) = (a.max(b), a.min(b));
        &self.covariances[row * (row + 1) / 2 + column]
    }

    /// The mean of the programs' covariances, each of deviations in units of their size, times the
    /// geometric mean of sizes.
    fn learn(programs: &[&Complete<'_>], one_more: &mut dyn FnMut()) -> Self {
        let mut events: Vec<String> = Vec::new();
        for name in programs.iter().flat_map(|program| program.names) {
            if !events.contains(name) {
                events.push(name.clone());
            }
        }
        let n = events.len();
        let mut sums = vec![([0.0; PROCESSES], 0.0); n * n];
        let mut log_sizes = vec![(0.0f64, 0.0f64); n];
        for program in programs {
            let places: Vec<usize> =
                program.names.iter().map(|name| events.iter().position(|event| event == name).unwrap_or(0)).collect();
            let per_round = program.rows_per_round();
            let mut series = relative(program.rows, per_round);
            for (e, &place) in places.iter().enumerate() {
                let squares: f64 = series.iter().map(|row| row[e] * row[e]).sum();
                let size = (squares / series.len().max(1) as f64).sqrt().max(1e-3);
                series.iter_mut().for_each(|row| row[e] /= size);
                log_sizes[place].0 += size.ln();
                log_sizes[place].1 += 1.0;
            }
            let fitted = fit(&series, per_round as f64 * program.row_ms);
            one_more();
            for (i, &a) in places.iter().enumerate() {
                for (j, &b) in places.iter().enumerate() {
                    let (sum, count) = &mut sums[a * n + b];
                    sum.iter_mut().zip(&fitted).for_each(|(sum, fitted)| *sum += fitted.at(i, j));
                    *count += 1.0;
                }
            }
        }
        let size = |e: usize| (log_sizes[e].0 / log_sizes[e].1).exp();
        let mean = |a: usize, b: usize| {
            let (sum, count) = sums[a * n + b];
            sum.map(|value| rounded(value / f64::max(count, 1.0) * size(a) * size(b)))
        };
        let covariances = (0..n).flat_map(|a| (0..=a).map(move |b| (a, b))).map(|(a, b)| mean(a, b)).collect();
        Self { programs: programs.len(), events, covariances }
    }
}

/// Rounds to four decimals: what is smaller is within the doubt.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// How many rounds that counts are summed to make a window.
const WINDOW: usize = 25;
const WINDOW_MS: f64 = ROUND_MS * WINDOW as f64;
/// The variance of a window that hardly changes is made no more than so many times as large.
const MOST_SCALED: f64 = 1e3;
/// So many windows are left out at the start, where the running mean isn't one yet.
const FIRST_WINDOWS: usize = 2;

/// Relative deviations from the running mean, of rounds of so many rows. The first windows, where
/// the mean isn't one yet, are left out.
fn relative(rows: &[Vec<f64>], per_round: usize) -> Vec<Vec<f64>> {
    let events = rows.first().map_or(0, Vec::len);
    let mut levels = vec![Level::default(); events];
    let mut series = Vec::new();
    for (i, window) in rows.chunks_exact(per_round * WINDOW).enumerate() {
        for (e, level) in levels.iter_mut().enumerate() {
            let count = window.iter().map(|row| row[e]).sum();
            level.update(count, WINDOW as f64, WINDOW_MS, Settings::default().level_memory);
        }
        if i < FIRST_WINDOWS {
            continue;
        }
        for round in window.chunks_exact(per_round) {
            let relative = levels.iter().enumerate().map(|(e, level)| {
                let sum: f64 = round.iter().map(|row| row[e]).sum();
                sum / level.rate().unwrap_or(1.0).max(0.01) - 1.0
            });
            series.push(relative.collect::<Vec<f64>>());
        }
    }
    standardise(&mut series, events);
    for e in 0..events {
        let variance = series.iter().map(|row| row[e] * row[e]).sum::<f64>() / series.len().max(1) as f64;
        // Bursts: what is left of them is enough to be known as such.
        if variance > 9.0 {
            series.iter_mut().for_each(|row| row[e] *= 3.0 / variance.sqrt());
        }
    }
    series
}

/// Scales deviations from windows' means so that they are as large in every window as on average.
fn standardise(series: &mut [Vec<f64>], events: usize) {
    let settings = Settings::default();
    for e in 0..events {
        let windows: Vec<(f64, f64)> = series
            .chunks_exact(WINDOW)
            .map(|window| {
                let mean = window.iter().map(|row| row[e]).sum::<f64>() / WINDOW as f64;
                (mean, window.iter().map(|row| (row[e] - mean).powi(2)).sum::<f64>() / WINDOW as f64)
            })
            .collect();
        let overall = windows.iter().map(|w| w.1).sum::<f64>() / windows.len().max(1) as f64 + 1e-12;
        let level = windows.iter().map(|w| w.0 * w.0).sum::<f64>() / windows.len().max(1) as f64 + 1e-12;
        let as_expected = |square, weight| FadingMean { sum: weight * square, weight };
        let mut rest_now = as_expected(overall, volatility::CHANGES_BEFORE);
        let mut level_now = as_expected(level, volatility::LEVELS_BEFORE);
        for (window, (mean, variance)) in series.chunks_exact_mut(WINDOW).zip(windows) {
            rest_now.forget(settings.volatility_memory.kept(WINDOW_MS));
            rest_now.add(variance);
            level_now.forget(settings.drift_memory.kept(WINDOW_MS));
            level_now.add(mean * mean);
            let now = |mean: FadingMean| mean.sum / mean.weight;
            let rest = (overall / now(rest_now)).clamp(1.0 / volatility::MOST_CHANGE, MOST_SCALED).sqrt();
            let by_level = level / now(level_now);
            let by_level = by_level.clamp(1.0 / volatility::MOST_LEVEL, 1.0 / volatility::LEAST_LEVEL).sqrt();
            for row in window {
                row[e] = by_level * mean + rest * (row[e] - mean);
            }
        }
    }
}

/// Distances, in rounds, at which covariances are fitted.
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
                        let others: f64 =
                            (0..PROCESSES).filter(|&k| k != j).map(|k| basis[k] * fitted[k].at(a, b)).sum();
                        sum += basis[j] * (lag.at(a, b) - others);
                    }
                    *matrix.at_mut(a, b) = sum / norm;
                }
            }
            fitted[j] = perfprop_linear_algebra::clipped(&matrix, 0.0);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum over processes.
    fn sum(covariances: &Covariances, a: usize, b: usize) -> f64 {
        covariances.at(a, b).iter().sum()
    }

    #[test]
    fn two_events_of_one_name_go_along_and_are_not_one() {
        let names = ["branches", "branch-instructions", "branches:u", "branches:k", "loads", "cycles:u", "cycles"];
        let covariances = Prior::shipped().covariances(&names, 0.05);
        let correlation =
            |a: usize, b: usize| sum(&covariances, a, b) / (sum(&covariances, a, a) * sum(&covariances, b, b)).sqrt();
        assert!((0.9..0.99).contains(&correlation(0, 1)), "{}", correlation(0, 1));
        assert!((0.85..correlation(0, 1)).contains(&correlation(0, 2)), "{}", correlation(0, 2));
        assert!((0.3..correlation(0, 2)).contains(&correlation(0, 3)), "{}", correlation(0, 3));
        // Both say as much of others.
        assert_eq!(covariances.at(0, 4), covariances.at(1, 4));
        for process in 0..PROCESSES {
            let mut matrix = covariances.process(process);
            (0..names.len()).for_each(|event| *matrix.at_mut(event, event) += 1e-9);
            assert!(matrix.cholesky(), "process {process}");
        }
    }

    #[test]
    fn a_program_that_is_too_short_teaches_nothing() {
        let names = ["loads", "stores"].map(str::to_owned);
        let rows =
            |length: u32| (0..length).map(|row| vec![f64::from(row % 7), f64::from(row % 5)]).collect::<Vec<_>>();
        let [none, short, least, long] = [0, 299, 300, 600].map(rows);
        let [none, short, least, long] =
            [&none, &short, &least, &long].map(|rows| Complete { names: &names, rows, row_ms: 1.0 });
        assert_eq!([none, short, least].map(|program| program.is_long_enough()), [false, false, true]);
        assert!(Prior::learn(&[short], |_| ()).families.is_empty());
        let both = Prior::learn(&[short, long], |_| ());
        assert_eq!((both.families.len(), both.families[0].programs), (1, 1));
    }

    #[test]
    fn cycles_vary_with_the_clock_and_all_events_with_them() {
        let prior = Prior::shipped();
        let covariances = prior.covariances(&["cycles", "loads"], 0.05);
        assert!(sum(&covariances, 0, 0) > 0.03 && sum(&covariances, 0, 1) > 0.03, "{:?}", covariances.at(0, 0));
        // Without cycles nothing tells.
        let [with, without] = [&covariances, &prior.covariances(&["loads", "stores"], 0.05)];
        assert!(sum(with, 1, 1) > sum(without, 0, 0));
    }

    #[test]
    fn lagged_products_by_hand() {
        let one = [[1.0], [2.0], [3.0]].map(Vec::from);
        let found = [0, 1, 2, 3].map(|lag| lagged(&one, lag, 1).at(0, 0));
        // (1 + 4 + 9) / 3, (1 x 2 + 2 x 3) / 2, 1 x 3; there are none three rounds apart.
        assert!((found[0] - 14.0 / 3.0).abs() < 1e-12 && found[1..] == [4.0, 3.0, 0.0], "{found:?}");
        // The first before the second has 1 x 2, the second before the first nothing.
        let both = lagged(&[[1.0, 0.0], [0.0, 2.0]].map(Vec::from), 1, 2);
        assert_eq!([(0, 0), (0, 1), (1, 0), (1, 1)].map(|(a, b)| both.at(a, b)), [0.0, 1.0, 1.0, 0.0]);
        assert_eq!(lagged(&[], 0, 0).size(), 0);
    }

    #[test]
    fn what_never_changes_is_all_constant_by_hand() {
        let fitted = fit(&vec![vec![2.0, -1.0]; 100], ROUND_MS);
        let constant = [(0, 0), (0, 1), (1, 1)].map(|(a, b)| fitted[0].at(a, b));
        assert!(
            constant.iter().zip([4.0, -2.0, 1.0]).all(|(found, by_hand)| (found - by_hand).abs() < 1e-9),
            "{constant:?}"
        );
        assert!(fitted[1..].iter().all(|process| process.at(0, 0).abs() < 1e-9));
        // Nothing, and no events.
        assert!(fit(&vec![vec![0.0]; 100], ROUND_MS).iter().all(|process| process.at(0, 0) == 0.0));
        assert!(fit(&[], ROUND_MS).iter().all(|process| process.size() == 0));
    }

    /// Windows of one event with a mean of 0 and these variances.
    fn windows(variances: &[f64]) -> Vec<Vec<f64>> {
        let size = |variance: f64| (variance * WINDOW as f64 / (WINDOW - 1) as f64).sqrt();
        let value = |variance: f64, round: usize| match round {
            0 => 0.0,
            round if round % 2 == 0 => size(variance),
            _ => -size(variance),
        };
        variances.iter().flat_map(|&variance| (0..WINDOW).map(move |round| vec![value(variance, round)])).collect()
    }

    #[test]
    fn windows_are_made_as_large_as_on_average_by_hand() {
        let mut series = windows(&[1.0, 3.0]);
        standardise(&mut series, 1);
        // Of a mean of 2: as if that had been seen once before, a window remembers 0.9 of the last one.
        let now = [(0.9 * 2.0 + 1.0) / 1.9, (0.9 * 2.8 + 3.0) / 2.71];
        for (window, (variance, now)) in [1.0, 3.0].into_iter().zip(now).enumerate() {
            let found = series[window * WINDOW + 2][0] / windows(&[variance])[2][0];
            assert!((found - (2.0f64 / now).sqrt()).abs() < 1e-6, "{window}: {found}");
        }
        // Windows that are alike, or hold nothing, stay as they are.
        for variance in [2.0, 0.0] {
            let mut same = windows(&[variance; 3]);
            standardise(&mut same, 1);
            assert!(
                same.iter().zip(windows(&[variance; 3])).all(|(found, before)| (found[0] - before[0]).abs() < 1e-9)
            );
        }
        standardise(&mut [], 0);
    }

    proptest::proptest! {
        #[test]
        fn what_is_fitted_is_no_variance_below_none(
            rows in proptest::collection::vec([-3.0..3.0f64, -3.0..3.0], 1..80),
        ) {
            let rows: Vec<Vec<f64>> = rows.into_iter().map(Vec::from).collect();
            for mut process in fit(&rows, ROUND_MS) {
                (0..2).for_each(|event| *process.at_mut(event, event) += 1e-9);
                proptest::prop_assert!(process.cholesky());
            }
        }

        #[test]
        fn standardising_is_the_same_in_all_units(
            variances in proptest::collection::vec(0.5..20.0f64, 1..6), unit in 0.5..2.0f64,
        ) {
            let (mut one, mut other) = (windows(&variances), windows(&variances));
            other.iter_mut().flatten().for_each(|value| *value *= unit);
            standardise(&mut one, 1);
            standardise(&mut other, 1);
            proptest::prop_assert!(one.iter().zip(&other).all(|(a, b)| (unit * a[0] - b[0]).abs() < 1e-6));
        }
    }
}
