//! Writes times as RFC 3339 has them.

/// The days of 400 years, after which the calendar repeats.
const CYCLE: i64 = 146_097;

/// A time in milliseconds since 1970, in UTC: `2026-11-23T05:20:19Z`.
pub fn rfc_3339(milliseconds: i64) -> String {
    let seconds = milliseconds.div_euclid(1000);
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(day);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date of a day since 1970. Years are counted from March, so that the leap day is the last one.
fn date(day: i64) -> (i64, i64, i64) {
    // From 1 March of the year 0.
    let day = day + 719_468;
    let (cycle, day) = (day.div_euclid(CYCLE), day.rem_euclid(CYCLE));
    // Without the leap days before it.
    let year = (day - day / 1460 + day / 36_524 - day / (CYCLE - 1)) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (400 * cycle + year + later, month, of_month)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_by_hand() {
        let times = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (951_868_799_999, "2000-02-29T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
            (1_704_067_199_000, "2023-12-31T23:59:59Z"),
        ];
        times.iter().for_each(|&(milliseconds, text)| assert_eq!(rfc_3339(milliseconds), text));
    }

    proptest! {
        #[test]
        fn later_days_have_later_dates(day in -700_000i64..2_000_000) {
            prop_assert!(date(day) < date(day + 1));
            prop_assert_eq!(date(day + CYCLE).0, date(day).0 + 400);
        }
    }
}
