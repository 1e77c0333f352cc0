//! Makes tables narrower, for terminals that have fewer columns.

use std::iter;

/// Blanks that stay between columns of a table, and in front of its first one.
const BETWEEN: usize = 2;
const BEFORE: usize = 1;

/// What gets lines of its own, what stands first the sooner: numbers that are derived from others, and those that were
/// corrected.
const APART: [&str; 2] = ["  # ", "  corrected "];

/// The lines of a table in so many columns. Blanks that all lines have in a place are left out, as few as can be. Where
/// that isn't enough, what is derived gets lines of its own, and then what was corrected. A table that is still too
/// wide stays so.
pub(super) fn narrowed(table: &str, columns: usize) -> String {
    let lines: Vec<_> = table.lines().map(str::to_owned).collect();
    if longest(&lines) <= columns {
        return table.to_owned();
    }
    let mut narrow = squeezed(&lines, columns);
    for marks in 1..=APART.len() {
        if longest(&narrow) > columns {
            narrow = apart(&lines, &APART[..marks], columns);
        }
    }
    narrow.into_iter().map(|line| line + "\n").collect()
}

fn longest(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// Short lines up to the first of these marks, and below each of them the pieces that begin with one, at the right end.
fn apart(lines: &[String], marks: &[&str], columns: usize) -> Vec<String> {
    let (counted, others): (Vec<_>, Vec<_>) = lines.iter().map(|line| pieces(line, marks)).unzip();
    let widest = others.iter().flatten().map(|piece| piece.chars().count()).max().unwrap_or(0);
    let indent = " ".repeat(columns.saturating_sub(widest));
    let counted = squeezed(&counted, columns).into_iter();
    let all = counted.zip(others).flat_map(|(counted, others)| {
        iter::once(counted).chain(others.into_iter().map(|piece| format!("{indent}{piece}")))
    });
    all.filter(|line| !line.is_empty()).collect()
}

/// What stands before all marks, and the pieces that begin with one.
fn pieces(line: &str, marks: &[&str]) -> (String, Vec<String>) {
    let mut starts: Vec<usize> = marks.iter().filter_map(|mark| line.find(mark)).collect();
    starts.sort_unstable();
    let Some(&first) = starts.first() else { return (line.to_owned(), Vec::new()) };
    let ends = starts.iter().copied().skip(1).chain(iter::once(line.len()));
    let others = starts.iter().zip(ends).map(|(&start, end)| line[start..end].trim().to_owned()).collect();
    (line[..first].trim_end().to_owned(), others)
}

/// The lines without blanks that all have in a place, the widest gaps first, until they are as short as wanted.
fn squeezed(lines: &[String], columns: usize) -> Vec<String> {
    let letters: Vec<Vec<char>> = lines.iter().map(|line| line.chars().collect()).collect();
    let width = longest(lines);
    let is_blank = |place: usize| letters.iter().all(|line| line.get(place).is_none_or(|letter| *letter == ' '));
    let mut gaps = gaps((0..width).map(is_blank));
    let mut stays = vec![true; width];
    for _ in columns..width {
        let spare = |gap: &(usize, usize)| (gap.1 - gap.0).saturating_sub(if gap.0 == 0 { BEFORE } else { BETWEEN });
        let Some(widest) = gaps.iter_mut().max_by_key(|gap| spare(gap)).filter(|gap| spare(gap) > 0) else { break };
        widest.1 -= 1;
        stays[widest.1] = false;
    }
    let short =
        |line: &Vec<char>| line.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(letter, _)| *letter).collect();
    letters.iter().map(short).collect()
}

/// The first place and the one behind the last of each run of blank places.
fn gaps(are_blank: impl Iterator<Item = bool>) -> Vec<(usize, usize)> {
    let mut gaps = Vec::new();
    let mut start = None;
    for (place, is_blank) in are_blank.chain(iter::once(false)).enumerate() {
        match (is_blank, start) {
            (true, None) => start = Some(place),
            (false, Some(first)) => {
                gaps.push((first, place));
                start = None;
            }
            _ => {}
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TABLE: [&str; 2] = [
        "             75.79 msec task-clock            exact  #     0.374 CPUs utilized",
        "                69      page-faults           exact  #   910.384 /cpu-s",
    ];

    fn narrow(columns: usize) -> Vec<String> {
        narrowed(&TABLE.map(|line| format!("{line}\n")).concat(), columns).lines().map(str::to_owned).collect()
    }

    #[test]
    fn blanks_are_left_out_as_few_as_can_be() {
        let wanted = [
            "         75.79 msec task-clock           exact  #     0.374 CPUs utilized",
            "            69      page-faults          exact  #   910.384 /cpu-s",
        ];
        assert_eq!(narrow(TABLE[0].len()), TABLE);
        assert_eq!(narrow(TABLE[0].len() - 5), wanted);
    }

    #[test]
    fn what_is_derived_gets_lines_of_its_own() {
        let wanted = [
            "  75.79 msec task-clock    exact",
            "       #     0.374 CPUs utilized",
            "     69      page-faults   exact",
            "       #   910.384 /cpu-s",
        ];
        assert_eq!(narrow(32), wanted);
        // No number is cut off.
        let words = |lines: &[String]| lines.iter().flat_map(|line| line.split_whitespace()).count();
        assert_eq!(words(&narrow(0)), words(&TABLE.map(str::to_owned)));
    }

    #[test]
    fn what_was_corrected_gets_lines_of_its_own_where_that_is_needed() {
        let table = "   10,557,901      L2_HITS    ±11.0%  corrected 10,558,012 ±9.1% (+0.1%) by weighting  #  33.8 per 1,000\n";
        let lines = |columns| narrowed(table, columns).lines().map(str::to_owned).collect::<Vec<_>>();
        let derived_apart = [
            "  10,557,901  L2_HITS  ±11.0%  corrected 10,558,012 ±9.1% (+0.1%) by weighting",
            "                                                             #  33.8 per 1,000",
        ];
        assert_eq!(lines(78), derived_apart);
        let both_apart = [
            "   10,557,901      L2_HITS    ±11.0%",
            "          corrected 10,558,012 ±9.1% (+0.1%) by weighting",
            "          #  33.8 per 1,000",
        ];
        assert_eq!(lines(57), both_apart);
    }

    proptest! {
        #[test]
        fn no_letter_is_lost(lines in prop::collection::vec("[a-c# ]{0,40}", 0..6), columns in 0_usize..60) {
            let table: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(letters(&narrowed(&table, columns)), letters(&table));
        }
    }
}
