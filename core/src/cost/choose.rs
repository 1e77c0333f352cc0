//! Compares models of the same measurements, and says how much likelier the best one is.

use super::fit::{Fit, fit_below_zero};
use super::fit_error::FitError;
use super::fit_options::{FitOptions, UnrepeatedErrors};
use super::measurements::FittedPoint;
use super::model::CostModel;
use super::workload::WorkloadFile;

/// A model that was fitted beside others.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The model.
    pub model: CostModel,
    /// How well it fits.
    pub fit: Fit,
    /// The root of the mean square of the relative errors of each set of sizes, predicted by a fit to the
    /// others; `None` where there are too few.
    pub left_out: Option<f64>,
    /// How likely the model is the best of those compared: its share of the Akaike weights; `None` where it has too many
    /// coefficients for so few sets of sizes.
    pub likelihood: Option<f64>,
}

impl Choice {
    /// Whether it predicts sets of sizes that were left out as well as another one does, within chance (95 %).
    pub fn predicts_as_well_as(&self, other: &Self) -> bool {
        let sets = other.fit.points.len();
        self.left_out.zip(other.left_out).is_some_and(|(own, least)| is_within_chance(own, least, sets))
    }
}

/// Whether a root mean square error over so many sets of sizes is as small as another, within chance: the root of the mean of
/// n squares of normal errors has a standard error of `1 / sqrt(2 n)` of it, and twice that is 95 %.
fn is_within_chance(error: f64, least: f64, sets: usize) -> bool {
    error <= least * (1.0 + 2.0 / (2.0 * sets as f64).sqrt())
}

/// The models that `auto` compares: of one size by rising growth, and behind them two that change at a size, by a bend and by
/// a jump. Without a size there is only the constant.
pub fn candidates(sizes: &[String]) -> Vec<String> {
    let n = match sizes {
        [] => return vec!["intercept".to_owned()],
        [n] => n,
        sizes => {
            let linear: Vec<String> =
                sizes.iter().enumerate().map(|(place, name)| format!("coeff{} * {name}", place + 1)).collect();
            return vec!["intercept".to_owned(), format!("intercept + {}", linear.join(" + "))];
        }
    };
    let forms = [
        "log2(1 + {n})",
        "sqrt({n})",
        "{n}",
        "{n} * log2(1 + {n})",
        "pow({n}, 1.2)",
        "{n} * sqrt({n})",
        "{n} * {n}",
        "pow({n}, 3)",
    ];
    let with_constant = forms.iter().map(|form| format!("intercept + coeff * {}", form.replace("{n}", n)));
    // A size may have the name itself.
    let at = if n == "break" { "break_" } else { "break" };
    let broken = ["breakdown_const", "jump_const"].map(|name| format!("{name}({n}, {at})"));
    std::iter::once("intercept".to_owned()).chain(with_constant).chain(broken).collect()
}

/// Fits each model and orders them, the likeliest first.
///
/// The likelihood is by Akaike's criterion, corrected for few measurements (Burnham and Anderson, "Model Selection and
/// Multimodel Inference", 2002, 2.4 and 2.9): n ln(RSS / n) + 2 k + 2 k (k + 1) / (n - k - 1), where k counts the coefficients
/// and the variance. A breakpoint costs 2 ln p beside its 2, as the best of p places is searched for it: naming one of them takes ln p nats (Davis, Lee and Rodriguez-Yam,
/// "Structural break estimation for nonstationary time series models", 2006). Errors of sizes that
/// were left out don't order models: by them a breakpoint that isn't there is best far more often (docs/cost.md).
///
/// # Errors
/// Returns the first model's error where none can be fitted, and of several models [`FitError::TooFewToCompare`] or
/// [`FitError::NoRival`] where fewer than two can be compared: nothing tells then which is best.
pub fn choose(models: Vec<CostModel>, file: &WorkloadFile, options: &FitOptions) -> Result<Vec<Choice>, FitError> {
    let (mut choices, mut first_error, mut needed) = (Vec::new(), None, Vec::new());
    let is_choice = models.len() > 1;
    for model in models {
        match Fit::unjudged(&model, file, options) {
            Ok(fit) => {
                needed.push(parameters(&fit) + 2);
                let criteria = Criteria::of(&fit, &model, file, options);
                choices.push((criteria, model, fit));
            }
            Err(error) => {
                // The variance is one more of what is to be found.
                needed.extend(error.too_few_for().map(|coefficients| coefficients + 3));
                first_error = first_error.or(Some(error));
            }
        }
    }
    let mut choices = cautious(choices);
    let Some((_, _, first)) = choices.first() else { return first_error.map_or(Ok(Vec::new()), Err) };
    if is_choice && choices.iter().filter(|(criterion, ..)| criterion.is_finite()).count() < 2 {
        let points = first.points.len();
        needed.sort_unstable();
        return Err(match (needed.get(1).filter(|needed| **needed > points), first_error) {
            (None, Some(error)) => FitError::NoRival { error: Box::new(error) },
            (needed, _) => FitError::TooFewToCompare { points, needed: needed.copied().unwrap_or(points + 1) },
        });
    }
    let best = choices.iter().map(|(criterion, ..)| *criterion).fold(f64::INFINITY, f64::min);
    let weight = |criterion: f64| (-0.5 * (criterion - best)).exp();
    let all: f64 = choices.iter().map(|(criterion, ..)| weight(*criterion)).sum();
    choices.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    let choice = |(criterion, model, fit): (f64, CostModel, Fit)| Choice {
        left_out: left_out(&fit, &model, file, options),
        likelihood: criterion.is_finite().then(|| weight(criterion) / all),
        model,
        fit,
    };
    let mut choices: Vec<Choice> = choices.into_iter().map(choice).collect();
    judge_best(&mut choices, file, options)?;
    Ok(choices)
}

/// Finds whether the best model fits; if it doesn't, which of it and the others without a breakpoint would fit best with coefficients
/// below 0.
fn judge_best(choices: &mut [Choice], file: &WorkloadFile, options: &FitOptions) -> Result<(), FitError> {
    let [best, others @ ..] = choices else { return Ok(()) };
    best.fit = Fit::new(&best.model, file, options)?;
    if let Some(lack) = &mut best.fit.fitted.lack_of_fit {
        let smooth = others.iter().filter(|other| other.fit.fitted.breakpoints.is_empty());
        let models = std::iter::once(&best.model).chain(smooth.map(|other| &other.model));
        let fits = models.filter_map(|model| Some((criterion(&fit_below_zero(model, file, options)?), model)));
        let likeliest = fits.min_by(|(a, _), (b, _)| a.total_cmp(b));
        lack.fits_below_zero = likeliest.map(|(_, model)| model.expression().to_string());
    }
    Ok(())
}

/// The criterion of a model where sizes that were measured too seldom to tell are as uncertain as the options say, and where
/// each is uncertain by a part of its value. The same where they were measured often enough.
struct Criteria {
    as_asked: f64,
    of_parts: f64,
}

impl Criteria {
    fn of(fit: &Fit, model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> Self {
        let unrepeated = UnrepeatedErrors::PartOfValue;
        let of_parts = Fit::unjudged(model, file, &FitOptions { unrepeated, ..options.clone() });
        let as_asked = criterion(fit);
        Self { as_asked, of_parts: of_parts.map_or(as_asked, |fit| criterion(&fit)) }
    }
}

/// The criterion of each model. One with a breakpoint is no more likely, beside the best without, than where errors are a part
/// of the value: of errors that are, those of the largest sizes look like another part of the model where all are taken
/// to be alike.
fn cautious(all: Vec<(Criteria, CostModel, Fit)>) -> Vec<(f64, CostModel, Fit)> {
    let smooth = all.iter().filter(|(.., fit)| fit.fitted.breakpoints.is_empty());
    let best = smooth.fold([f64::INFINITY; 2], |[as_asked, of_parts], (criteria, ..)| {
        [as_asked.min(criteria.as_asked), of_parts.min(criteria.of_parts)]
    });
    let one = |(Criteria { as_asked, of_parts }, model, fit): (Criteria, CostModel, Fit)| {
        let worse = (of_parts - best[1]) - (as_asked - best[0]);
        let is_doubted = !fit.fitted.breakpoints.is_empty() && worse > 0.0;
        (if is_doubted { as_asked + worse } else { as_asked }, model, fit)
    };
    all.into_iter().map(one).collect()
}

/// What was found by the measurements: coefficients, breakpoints and the variance.
fn parameters(fit: &Fit) -> usize {
    fit.fitted.coefficients.len() + fit.fitted.breakpoints.len() + 1
}

/// Akaike's corrected criterion; the variance of what is left is weighted as in the fit.
fn criterion(fit: &Fit) -> f64 {
    let count = fit.points.len() as f64;
    let parameters = parameters(fit) as f64;
    let squares: f64 = fit.points.iter().map(|point| point.weight * (point.measured - point.predicted).powi(2)).sum();
    // What fits exactly is told apart no further than numbers are.
    let scale: f64 = fit.points.iter().map(|point| point.weight * point.measured.powi(2)).sum();
    let variance = (squares / count).max(f64::EPSILON.powi(2) * scale / count).max(f64::MIN_POSITIVE);
    let left = count - parameters - 1.0;
    let correction = if left > 0.0 { 2.0 * parameters * (parameters + 1.0) / left } else { f64::INFINITY };
    // Two sizes stand on each side.
    let searched = 2.0 * (count - 3.0).max(1.0).ln() * fit.fitted.breakpoints.len() as f64;
    count * variance.ln() + 2.0 * parameters + correction + searched
}

/// At most so many groups of sets of sizes are left out, one at a time.
const GROUPS: usize = 12;

/// Fits to all sets of sizes but those of one group, and predicts these. Up to 12 sets are a group each.
fn left_out(fit: &Fit, model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> Option<f64> {
    let measured =
        |place: &usize| file.workloads[*place].samples.get(&options.response).is_some_and(|all| !all.is_empty());
    let kept = (0..file.workloads.len()).filter(|place| !fit.culled.contains_key(place)).filter(measured);
    let kept: Vec<(usize, &FittedPoint)> = kept.zip(&fit.points).collect();
    let options = FitOptions { cull: None, ..options.clone() };
    let mut squares = 0.0;
    for group in 0..GROUPS.min(kept.len()) {
        let (left_out, others): (Vec<_>, Vec<_>) =
            kept.iter().enumerate().partition(|(place, _)| place % GROUPS == group);
        let workloads = others.into_iter().map(|(_, (place, _))| file.workloads[*place].clone()).collect();
        let others = WorkloadFile { header: file.header.clone(), workloads };
        let fit = Fit::unjudged(model, &others, &options).ok()?;
        for (_, (_, point)) in left_out {
            let predicted = fit.fitted.predict(model, &point.sizes).ok()?.value;
            squares += ((predicted - point.measured) / point.measured).powi(2);
        }
    }
    let mean = (squares / kept.len() as f64).sqrt();
    mean.is_finite().then_some(mean)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_within_chance_by_hand() {
        // Of 8 sets a root is known to 1/4 of it, so that half as much again is within chance; of none nothing is known.
        assert!(is_within_chance(1.5, 1.0, 8) && !is_within_chance(1.51, 1.0, 8) && is_within_chance(9.0, 1.0, 0));
        assert!(is_within_chance(0.0, 0.0, 8) && !is_within_chance(0.1, 0.0, 8));
    }

    #[test]
    fn without_sizes_there_is_only_the_constant() {
        assert_eq!(candidates(&[]), ["intercept"]);
        let two = ["n", "m"].map(str::to_owned);
        assert_eq!(candidates(&two), ["intercept", "intercept + coeff1 * n + coeff2 * m"]);
    }

    proptest! {
        #[test]
        fn more_sets_of_sizes_leave_less_to_chance(least in 1e-6..1.0f64, above in 1.0..3.0f64, sets in 1usize..100, more in 1usize..100) {
            prop_assert!(!is_within_chance(above * least, least, sets + more) || is_within_chance(above * least, least, sets));
            prop_assert!(is_within_chance(least, least, sets));
        }
    }
}
