//! Says what of machines and environments tells series of benchmarks apart.

use std::collections::{BTreeMap, BTreeSet};

use super::entries::ADDED;
use super::series::BenchmarkSeries;

/// Names and values of a machine and an environment that not all series share; `None` of what isn't set.
pub type DifferingParams = BTreeMap<String, Option<String>>;

/// Where a benchmark was measured.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredPlace<'a> {
    /// The benchmark.
    pub benchmark: &'a str,
    /// The machine and the environment, by name; `None` of what isn't set.
    pub params: &'a BTreeMap<String, Option<String>>,
    /// The names of the environments.
    pub environments: &'a BTreeSet<String>,
}

/// The name that a machine has among what is known of it.
const MACHINE: &str = "machine";

/// What the names of environments stand under, where nothing else tells two series apart.
const ENVIRONMENT: &str = "environment";

/// What tells each series from the others, in their order. All have the same names, and no two of one benchmark have
/// the same values, unless they are of the same environments, too.
///
/// What a series lacks isn't set. Of what wasn't built here, it is "added" instead.
pub fn differing_params(series: &[BenchmarkSeries]) -> Vec<DifferingParams> {
    differing(&series.iter().map(BenchmarkSeries::place).collect::<Vec<_>>())
}

/// What tells the environment of each place from those in which the same benchmark was measured on the same machine, in their
/// order; nothing where there is one alone.
pub fn params_of_environments<'a>(places: impl Iterator<Item = MeasuredPlace<'a>>) -> Vec<DifferingParams> {
    let places: Vec<MeasuredPlace<'_>> = places.collect();
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, place) in places.iter().enumerate() {
        groups.entry((place.benchmark, place.params.get(MACHINE))).or_default().push(at);
    }
    let mut all = vec![DifferingParams::new(); places.len()];
    for group in groups.into_values().filter(|group| group.len() > 1) {
        let of_group: Vec<MeasuredPlace<'_>> = group.iter().map(|&at| places[at]).collect();
        group.into_iter().zip(differing(&of_group)).for_each(|(at, params)| all[at] = params);
    }
    all
}

fn differing(series: &[MeasuredPlace<'_>]) -> Vec<DifferingParams> {
    let names: BTreeSet<&String> = series.iter().flat_map(|one| one.params.keys()).collect();
    let differs = |name: &&String| {
        let mut values = series.iter().map(|one| value(one, name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    let names: Vec<&String> = names.into_iter().filter(differs).collect();
    let of_one = |one| names.iter().map(|&name| (name.clone(), value(one, name).map(str::to_owned))).collect();
    let mut all: Vec<DifferingParams> = series.iter().map(of_one).collect();
    let mut told = BTreeSet::new();
    let is_told = series.iter().zip(&all).all(|(one, params)| told.insert((one.benchmark, params.clone())));
    if !is_told {
        for (one, params) in series.iter().zip(&mut all) {
            let environments: Vec<&str> = one.environments.iter().map(String::as_str).collect();
            params.insert(ENVIRONMENT.to_owned(), Some(environments.join(", ")));
        }
    }
    all
}

/// The value that a series has of a name.
fn value<'a>(one: &MeasuredPlace<'a>, name: &str) -> Option<&'a str> {
    match one.params.get(name) {
        Some(value) => value.as_deref(),
        None if one.environments.iter().eq([ADDED]) => Some(ADDED),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(environment: &str, params: &[(&str, Option<&str>)]) -> BenchmarkSeries {
        let param = |&(name, value): &(&str, Option<&str>)| (name.to_owned(), value.map(str::to_owned));
        BenchmarkSeries {
            benchmark: "b".into(),
            params: params.iter().map(param).collect(),
            environments: [environment.to_owned()].into(),
            points: Vec::new(),
            missing: BTreeMap::new(),
            kernels: BTreeMap::new(),
            runs: BTreeMap::new(),
        }
    }

    /// The words of each series.
    fn words(all: &[BenchmarkSeries]) -> Vec<String> {
        let text = |(name, value): (String, Option<String>)| format!("{name}={}", value.unwrap_or_default());
        differing_params(all).into_iter().map(|one| one.into_iter().map(text).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn what_only_one_environment_has_tells_it_from_others() {
        let (m, make) = (("machine", Some("m")), ("build", Some("make")));
        assert_eq!(words(&[series("build-1", &[m, make]), series(ADDED, &[m])]), ["build=make", "build=added"]);
        assert_eq!(words(&[series("build-1", &[m, make]), series("old", &[m])]), ["build=make", "build="]);
        let unbuilt = series("build-0", &[m, ("build", None)]);
        assert_eq!(words(&[unbuilt.clone(), series(ADDED, &[m])]), ["build=", "build=added"]);
        assert_eq!(words(&[series(ADDED, &[m])]), [""]);
        // One that isn't set and one that is missing.
        assert_eq!(words(&[unbuilt, series("old", &[m])]), ["environment=build-0", "environment=old"]);
    }
}
