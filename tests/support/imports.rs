//! Reads which source files import which others, which foreign crates they name, and which have `unsafe` code.
//!
//! A path is followed through re-exports to the file that defines what it names: the front page of a folder
//! (`mod.rs`) doesn't stand for the files behind it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The names from the root of the crate to a module or an item.
type Names = Vec<String>;

/// What the files of rooms import. Files are named from the folder that holds their room.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// Where each file is.
    pub(crate) paths: BTreeMap<String, PathBuf>,
    /// The files that each file imports, itself left out.
    pub(crate) imports: BTreeMap<String, BTreeSet<String>>,
    /// The files that begin a path with a name that is no module of this crate: a foreign crate, or a type.
    pub(crate) foreign: BTreeMap<String, BTreeSet<String>>,
    /// The files with the word `unsafe` in their code.
    pub(crate) unsafe_code: BTreeSet<String>,
    /// The files that define a type of each name: a struct, an enum, a trait or an alias; one entry a definition.
    pub(crate) types: BTreeMap<String, Vec<String>>,
}

impl Source {
    /// Reads every file of these folders as if it stood in one, as the last one re-exports all of the others. Only the
    /// last one's `lib.rs` is read.
    pub(crate) fn read(folders: &[&str]) -> Self {
        let mut paths = BTreeMap::new();
        for folder in folders {
            paths.remove("lib.rs");
            collect(Path::new(folder), Path::new(folder), &mut paths);
        }
        let text = |(name, path): (&String, &PathBuf)| (name.clone(), fs::read_to_string(path).unwrap());
        Self { paths: paths.clone(), ..Self::of(&paths.iter().map(text).collect::<Vec<_>>()) }
    }

    /// Reads texts by the names of their files.
    pub(crate) fn of(files: &[(String, String)]) -> Self {
        let files: BTreeMap<Names, File> =
            files.iter().map(|(name, text)| (module(name), File::read(name, text))).collect();
        let mut source = Self::default();
        for file in files.values() {
            let imports = source.imports.entry(file.name.clone()).or_default();
            for path in &file.paths {
                match definition(path.clone(), &files) {
                    Some(to) if to.name != file.name => drop(imports.insert(to.name.clone())),
                    _ => {}
                }
            }
            for name in &file.foreign {
                source.foreign.entry(name.clone()).or_default().insert(file.name.clone());
            }
            for name in &file.types {
                source.types.entry(name.clone()).or_default().push(file.name.clone());
            }
            if file.has_unsafe {
                source.unsafe_code.insert(file.name.clone());
            }
        }
        source
    }

    /// The rooms: the top folders and files, but the front page and the program.
    pub(crate) fn rooms(&self) -> BTreeSet<&str> {
        let files = self.imports.keys().filter(|file| !matches!(file.as_str(), "lib.rs" | "main.rs"));
        files.map(|file| file.split('/').next().unwrap().trim_end_matches(".rs")).collect()
    }
}

/// The groups of more than one file that each import all others of their group, if by detours.
pub(crate) fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|file| (file.as_str(), reached(file, imports))).collect();
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for (file, far) in &reach {
        let circle: Vec<_> = far.iter().copied().filter(|to| reach[to].contains(file)).collect();
        if circle.len() > 1 && seen.insert(circle.clone()) {
            circles.push(circle);
        }
    }
    circles
}

/// All files that a file imports, and those that they import, and so on.
fn reached<'a>(file: &str, imports: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = imports[file].iter().map(String::as_str).collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(imports[file].iter().map(String::as_str));
        }
    }
    reached
}

/// The file that defines what a path names; `None` where the path is empty.
fn definition(mut path: Names, files: &BTreeMap<Names, File>) -> Option<&File> {
    // As long as the module re-exports the next name; a circle of re-exports doesn't compile.
    loop {
        let depth = (1..=path.len()).rev().find(|&depth| files.contains_key(&path[..depth]))?;
        let file = &files[&path[..depth]];
        match path.get(depth).and_then(|name| file.exports.get(name)) {
            Some(target) => path = [&target[..], &path[depth + 1..]].concat(),
            None => return Some(file),
        }
    }
}

/// What a file names.
#[derive(Debug, Default)]
struct File {
    name: String,
    /// All paths into this crate, but those of re-exports from below.
    paths: Vec<Names>,
    /// What it re-exports from this crate: the name here, and the path that it stands for.
    exports: BTreeMap<String, Names>,
    foreign: BTreeSet<String>,
    has_unsafe: bool,
    /// The types that it defines, in order.
    types: Vec<String>,
}

impl File {
    fn read(name: &str, text: &str) -> Self {
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut file = Self { name: name.to_owned(), ..Self::default() };
        let children = declared(tokens.clone());
        file.types = types(tokens.clone());
        file.walk(tokens, &module(name), &children);
        file
    }

    /// Takes the paths of code that stands in a module; `children` are the modules that the file declares.
    fn walk(&mut self, tokens: TokenStream, module: &Names, children: &BTreeSet<String>) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let word = word(&tokens[at]);
            at += match word.as_deref() {
                Some("pub") if is_group(tokens.get(at + 1), Delimiter::Parenthesis) => 2,
                // `impl Trait + use<'a>` imports nothing.
                Some("use") if !is_text(tokens.get(at + 1), "<") => self.import(&tokens, at, module, children),
                Some("mod") if is_group(tokens.get(at + 2), Delimiter::Brace) => {
                    let inner = [&module[..], &[text(&tokens[at + 1])]].concat();
                    self.group(&tokens[at + 2], &inner, children);
                    3
                }
                Some("unsafe") => {
                    self.has_unsafe = true;
                    1
                }
                Some(_) => {
                    let (path, length) = path(&tokens[at..]);
                    if path.len() > 1 {
                        self.take(&path, module, children);
                    }
                    length
                }
                None => {
                    self.group(&tokens[at], module, children);
                    1
                }
            };
        }
    }

    fn group(&mut self, token: &TokenTree, module: &Names, children: &BTreeSet<String>) {
        if let TokenTree::Group(group) = token {
            self.walk(group.stream(), module, children);
        }
    }

    /// Takes a `use` item that begins here; how many tokens it has.
    fn import(&mut self, tokens: &[TokenTree], at: usize, module: &Names, children: &BTreeSet<String>) -> usize {
        let length = tokens[at..].iter().position(|token| text(token) == ";").unwrap_or(tokens.len() - at);
        let before = |back: usize| at.checked_sub(back).map(|place| text(&tokens[place]));
        let is_export = before(1).as_deref() == Some("pub")
            || (before(2).as_deref() == Some("pub") && is_group(tokens.get(at - 1), Delimiter::Parenthesis));
        for (path, name) in tree(&tokens[at + 1..at + length], &[]) {
            match absolute(&path, module, children) {
                Some(path) if is_export => {
                    if !path.starts_with(module) {
                        self.paths.push(path.clone());
                    }
                    self.exports.insert(name, path);
                }
                Some(path) => self.paths.push(path),
                None => drop(self.foreign.insert(path[0].clone())),
            }
        }
        length + 1
    }

    fn take(&mut self, path: &Names, module: &Names, children: &BTreeSet<String>) {
        match absolute(path, module, children) {
            Some(path) => self.paths.push(path),
            None => drop(self.foreign.insert(path[0].clone())),
        }
    }
}

/// A path from the root of the crate; `None` for one into a foreign crate or a type.
fn absolute(path: &[String], module: &Names, children: &BTreeSet<String>) -> Option<Names> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    Some(match path[0].as_str() {
        "crate" => path[1..].to_vec(),
        "self" => [&module[..], &path[1..]].concat(),
        "super" => [&module[..module.len().checked_sub(ups)?], &path[ups..]].concat(),
        name if children.contains(name) => [&module[..], path].concat(),
        _ => return None,
    })
}

/// The paths of a `use` tree, and the name that each has here.
fn tree(tokens: &[TokenTree], prefix: &[String]) -> Vec<(Names, String)> {
    let (path, length) = path(tokens);
    let path = [prefix, &path[..]].concat();
    match tokens.get(length) {
        Some(TokenTree::Group(group)) => {
            let tokens: Vec<_> = group.stream().into_iter().collect();
            let branches = tokens.split(|token| text(token) == ",").filter(|branch| !branch.is_empty());
            branches.flat_map(|branch| tree(branch, &path)).collect()
        }
        Some(token) if text(token) == "as" => vec![(path, text(&tokens[length + 1]))],
        _ => {
            // `a::{self}` names `a`.
            let path =
                if path.len() > 1 && path.ends_with(&["self".into()]) { path[..path.len() - 1].to_vec() } else { path };
            let name = path.last().cloned().unwrap_or_default();
            vec![(path, name)]
        }
    }
}

/// The names of `a::b::c` at the start of these tokens, and how many tokens they take, with a `::` behind them.
fn path(tokens: &[TokenTree]) -> (Names, usize) {
    let mut names = Vec::new();
    let mut at = 0;
    while let Some(name) = tokens.get(at).and_then(word) {
        names.push(name);
        at += 1;
        if !(is_text(tokens.get(at), ":") && is_text(tokens.get(at + 1), ":")) {
            break;
        }
        at += 2;
    }
    (names, at.max(1))
}

/// The types that code defines; those associated with a trait or an implementation are left out.
fn types(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut types = Vec::new();
    let mut is_trait = false;
    for (at, token) in tokens.iter().enumerate() {
        match (word(token).as_deref(), token) {
            (Some("struct" | "enum" | "union" | "trait" | "type"), _) => {
                types.extend(tokens.get(at + 1).and_then(word))
            }
            (None, TokenTree::Group(group)) => {
                let inner = types_within(group.stream(), is_trait);
                types.extend(inner);
            }
            _ => {}
        }
        is_trait = match word(token).as_deref() {
            Some("trait" | "impl") => true,
            _ => is_trait && !is_group(Some(token), Delimiter::Brace) && text(token) != ";",
        };
    }
    types
}

/// As [`types`]; directly in a trait or an implementation `type` defines none.
fn types_within(tokens: TokenStream, is_trait: bool) -> Vec<String> {
    let is_associated = |token: &TokenTree| is_trait && word(token).as_deref() == Some("type");
    types(tokens.into_iter().filter(|token| !is_associated(token)).collect())
}

/// The modules that a file declares without their code.
fn declared(tokens: TokenStream) -> BTreeSet<String> {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let declared = tokens.windows(3).filter(|three| text(&three[0]) == "mod" && text(&three[2]) == ";");
    declared.map(|three| text(&three[1])).collect()
}

fn word(token: &TokenTree) -> Option<String> {
    if let TokenTree::Ident(name) = token { Some(name.to_string()) } else { None }
}

fn text(token: &TokenTree) -> String {
    token.to_string()
}

fn is_text(token: Option<&TokenTree>, expected: &str) -> bool {
    token.is_some_and(|token| text(token) == expected)
}

fn is_group(token: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

/// The module of a file: `a/b.rs` and `a/b/mod.rs` are `["a", "b"]`.
fn module(file: &str) -> Names {
    let file = file.trim_end_matches(".rs");
    let names = file.trim_end_matches("/mod").split('/');
    names.filter(|name| *name != "lib").map(str::to_owned).collect()
}

fn collect(root: &Path, folder: &Path, paths: &mut BTreeMap<String, PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            let other = paths.insert(name.clone(), path);
            assert_eq!(other, None, "two folders have {name}");
        }
    }
}
