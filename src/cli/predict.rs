//! Implements `perfprop predict`: what fitted cost models give for sizes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;

use super::Error;
use super::fit::number;
use super::input;
use super::stream::{Stream, say};
use super::text_input::{in_file, text_of};
use crate::cost::{CostModel, FitError, FittedModel};
use crate::names::{quoted, shown};
use crate::number::shortest;
use crate::recording::is_recording;
use crate::text;

/// The arguments of `perfprop predict`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop fit sort.jsonl --model nlogn --emit json -o sort.model
  perfprop predict sort.model n=1e7                       the time of a size, with its interval
  perfprop predict sort.model n=1e6,1e7,1e8               a line for each size
  perfprop fit sort.csv --model nlogn --emit json | perfprop predict - n=1e7")]
pub(super) struct PredictArgs {
    /// A fitted model, as `perfprop fit --emit json` writes it; `-` is standard input
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// The sizes, if the model has any; several values of one, separated by commas, give a line each
    #[arg(value_name = "SIZE=VALUE", value_parser = values)]
    sizes: Vec<(String, Vec<f64>)>,
}

fn values(text: &str) -> Result<(String, Vec<f64>), String> {
    let (name, list) = text.split_once('=').ok_or("expected SIZE=VALUE")?;
    let values: Option<Vec<f64>> = list.split(',').map(|value| number(value.trim())).collect();
    Ok((name.trim().to_owned(), values.ok_or("expected numbers, separated by commas")?))
}

pub(super) fn run(args: &PredictArgs) -> Result<u8, Error> {
    let models = read_models(&args.model)?;
    check_sizes(args, &models)?;
    let is_given = |name: &&str| args.sizes.iter().any(|(given, _)| given == *name);
    let mut out = String::new();
    for one in &models {
        let needed = one.sizes();
        if let Some(missing) = needed.iter().find(|name| !is_given(name)) {
            let missing = shown(missing);
            if models.len() == 1 {
                return Err(Error::Usage(format!("the model needs {missing}: give {missing}=VALUE")));
            }
            say(&format!("{} is left out: it needs {missing} ({missing}=VALUE)", quoted(&one.fitted.name)));
            continue;
        }
        let of_model = args.sizes.iter().filter(|(name, _)| needed.contains(&name.as_str())).cloned();
        one.check_signs(&args.sizes)?;
        let label = if models.len() > 1 { format!("{}: ", shown(&one.fitted.name)) } else { String::new() };
        if let Some(text) = text::doubtful_prediction(&one.fitted) {
            say(&format!("{label}{text}"));
        }
        let lines = one.predictions(&label, &of_model.collect::<Vec<_>>());
        out += &lines.map_err(|error| in_file(&args.model, error))?;
    }
    Stream::stdout().print(&out)?;
    Ok(0)
}

/// A model of a file, as it was fitted and read again.
struct ReadModel {
    fitted: FittedModel,
    model: CostModel,
}

/// The models of a file: one, or as many as files of a folder were fitted.
fn read_models(path: &Path) -> Result<Vec<ReadModel>, Error> {
    let text = text_of(path).map_err(|error| in_file(path, error))?;
    if is_recording(text.as_bytes()) {
        let wanted = "predict takes a model that was fitted:  perfprop fit FILE --model auto --emit json -o MODEL";
        return Err(input::is_recording(path, wanted));
    }
    let read = serde_json::Deserializer::from_str(&text).into_iter::<FittedModel>().collect::<Result<Vec<_>, _>>();
    let no_model = |what: &str| {
        in_file(path, format!("it is no fitted model ({}): make one with perfprop fit --emit json", shown(what)))
    };
    let all = read.map_err(|error| no_model(&error.to_string()))?;
    if all.is_empty() {
        return Err(no_model("it is empty"));
    }
    let one = |fitted: FittedModel| {
        fitted.check().map_err(|what| no_model(&what))?;
        let model = fitted.cost_model().map_err(|error| in_file(path, error))?;
        Ok(ReadModel { fitted, model })
    };
    all.into_iter().map(one).collect()
}

/// Refuses sizes that are given twice, and those that no model has.
fn check_sizes(args: &PredictArgs, models: &[ReadModel]) -> Result<(), Error> {
    let known: BTreeSet<&str> = models.iter().flat_map(ReadModel::sizes).collect();
    for (place, (name, _)) in args.sizes.iter().enumerate() {
        if args.sizes[..place].iter().any(|(before, _)| before == name) {
            let name = shown(name);
            return Err(Error::Usage(format!("{name} is given twice: several values of it are {name}=VALUE,VALUE")));
        }
    }
    if let Some((unknown, _)) = args.sizes.iter().find(|(name, _)| !known.contains(name.as_str())) {
        // A misspelt size is missing, too.
        let missing = known.iter().find(|name| !args.sizes.iter().any(|(given, _)| given == *name));
        let unknown = quoted(unknown);
        return Err(Error::Usage(match missing.map(|name| shown(name)) {
            Some(missing) => format!("the model needs {missing}: give {missing}=VALUE; it has no size {unknown}"),
            None if known.is_empty() => {
                format!("the model is a constant, and has no size {unknown}: perfprop predict MODEL, without sizes")
            }
            None => {
                let known: Vec<_> = known.into_iter().map(shown).collect();
                format!("the model has no size {unknown}; it has {}", known.join(", "))
            }
        }));
    }
    Ok(())
}

impl ReadModel {
    /// The sizes that a prediction needs.
    fn sizes(&self) -> Vec<&str> {
        let known = self.fitted.values();
        self.model.names().into_iter().filter(|name| !known.contains_key(*name)).collect()
    }

    /// Refuses sizes below 0 where none of those that were measured was.
    fn check_signs(&self, sizes: &[(String, Vec<f64>)]) -> Result<(), Error> {
        for (name, values) in sizes {
            let least = self.fitted.measured.get(name).map(|(least, _)| *least).filter(|least| *least >= 0.0);
            if let (Some(least), Some(value)) = (least, values.iter().find(|value| **value < 0.0)) {
                let (name, [value, least]) = (shown(name), [*value, least].map(shortest));
                let what = format!("{name}={value} is below 0, and the model was fitted to sizes from {least} up");
                return Err(Error::Usage(what));
            }
        }
        Ok(())
    }

    /// A line for each combination of sizes, behind a label.
    fn predictions(&self, label: &str, sizes: &[(String, Vec<f64>)]) -> Result<String, FitError> {
        let mut out = String::new();
        for sizes in combinations(sizes) {
            let values: BTreeMap<String, f64> = sizes.iter().cloned().collect();
            let prediction = self.fitted.predict(&self.model, &values)?;
            for (name, size, (low, high)) in self.fitted.outside(&values) {
                let [size, low, high] = [size, low, high].map(shortest);
                say(&format!(
                    "{}={size} is outside of what was measured ({low} to {high}): nothing says that the model holds there",
                    shown(&name)
                ));
            }
            out += label;
            out += &text::prediction(&self.fitted, &sizes, &prediction);
        }
        Ok(out)
    }
}

/// Each value of each size with each of the others.
fn combinations(sizes: &[(String, Vec<f64>)]) -> Vec<Vec<(String, f64)>> {
    sizes.iter().fold(vec![Vec::new()], |before, (name, values)| {
        let with = |one: &Vec<(String, f64)>, value: f64| one.iter().cloned().chain([(name.clone(), value)]).collect();
        before.iter().flat_map(|one| values.iter().map(|&value| with(one, value)).collect::<Vec<_>>()).collect()
    })
}
