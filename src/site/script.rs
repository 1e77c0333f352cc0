//! Writes data as scripts.

use serde_json::Value;

use crate::names::shown;

/// A script that hands JSON to a function of the page: `perfprop.NAME(KEY,DATA);`. The text is safe within a page, too.
pub(super) fn call(name: &str, key: &Value, data: &Value) -> String {
    format!("perfprop.{name}({},{});\n", safe(key), safe(data))
}

/// JSON without what ends a script in a page, or a line in an old one.
fn safe(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '\u{2028}', '\u{2029}']) {
        return text;
    }
    // All three are in strings only.
    text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// A name from outside as it may be shown.
pub(super) fn word(text: &str) -> Value {
    shown(text).into()
}

/// A number, or null.
pub(super) fn number(value: Option<f64>) -> Value {
    match value {
        // Without a point counts are shorter, and read back as the same number.
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => (value as i64).into(),
        Some(value) => value.into(),
        None => Value::Null,
    }
}

/// A number that is drawn, with six digits; null of what isn't finite.
pub(super) fn drawn(value: f64) -> Value {
    let rounded = format!("{value:.5e}").parse().ok().filter(|value: &f64| value.is_finite());
    number(rounded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_ends_a_script_is_escaped() {
        let text = call("index", &json!("</script>"), &json!({"<!--": "\u{2028}\u{1b}\"\\"}));
        assert_eq!(text, "perfprop.index(\"\\u003c/script>\",{\"\\u003c!--\":\"\\u2028\\u001b\\\"\\\\\"});\n");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!((number(Some(2.0)), number(Some(0.1)), number(None)), (json!(2), json!(0.1), Value::Null));
        assert_eq!((number(Some(f64::NAN)), drawn(f64::INFINITY)), (Value::Null, Value::Null));
        assert_eq!((drawn(123_456_789.0), drawn(0.123_456_789)), (json!(123_457_000), json!(0.123_457)));
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in any::<String>()) {
            let safe = safe(&json!(text));
            let has_ends = safe.contains(['<', '\n', '\u{2028}', '\u{2029}']);
            prop_assert!(!has_ends);
            prop_assert_eq!(serde_json::from_str::<Value>(&safe).ok(), Some(json!(text)));
        }

        #[test]
        fn numbers_come_back(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
            prop_assert_eq!(number(Some(value)).as_f64(), Some(value));
        }
    }
}
