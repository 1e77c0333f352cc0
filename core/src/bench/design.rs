//! Plans a sweep: which commands are run with which sizes, and in which order.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use super::parameter::{Parameter, SizeValue};
use crate::random::SplitMix64;

/// A set of sizes.
pub type Sizes = BTreeMap<String, SizeValue>;

/// A command with its words in place, which is measured at all sizes and compared with the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What tells it from the others: `quicksort`, `algo=quick`; empty where there is only one.
    pub label: String,
    /// What tells its command from the others, whatever words are in it; empty where there is only one.
    pub command_name: String,
    /// That command, with the names of words and sizes in braces.
    pub template: Vec<String>,
    /// The command; a size's name in braces stands for its value.
    pub command: Vec<String>,
    /// The words in it, by the names of parameters.
    pub words: BTreeMap<String, String>,
}

impl Variant {
    /// The name of the command's file.
    pub fn program(&self) -> Cow<'_, str> {
        program(&self.command)
    }

    /// The name in files: that of the program, and what tells it from the others.
    pub fn name(&self) -> String {
        let words = self.words_in_text();
        if words.is_empty() { self.program().into_owned() } else { format!("{} {words}", self.program()) }
    }

    fn words_in_text(&self) -> String {
        self.words.iter().map(|(name, word)| format!("{name}={word}")).collect::<Vec<_>>().join(" ")
    }
}

fn program(command: &[String]) -> Cow<'_, str> {
    let path = command.first().map_or("", String::as_str);
    Path::new(path).file_name().unwrap_or_default().to_string_lossy()
}

/// Each command with each word of each parameter that has words: the commands slowest, in their order.
pub fn variants(commands: &[Vec<String>], parameters: &[Parameter]) -> Vec<Variant> {
    let words = parameters.iter().filter_map(|parameter| Some((&parameter.name, parameter.words()?)));
    let choices = words.fold(vec![BTreeMap::new()], |before, (name, words)| {
        let with = |one: &BTreeMap<String, String>, word: &String| {
            one.clone().into_iter().chain([(name.clone(), word.clone())]).collect()
        };
        before.iter().flat_map(|one| words.iter().map(|word| with(one, word)).collect::<Vec<_>>()).collect()
    });
    let labels = labels(commands);
    let variant = |(command, label): (&Vec<String>, &String), words: &BTreeMap<String, String>| {
        let fill = |text: &String| filled(text, |name| words.get(name).map(|word| Cow::Borrowed(word.as_str())));
        let mut variant = Variant {
            label: label.clone(),
            command_name: label.clone(),
            template: command.clone(),
            command: command.iter().map(fill).collect(),
            words: words.clone(),
        };
        if choices.len() > 1 {
            variant.label = format!("{label} {}", variant.words_in_text()).trim_start().to_owned();
        }
        variant
    };
    commands.iter().zip(&labels).flat_map(|one| choices.iter().map(move |words| variant(one, words))).collect()
}

/// The names of the commands' files, with a number where several have the same; nothing for a single command.
fn labels(commands: &[Vec<String>]) -> Vec<String> {
    let programs: Vec<_> = commands.iter().map(|command| program(command)).collect();
    // Another command may be called as one with its number.
    let numbered = |name: &str, place: usize| {
        let labels = (place + 1..).step_by(commands.len()).map(|number| format!("{name}-{number}"));
        labels.into_iter().find(|label| !programs.iter().any(|program| program == label)).unwrap_or_default()
    };
    let label = |(place, name): (usize, &Cow<'_, str>)| {
        let is_shared = programs.iter().filter(|other| *other == name).count() > 1;
        match (commands.len(), is_shared) {
            (1, _) => String::new(),
            (_, true) => numbered(name, place),
            (_, false) => name.to_string(),
        }
    };
    programs.iter().enumerate().map(label).collect()
}

/// Each value of each size with each of the others, the first size slowest.
pub fn points(parameters: &[Parameter]) -> Vec<Sizes> {
    let sizes = parameters.iter().filter_map(|parameter| Some((&parameter.name, parameter.sizes()?)));
    sizes.fold(vec![Sizes::new()], |before, (name, values)| {
        let with =
            |one: &Sizes, value: &SizeValue| one.clone().into_iter().chain([(name.clone(), value.clone())]).collect();
        before.iter().flat_map(|one| values.iter().map(|value| with(one, value)).collect::<Vec<_>>()).collect()
    })
}

/// A text in which each name in braces that has a value is replaced by that; other braces stay. What was put in is not
/// looked at again.
pub fn filled<'v>(text: &str, value: impl Fn(&str) -> Option<Cow<'v, str>>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        out += before;
        let found = behind.split_once('}').and_then(|(name, behind)| Some((value(name)?, behind)));
        rest = match found {
            Some((value, behind)) => {
                out += &value;
                behind
            }
            None => {
                out.push('{');
                behind
            }
        };
    }
    out + rest
}

/// The command of a variant at some sizes.
pub fn command_at(variant: &Variant, sizes: &Sizes) -> Vec<String> {
    let value = |name: &str| sizes.get(name).map(|size| Cow::Borrowed(size.text.as_str()));
    variant.command.iter().map(|word| filled(word, value)).collect()
}

/// The same in one line, to be read.
pub fn command_line(variant: &Variant, sizes: &BTreeMap<String, f64>) -> String {
    let value = |name: &str| sizes.get(name).map(|size| Cow::Owned(size.to_string()));
    variant.command.iter().map(|word| filled(word, value)).collect::<Vec<_>>().join(" ")
}

/// A text for `sh -c` with sizes and words in it, each word as one word of the shell.
pub fn shell_text(text: &str, variant: &Variant, sizes: &Sizes) -> String {
    let word = |name: &str| variant.words.get(name).map(|word| Cow::Owned(shell_word(word)));
    filled(text, |name| sizes.get(name).map(|size| Cow::Borrowed(size.text.as_str())).or_else(|| word(name)))
}

/// A word so that the shell takes it as it is.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The places of what takes turns, in the order of runs: each of them `repeats` times, shuffled anew for each repetition,
/// so that a drift of the machine is in all of them alike.
pub fn order(places: usize, repeats: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix64::new(seed);
    let mut all = Vec::with_capacity(places * repeats);
    for _ in 0..repeats {
        let mut round: Vec<usize> = (0..places).collect();
        for place in (1..places).rev() {
            round.swap(place, (random.draw() % (place as u64 + 1)) as usize);
        }
        all.append(&mut round);
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn parameters(texts: &[&str]) -> Vec<Parameter> {
        texts.iter().map(|text| Parameter::parse(text).unwrap()).collect()
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn commands_are_filled_with_plain_numbers() {
        let points = points(&parameters(&["n=1e6", "m=0.5"]));
        assert_eq!(points.len(), 1);
        let variant = &variants(&[words("--size={n} {m} {k} {{n}")], &[])[0];
        assert_eq!(command_at(variant, &points[0]), words("--size=1000000 0.5 {k} {1000000"));
        assert_eq!(super::points(&[]).len(), 1, "without sizes there is one point");
    }

    #[test]
    fn each_word_makes_a_command_of_its_own() {
        let of = |commands: &[&str], texts: &[&str]| -> Vec<(String, String)> {
            let commands: Vec<_> = commands.iter().map(|command| words(command)).collect();
            let all = variants(&commands, &parameters(texts));
            all.into_iter().map(|variant| (variant.label, variant.command.join(" "))).collect()
        };
        let pair = |label: &str, command: &str| (label.to_owned(), command.to_owned());
        assert_eq!(of(&["bin/a {n}"], &["n=1,2"]), [pair("", "bin/a {n}")]);
        assert_eq!(of(&["bin/a", "b"], &[]), [pair("a", "bin/a"), pair("b", "b")]);
        assert_eq!(of(&["a 1", "a 2"], &[]), [pair("a-1", "a 1"), pair("a-2", "a 2")]);
        assert_eq!(of(&["a 1", "a 2", "a-2"], &[]), [pair("a-1", "a 1"), pair("a-5", "a 2"), pair("a-2", "a-2")]);
        assert_eq!(
            of(&["a {k} {n}", "b {k}"], &["k=x,{n}", "n=1"]),
            [pair("a k=x", "a x {n}"), pair("a k={n}", "a {n} {n}"), pair("b k=x", "b x"), pair("b k={n}", "b {n}")]
        );
        assert_eq!(of(&["a {k}"], &["k=x"]), [pair("", "a x")], "one word is no choice");
    }

    #[test]
    fn words_are_one_word_of_a_shell() {
        let all = variants(&[vec!["true".into()]], &parameters(&["k=a'b $(c)"]));
        let sizes = &points(&parameters(&["n=1e3"]))[0];
        assert_eq!(shell_text("gen {n} {k} {m}", &all[0], sizes), r"gen 1000 'a'\''b $(c)' {m}");
        assert_eq!(["quick-2", "", "~", "a=b", "*"].map(shell_word), ["quick-2", "''", "'~'", "'a=b'", "'*'"]);
    }

    #[test]
    fn each_repetition_runs_each_point_once_and_the_seed_alone_decides() {
        let order = super::order(5, 3, 7);
        for round in order.chunks(5) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4]);
        }
        assert_eq!(order, super::order(5, 3, 7));
        assert_ne!(order, super::order(5, 3, 8));
        assert_eq!(order, super::order(5, 9, 7)[..15], "more repetitions go on behind fewer");
        assert!(super::order(0, 3, 1).is_empty());
    }
}
