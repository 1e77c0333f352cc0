//! Reads `perfprop.toml`, in which a project names its benchmarks.

use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::super::Error;
use super::super::args::{TimeUnit, duration};
use super::super::text_input::in_file;
use crate::files;
use crate::history::{BenchCommand, CONFIGURATION, HistoryPlan};
use crate::tui::{Complaint, unknown};

/// The limits of a run's time that are taken, in milliseconds.
pub(super) const LIMITS_MS: RangeInclusive<u64> = 0..=86_400_000;

/// The file as it stands.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigurationFile {
    #[serde(default)]
    history: HistoryTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HistoryTable {
    build: Option<String>,
    #[serde(default)]
    events: Vec<String>,
    #[serde(default)]
    keep: Vec<PathBuf>,
    timeout: Option<Limit>,
    #[serde(default)]
    bench: BTreeMap<String, String>,
}

/// The longest that a run may take: a number of seconds, or a text as `--timeout` takes it.
#[derive(Deserialize)]
#[serde(try_from = "toml::Value")]
struct Limit(Duration);

impl TryFrom<toml::Value> for Limit {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        let text = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(seconds) => seconds.to_string(),
            other => other.to_string(),
        };
        duration(TimeUnit::Seconds, LIMITS_MS)(&text).map(Self).map_err(|error| format!("timeout: {error}"))
    }
}

/// What `perfprop.toml` in a folder says; nothing where there is none.
pub(super) fn plan_of_folder(folder: &Path) -> Result<HistoryPlan, Error> {
    let path = folder.join(CONFIGURATION);
    let text = match files::text(&path, files::LONGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HistoryPlan::default()),
        Err(error) => return Err(in_file(&path, error)),
    };
    let file: ConfigurationFile = toml::from_str(&text).map_err(|error| Error::Input(wrong(&path, &text, &error)))?;
    let HistoryTable { build, events, keep, timeout, bench } = file.history;
    let bench = bench.iter().map(|(name, command)| BenchCommand::new(name, command));
    let benches = bench.collect::<Result<_, _>>().map_err(|error| in_file(&path, error))?;
    let timeout = timeout.map(|Limit(time)| time);
    Ok(HistoryPlan { build, events, benches, keep, timeout })
}

/// What is wrong in the text of a file: `perfprop.toml:2:1: unknown key "bild"; did you mean "build"?`
fn wrong(path: &Path, text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    // `unknown field `bild`, expected one of `build`, `events``.
    let mut names = message.split('`').skip(1).step_by(2);
    let message = match names.next().filter(|_| message.starts_with("unknown field")) {
        Some(name) => unknown("key", name, names),
        None => message.lines().collect::<Vec<_>>().join("; "),
    };
    Complaint::at(&path.to_string_lossy(), text, error.span().unwrap_or_default(), message).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    #[test]
    fn a_file_names_benchmarks() {
        let folder = std::env::temp_dir().join(format!("perfprop-benches-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(plan_of_folder(&folder).unwrap(), HistoryPlan::default());
        let text = "[history]\nbuild = \"make\"\nevents = [\"cycles\"]\nkeep = [\"data\"]\ntimeout = 60\n[history.bench]\nb = \"./b 1\"\n";
        fs::write(folder.join(CONFIGURATION), text).unwrap();
        let plan = plan_of_folder(&folder).unwrap();
        assert_eq!((plan.build.as_deref(), plan.keep), (Some("make"), vec![PathBuf::from("data")]));
        assert_eq!(plan.timeout, Some(Duration::from_secs(60)));
        assert_eq!(plan.benches[0].argv, ["./b", "1"]);
        for (text, ms) in [("\"2m\"", 120_000), ("\"500ms\"", 500), ("\"90\"", 90_000), ("0", 0)] {
            fs::write(folder.join(CONFIGURATION), format!("[history]\ntimeout = {text}\n")).unwrap();
            assert_eq!(plan_of_folder(&folder).unwrap().timeout, Some(Duration::from_millis(ms)), "{text}");
        }
        for (text, expected) in [
            ("[history]\nbild = 1\n", "perfprop.toml:2:1: unknown key \"bild\"; did you mean \"build\"?"),
            ("[history]\nbuild = 1\n", "perfprop.toml:2:9: invalid type: integer `1`, expected a string"),
            ("[history]\nbuild = \n", "perfprop.toml:2:9: "),
            ("[history]\ntimeout = \"2 weeks\"\n", "timeout: give seconds from 0 to 86400, or a time with a unit"),
            ("[history]\ntimeout = -1\n", "timeout: give seconds from 0 to 86400"),
        ] {
            fs::write(folder.join(CONFIGURATION), text).unwrap();
            let Err(Error::Input(told)) = plan_of_folder(&folder) else { panic!("{text}") };
            assert!(told.contains(expected) && !told.contains("x0a") && told.lines().count() == 1, "{told}");
        }
        fs::remove_file(folder.join(CONFIGURATION)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join(CONFIGURATION)).unwrap();
        assert!(matches!(plan_of_folder(&folder), Err(Error::Input(text)) if text.contains("longer than 256 MiB")));
        fs::remove_dir_all(folder).unwrap();
    }
}
