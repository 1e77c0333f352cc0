//! Prints the steps of a series.

use serde_json::{Map, Value, json};

use super::history::table;
use crate::history::{LEAST_NUMBERS, SeriesTable};
use crate::names::shown;
use crate::number::{counted, plus_minus_part, si};
use crate::steps::{LevelChange, Step};

pub(super) use crate::number::chance as share;

/// The steps as a table: where each begins and ends, its level, and how it differs from the one before.
pub fn steps(series: &SeriesTable, steps: &[Step], changes: &[LevelChange]) -> String {
    let from = if series.indexes.is_empty() { "" } else { "FROM" };
    let heads = [
        ("LEFT", true),
        ("RIGHT", true),
        ("VALUE", true),
        ("SPREAD", true),
        ("CHANGE", true),
        ("CHANCE", true),
        (from, false),
    ];
    let rows = steps.iter().enumerate().map(|(at, step)| {
        let change = at.checked_sub(1).and_then(|before| Some((steps[before].value, changes.get(before)?)));
        let (by, chance) =
            change.map_or_else(Default::default, |(before, change)| (by(change, before), share(change.chance)));
        let from = series.indexes.get(step.left).map(|index| shown(index).into_owned()).unwrap_or_default();
        vec![step.left.to_string(), step.right.to_string(), si(step.value), si(step.error), by, chance, from]
    });
    let rows: Vec<_> = rows.collect();
    let missing = series.values.iter().filter(|value| value.is_none()).count();
    let count = series.values.len() - missing;
    let values = counted(count, "value");
    let missing = if missing > 0 { format!(", {missing} missing") } else { String::new() };
    let found = match steps.len().saturating_sub(1) {
        0 if count < LEAST_NUMBERS => format!("too few to show a change of level, which takes {LEAST_NUMBERS}"),
        1 => "1 change of level".to_owned(),
        count => format!("{count} changes of level"),
    };
    format!("{}\n{values}{missing}: {found}\n", table(&heads, &rows))
}

/// A change with its interval if that is known, in percent of the level before, or as it is where that is 0.
fn by(change: &LevelChange, before: f64) -> String {
    let half = change.interval.map(|(low, high)| 0.5 * (high - low));
    if before == 0.0 {
        let sign = if change.by > 0.0 { "+" } else { "" };
        return format!("{sign}{}", si(change.by)) + &half.map_or_else(String::new, |half| format!(" ±{}", si(half)));
    }
    let half = half.map_or_else(String::new, |half| format!(" {}", plus_minus_part(half / before.abs())));
    crate::number::change(change.by / before.abs()) + &half
}

/// The steps as JSON.
pub fn json_steps(series: &SeriesTable, steps: &[Step], changes: &[LevelChange]) -> Value {
    let one = |(at, step): (usize, &Step)| {
        let mut one = Map::new();
        let numbers = json!({
            "left": step.left, "right": step.right, "value": step.value, "min": step.minimum, "error": step.error,
        });
        one.extend(numbers.as_object().cloned().unwrap_or_default());
        if let Some(index) = series.indexes.get(step.left) {
            one.insert("from".into(), Value::from(index.as_str()));
        }
        if let Some(change) = at.checked_sub(1).and_then(|before| changes.get(before)) {
            let (low, high) = change.interval.unzip();
            let change = json!({ "by": change.by, "low": low, "high": high, "chance": change.chance });
            one.insert("change".into(), change);
        }
        Value::Object(one)
    };
    let missing = series.values.iter().filter(|value| value.is_none()).count();
    let steps: Vec<Value> = steps.iter().enumerate().map(one).collect();
    json!({ "values": series.values.len() - missing, "missing": missing, "steps": steps })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (SeriesTable, Vec<Step>, Vec<LevelChange>) {
        let series = SeriesTable { values: vec![Some(4.0), Some(4.0), None, Some(5.0)], ..SeriesTable::default() };
        let step = |left, right, value| Step { left, right, value, minimum: value, error: 0.25 };
        let change = LevelChange { by: 1.0, interval: Some((0.5, 1.5)), chance: 1.23e-4 };
        (series, vec![step(0, 2, 4.0), step(3, 4, 5.0)], vec![change])
    }

    #[test]
    fn a_table_by_hand() {
        let (series, all, changes) = two();
        let text = steps(&series, &all, &changes);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "LEFT  RIGHT  VALUE  SPREAD         CHANGE  CHANCE");
        assert_eq!(lines[2], "   3      4      5   0.250  +25.0% ±12.5%  1.2e-4");
        assert_eq!(lines[4], "3 values, 1 missing: 1 change of level");
    }

    #[test]
    fn few_values_can_show_no_change() {
        let text = |count: usize| {
            let series = SeriesTable { values: vec![Some(4.0); count], ..SeriesTable::default() };
            let step = Step { left: 0, right: count, value: 4.0, minimum: 4.0, error: 0.0 };
            steps(&series, &[step], &[])
        };
        assert!(text(5).ends_with("\n5 values: too few to show a change of level, which takes 6\n"), "{}", text(5));
        assert!(text(6).ends_with("\n6 values: 0 changes of level\n"), "{}", text(6));
    }

    #[test]
    fn a_change_from_0_is_no_part() {
        let change = |by, interval| LevelChange { by, interval, chance: 0.0 };
        assert_eq!([by(&change(1.5, Some((1.0, 2.0))), 0.0), by(&change(-2.0, None), 0.0)], ["+1.50 ±0.500", "−2"]);
    }

    #[test]
    fn a_change_whose_interval_is_not_known_has_none() {
        let (series, all, mut changes) = two();
        changes[0].interval = None;
        let text = steps(&series, &all, &changes);
        assert_eq!(text.lines().nth(2), Some("   3      4      5   0.250  +25.0%  1.2e-4"));
        let json = json_steps(&series, &all, &changes);
        assert_eq!(
            (&json["steps"][1]["change"]["by"], &json["steps"][1]["change"]["low"]),
            (&1.0.into(), &Value::Null)
        );
    }

    #[test]
    fn names_reach_no_terminal_raw() {
        let (mut series, all, changes) = two();
        series.indexes = vec!["a\u{1b}[31m".into(); 4];
        assert!(!steps(&series, &all, &changes).contains('\u{1b}'));
    }

    #[test]
    fn json_has_a_change_for_every_step_but_the_first() {
        let (series, all, changes) = two();
        let json = json_steps(&series, &all, &changes);
        assert_eq!(json["steps"][1]["change"]["chance"], 1.23e-4);
        assert_eq!((json["steps"][0].get("change"), &json["missing"]), (None, &Value::from(1)));
    }
}
