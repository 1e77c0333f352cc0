//! Metrics: the vendors' expressions and tables in, values out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use flate2::read::GzDecoder;
use perfprop::expr::{Dialect, Expr, Fact, Kind, Slot, Subject, Variable, parse};
use serde::Deserialize;

/// The folder of the vendors' tables: `PERFPROP_PMU_EVENTS`, else the one beside this package.
fn pmu_events() -> PathBuf {
    std::env::var_os("PERFPROP_PMU_EVENTS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/pmu-events"), PathBuf::from)
}

/// A metric of the tables, counts for its names, and what it comes to.
#[derive(Deserialize)]
struct Golden {
    file: String,
    metric: String,
    expr: String,
    values: HashMap<String, f64>,
    literals: HashMap<String, f64>,
    expected: Option<f64>,
}

impl Golden {
    /// What is known of the machine in these goldens; names are in any case of letters.
    fn fact(&self, fact: &Fact) -> Option<f64> {
        match fact {
            Fact::Literal(name) => {
                let named = |literal: &&String| literal.trim_start_matches('#').eq_ignore_ascii_case(name);
                self.literals.keys().find(named).map(|literal| self.literals[literal])
            }
            Fact::HasEvent(_) | Fact::SourceCount(_) => Some(1.0),
            Fact::CpuIs(_) => Some(0.0),
        }
    }

    fn value(&self, expr: &Expr) -> Result<f64, String> {
        let mut slots = Vec::new();
        let known = expr.with_parts(100_000, |kind| match kind {
            Kind::Fact(fact) => Expr::number(self.fact(fact)?, Dialect::Metric),
            _ => None,
        });
        let known = known.ok_or("too long")?.folded();
        let program = known.compile(|Variable { subject, .. }| {
            let Subject::Event(name) = subject else { return None };
            slots.push(*self.values.get(name)?);
            Some(Slot(slots.len() - 1))
        });
        let program = program.map_err(|unresolved| format!("{:?}", unresolved[0].variable))?;
        Ok(program.eval(&slots))
    }

    fn mistake(&self) -> Option<String> {
        let text = || -> Result<(), String> {
            let expr = parse(&self.expr, Dialect::Vendor).map_err(|error| error.to_string())?;
            let again = parse(&expr.to_string(), Dialect::Metric).map_err(|error| error.to_string())?;
            for expr in [&expr, &again] {
                let found = self.value(expr)?;
                let is_right = match self.expected {
                    None => !found.is_finite(),
                    Some(expected) => (found - expected).abs() <= 1e-9 * expected.abs(),
                };
                if !is_right {
                    return Err(format!("{found} is not {:?}", self.expected));
                }
            }
            Ok(())
        };
        text().err().map(|error| format!("{}: {}: {error}\n    {}", self.file, self.metric, self.expr))
    }
}

#[test]
fn golden_metrics_of_pmu_events_have_their_values() {
    let path = pmu_events().join("metric-goldens.jsonl.gz");
    let Ok(file) = File::open(&path) else {
        eprintln!("skipped: no {} (PERFPROP_PMU_EVENTS names its folder)", path.display());
        return;
    };
    let lines: Vec<_> = BufReader::new(GzDecoder::new(file)).lines().map(Result::unwrap).collect();
    assert!(!lines.is_empty());
    let goldens = lines.iter().map(|line| serde_json::from_str::<Golden>(line).unwrap());
    let mistakes: Vec<_> = goldens.filter_map(|golden| golden.mistake()).collect();
    assert!(mistakes.is_empty(), "{} of {} are wrong:\n{}", mistakes.len(), lines.len(), mistakes[..mistakes.len().min(20)].join("\n"));
}
