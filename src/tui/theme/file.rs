//! Parses theme files: their colours by role, and all that is wrong with them.

use std::collections::HashMap;
use std::ops::Range;

use ratatui::style::Modifier;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Role;
use super::color::{self, Choice};
use super::flame::HueFrom;
use crate::tui::complaint::{Complaint, similar, unknown as unknown_words};

/// The keys of `[meta]`.
const META: [&str; 5] = ["name", "variant", "author", "license", "inherits"];

const MODIFIERS: [(&str, Modifier); 5] = [
    ("bold", Modifier::BOLD),
    ("dim", Modifier::DIM),
    ("italic", Modifier::ITALIC),
    ("underlined", Modifier::UNDERLINED),
    ("reversed", Modifier::REVERSED),
];

/// A theme file, before anything is inherited.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    pub(super) inherits: Option<Parent>,
    pub(super) light: Option<bool>,
    paints: HashMap<(&'static str, &'static str), RoleStyle>,
    pub(super) series: Vec<Vec<Choice>>,
    pub(super) gradient: Vec<Vec<Choice>>,
    pub(super) hue_from: Option<HueFrom>,
}

/// The name of the theme to inherit from, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Parent {
    pub(super) value: String,
    span: Range<usize>,
}

impl Parent {
    pub(super) fn complaint(&self, file: &str, text: &str, message: String) -> Complaint {
        Complaint::at(file, text, self.span.clone(), message)
    }
}

/// The look of a role: for each side, colours of which the first that can be shown is taken.
#[derive(Clone, Debug, Default)]
pub(super) struct RoleStyle {
    pub(super) fg: Vec<Choice>,
    pub(super) bg: Vec<Choice>,
    pub(super) modifiers: Modifier,
}

impl Sheet {
    pub(super) fn parse(file: &str, text: &str) -> (Self, Vec<Complaint>) {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut reader =
            ThemeReader { file, text, palette: HashMap::new(), complaints: Vec::new(), sheet: Self::default() };
        for error in errors {
            reader.complain(error.span().unwrap_or(0..0), error.message().to_owned());
        }
        reader.read(table.get_ref());
        reader.complaints.sort_by_key(|complaint| (complaint.line, complaint.column));
        (reader.sheet, reader.complaints)
    }

    pub(super) fn paint(&self, role: Role) -> Option<&RoleStyle> {
        self.paints.get(&role.place())
    }
}

type TomlValue<'i> = Spanned<DeValue<'i>>;

struct ThemeReader<'a> {
    file: &'a str,
    text: &'a str,
    palette: HashMap<String, Vec<Choice>>,
    complaints: Vec<Complaint>,
    sheet: Sheet,
}

impl ThemeReader<'_> {
    fn read(&mut self, document: &DeTable<'_>) {
        // The palette first: everything else uses its names.
        if let Some(DeValue::Table(palette)) = document.get("palette").map(Spanned::get_ref) {
            for (name, value) in palette {
                if let Some(choices) = self.color(value, &format!("[palette].{}", name.get_ref())) {
                    self.palette.insert(name.get_ref().clone().into_owned(), choices);
                }
            }
        }
        for (name, value) in document {
            let DeValue::Table(section) = value.get_ref() else {
                self.complain(name.span(), format!("\"{}\" stands outside of a section", name.get_ref()));
                continue;
            };
            match name.get_ref().as_ref() {
                "palette" => {}
                "meta" => self.meta(section),
                "series" => self.series(section),
                section_name if Role::ALL.iter().any(|role| role.place().0 == section_name) => {
                    self.roles(section_name, section);
                }
                unknown => {
                    let known = ["meta", "palette", "ui", "state", "value", "run", "series", "flame"];
                    self.complain(name.span(), unknown_words("section", unknown, known.into_iter()));
                }
            }
        }
    }

    fn meta(&mut self, section: &DeTable<'_>) {
        for (key, value) in section {
            let text = value.get_ref().as_str();
            match (key.get_ref().as_ref(), text) {
                ("inherits", Some(name)) => {
                    self.sheet.inherits = Some(Parent { value: name.to_owned(), span: value.span() });
                }
                ("variant", Some("light")) => self.sheet.light = Some(true),
                ("variant", Some("dark")) => self.sheet.light = Some(false),
                ("variant", _) => self.complain(value.span(), "[meta].variant is \"dark\" or \"light\"".into()),
                (key, Some(_)) if META.contains(&key) => {}
                (key, None) if META.contains(&key) => {
                    self.complain(value.span(), format!("[meta].{key} must be a string"));
                }
                (unknown, _) => self.complain(key.span(), unknown_words("key", unknown, META.into_iter())),
            }
        }
    }

    fn series(&mut self, section: &DeTable<'_>) {
        for (key, value) in section {
            let place = format!("[series].{}", key.get_ref());
            let list = match (key.get_ref().as_ref(), value.get_ref()) {
                ("colors" | "gradient", DeValue::Array(list)) => list,
                ("colors" | "gradient", _) => {
                    self.complain(value.span(), format!("{place} must be a list of colours"));
                    continue;
                }
                (unknown, _) => {
                    self.complain(key.span(), unknown_words("key", unknown, ["colors", "gradient"].into_iter()));
                    continue;
                }
            };
            let colors = list.iter().filter_map(|value| self.color(value, &place)).collect();
            match key.get_ref().as_ref() {
                "colors" => self.sheet.series = colors,
                _ => self.sheet.gradient = colors,
            }
        }
    }

    fn roles(&mut self, section_name: &str, section: &DeTable<'_>) {
        for (key, value) in section {
            if (section_name, key.get_ref().as_ref()) == ("flame", "hue_from") {
                self.hue_from(value);
                continue;
            }
            let role = Role::ALL.iter().find(|role| role.place() == (section_name, key.get_ref().as_ref()));
            let Some(&role) = role else {
                let known = Role::ALL.iter().map(|role| role.place()).filter(|place| place.0 == section_name);
                let words =
                    unknown_words(&format!("key of [{section_name}]"), key.get_ref(), known.map(|place| place.1));
                self.complain(key.span(), words);
                continue;
            };
            if let Some(paint) = self.paint(role, value) {
                self.sheet.paints.insert(role.place(), paint);
            }
        }
    }

    fn hue_from(&mut self, value: &TomlValue<'_>) {
        let word = value.get_ref().as_str().unwrap_or("");
        match HueFrom::NAMES.iter().find(|(name, _)| *name == word) {
            Some((_, hue_from)) => self.sheet.hue_from = Some(*hue_from),
            None => {
                let known = HueFrom::NAMES.iter().map(|(name, _)| *name);
                self.complain(value.span(), unknown_words("[flame].hue_from", word, known));
            }
        }
    }

    /// A colour alone is that of the text, except where a role is a background.
    fn paint(&mut self, role: Role, value: &TomlValue<'_>) -> Option<RoleStyle> {
        let (section, key) = role.place();
        let place = format!("[{section}].{key}");
        let DeValue::Table(table) = value.get_ref() else {
            let color = self.color(value, &place)?;
            let mut paint = RoleStyle::default();
            *(if role == Role::Background { &mut paint.bg } else { &mut paint.fg }) = color;
            return Some(paint);
        };
        let mut paint = RoleStyle::default();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "fg" => paint.fg = self.color(value, &place).unwrap_or_default(),
                "bg" => paint.bg = self.color(value, &place).unwrap_or_default(),
                "modifiers" => paint.modifiers = self.modifiers(value, &place),
                unknown => {
                    let known = ["fg", "bg", "modifiers"].into_iter();
                    self.complain(key.span(), unknown_words(&format!("key of {place}"), unknown, known));
                }
            }
        }
        Some(paint)
    }

    fn modifiers(&mut self, value: &TomlValue<'_>, place: &str) -> Modifier {
        let DeValue::Array(list) = value.get_ref() else {
            self.complain(value.span(), format!("the modifiers of {place} must be a list"));
            return Modifier::empty();
        };
        let mut modifiers = Modifier::empty();
        for value in list {
            let word = value.get_ref().as_str().unwrap_or("");
            match MODIFIERS.iter().find(|(name, _)| *name == word) {
                Some((_, modifier)) => modifiers |= *modifier,
                None => {
                    let known = MODIFIERS.iter().map(|(name, _)| *name);
                    self.complain(value.span(), unknown_words(&format!("modifier of {place}"), word, known));
                }
            }
        }
        modifiers
    }

    /// A colour, or a list of them; `None`, with a complaint, if it is neither.
    fn color(&mut self, value: &TomlValue<'_>, place: &str) -> Option<Vec<Choice>> {
        let choices = match value.get_ref() {
            DeValue::String(text) => return self.named(text, value.span(), place),
            DeValue::Integer(number) => {
                let index = u8::from_str_radix(number.as_str(), number.radix()).ok().map(Choice::Index);
                index.into_iter().collect()
            }
            // One level deep: a list in a list means nothing.
            DeValue::Array(list) if list.iter().all(|value| !value.get_ref().is_array()) => {
                list.iter().filter_map(|value| self.color(value, place)).flatten().collect()
            }
            _ => Vec::new(),
        };
        if choices.is_empty() {
            let words = "a colour is \"#rrggbb\", 0 to 255, a name, or a list of those";
            self.complain(value.span(), format!("{words} ({place})"));
            return None;
        }
        Some(choices)
    }

    fn named(&mut self, text: &str, span: Range<usize>, place: &str) -> Option<Vec<Choice>> {
        if let Some(choices) = self.palette.get(text) {
            return Some(choices.clone());
        }
        if let Some(choice) = color::parse(text) {
            return Some(vec![choice]);
        }
        let known: Vec<_> = self.palette.keys().cloned().collect();
        let names = known.iter().map(String::as_str).chain(color::NAMES.iter().map(|(name, _)| *name));
        let hint = similar(text, names).map(|similar| format!("; did you mean \"{similar}\"?"));
        self.complain(span, format!("unknown colour \"{text}\" in {place}{}", hint.unwrap_or_default()));
        None
    }

    fn complain(&mut self, span: Range<usize>, message: String) {
        self.complaints.push(Complaint::at(self.file, self.text, span, message));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tui::{Depth, Theme};

    fn complaints(text: &str) -> Vec<String> {
        Sheet::parse("x.toml", text).1.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_bad_value_is_told_with_its_place_and_the_rest_loads() {
        let text = "[palette]\norange = \"#fab387\"\n[state]\nwarn = \"oragne\"\nok = \"green\"\n";
        assert_eq!(
            complaints(text),
            ["x.toml:4:8: unknown colour \"oragne\" in [state].warn; did you mean \"orange\"?"]
        );
        let (theme, _) = Theme::parse("x.toml", text, Depth::TrueColor);
        assert_eq!(theme.style(Role::Ok).fg, Some(ratatui::style::Color::Green));
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let text = "stray = 1\n[stat]\n[ui]\ntxet = \"red\"\nselection = { modifiers = [\"bolt\"], gf = 1 }\n\
                    dim = 300\n[series]\ncolors = \"red\"\n[meta]\nvariant = \"grey\"\n";
        assert_eq!(
            complaints(text),
            [
                "x.toml:1:1: \"stray\" stands outside of a section",
                "x.toml:2:2: unknown section \"stat\"; did you mean \"state\"?",
                "x.toml:4:1: unknown key of [ui] \"txet\"; did you mean \"text\"?",
                "x.toml:5:28: unknown modifier of [ui].selection \"bolt\"; did you mean \"bold\"?",
                "x.toml:5:37: unknown key of [ui].selection \"gf\"; did you mean \"fg\"?",
                "x.toml:6:7: a colour is \"#rrggbb\", 0 to 255, a name, or a list of those ([ui].dim)",
                "x.toml:8:10: [series].colors must be a list of colours",
                "x.toml:10:11: [meta].variant is \"dark\" or \"light\"",
            ]
        );
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_place() {
        let told = complaints("[state]\nwarn = = 3\n");
        assert!(told[0].starts_with("x.toml:2:8: "), "{told:?}");
    }

    proptest! {
        #[test]
        fn no_text_stops_the_reader(text in "\\PC{0,80}|(\\[(ui|meta|series|palette)\\]\n[a-z]{1,5} = [\\[\\]{}\"a-z0-9#,= ]{0,30}\n){0,4}") {
            let _ = Theme::parse("x.toml", &text, Depth::Named);
        }
    }
}
