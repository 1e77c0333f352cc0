//! Tests `perfprop history publish`: what is written, and what is left alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use perfprop::history::results::{MachineFacts, OrderedMap, ProfileOrigin, ResultStore};
use perfprop::history::{Commit, Repository};

use crate::folders::Folder;
use crate::history::{add, git, history, repository, texts};

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{1b}[2J";

/// A repository of twelve commits, the ninth of which made a benchmark slower, and results of another with a bad name.
fn measured() -> (Folder, ResultStore, Vec<Commit>) {
    let folder = repository(12);
    let store = ResultStore::new(&folder.join("results"));
    let commits = Repository::of(&folder.join("project")).unwrap().history("HEAD").unwrap();
    for (place, commit) in commits.iter().enumerate() {
        let level = (1.0 + 1e-3 * (place * 7 % 5) as f64) * if place < 8 { 0.01 } else { 0.012 };
        add(&store, commit, "sort", level);
        add(&store, commit, HOSTILE, 1.0);
    }
    (folder, store, commits)
}

fn publish(folder: &Folder, site: &str, code: i32) -> String {
    texts(&history(folder, &["publish", site, "--results", "../results"]), code).1
}

/// The files below a folder with what they hold.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            all.extend(contents(&path).into_iter().map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else {
            all.insert(name, fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn a_site_holds_what_was_measured_and_nothing_that_a_page_would_run() {
    let (folder, store, commits) = measured();
    let machine = MachineFacts(OrderedMap(vec![("machine".into(), "m".into())]));
    let of = ProfileOrigin {
        commit: commits[8].hash.clone(),
        environment: "e".into(),
        benchmark: "sort".into(),
        event: "cycles".into(),
    };
    let before = ProfileOrigin { commit: commits[6].hash.clone(), ..of.clone() };
    store.add_profile(&machine, &before, "main;work 9\nmain;rest 1\n").unwrap();
    store.add_profile(&machine, &of, &format!("main;{HOSTILE} 3\nmain;work 5\n")).unwrap();
    let said = publish(&folder, "../site", 0);
    assert!(said.contains("2 plots of 12 commits, 1 regression\n"), "{said}");
    let files = contents(&folder.join("site"));
    let text = |name: &str| String::from_utf8(files[name].clone()).unwrap();
    for (name, bytes) in &files {
        assert!(!bytes.contains(&0x1b), "{name} has an escape");
        assert!(
            name.ends_with(".html") || !bytes.windows(9).any(|part| part == b"</script>") || name.ends_with(".svg"),
            "{name}"
        );
    }
    let index = text("data/index.js");
    assert!(
        index.contains("\\u003c/script>") && index.contains("\\\\x1b[2J") && index.contains(&commits[8].hash),
        "{index}"
    );
    let feed = text("regressions.xml");
    assert!(
        feed.contains("sort +19.9% at") && feed.contains(&format!("index.html#/commit/{}", commits[8].hash)),
        "{feed}"
    );
    assert!(feed.contains("change 8\\x1b[2J") && feed.matches("<entry>").count() == 1, "{feed}");
    let difference = text(&format!("profiles/{}-since-{}-m-e-sort.svg", commits[8].short(), commits[6].short()));
    assert!(difference.contains("no function is marked") && difference.contains("class=\"m4\""), "{difference}");
    assert!(text("data/commits-0.js").contains(&format!("cycles since {}", commits[6].short())));
    let picture = text(&format!("profiles/{}-m-e-sort.svg", commits[8].short()));
    assert!(picture.contains("work") && picture.contains("&lt;img") && !picture.contains("<img"), "{picture}");
    assert!(text("data/series-sort.js").starts_with("perfprop.series(\"sort\","));
    assert!(text("uPlot-LICENSE.txt").contains("Leon Sorokin"));
}

#[test]
fn a_profile_without_stacks_has_no_picture_and_no_link() {
    let (folder, store, commits) = measured();
    let machine = MachineFacts(OrderedMap(vec![("machine".into(), "m".into())]));
    for (place, stacks) in [(6, "main 9\n"), (7, ""), (8, "main 8\n")] {
        let commit = commits[place].hash.clone();
        let of = ProfileOrigin { commit, environment: "e".into(), benchmark: "sort".into(), event: "cycles".into() };
        store.add_profile(&machine, &of, stacks).unwrap();
    }
    let said = publish(&folder, "../site", 0);
    assert!(said.contains("sort.folded: no samples\n"), "{said}");
    let files = contents(&folder.join("site"));
    let pictures: Vec<&String> = files.keys().filter(|name| name.starts_with("profiles/")).collect();
    let mut expected = [6, 8].map(|place| format!("profiles/{}-m-e-sort.svg", commits[place].short()));
    expected.sort();
    assert_eq!(pictures, expected.iter().collect::<Vec<_>>());
    let data = String::from_utf8(files["data/commits-0.js"].clone()).unwrap();
    assert_eq!(data.matches("profiles/").count(), 2, "{data}");
}

#[test]
fn the_same_results_give_the_same_bytes_and_an_older_site_is_replaced() {
    let (folder, store, commits) = measured();
    publish(&folder, "../site", 0);
    publish(&folder, "../other", 0);
    let first = contents(&folder.join("site"));
    assert_eq!(first, contents(&folder.join("other")));
    folder.write("site/data/mine.js", "mine");
    add(&store, &commits[0], "new", 1.0);
    fs::remove_file(folder.join("results/benchmarks.json")).unwrap();
    add(&store, &commits[0], "sort", 0.01);
    let said = publish(&folder, "../site", 0);
    assert!(said.contains("1 file of the older site removed"), "{said}");
    let second = contents(&folder.join("site"));
    let gone: Vec<_> = first.keys().filter(|name| !second.contains_key(*name)).collect();
    assert!(gone.len() == 1 && gone[0].starts_with("data/series-__script_"), "{gone:?}");
    assert_eq!(second["data/mine.js"], b"mine");
}

#[test]
fn what_can_not_be_published_is_told() {
    let folder = repository(2);
    assert!(publish(&folder, "../site", 2).contains("there are no results in '../results'"));
    let store = ResultStore::new(&folder.join("results"));
    let commit = Commit { hash: "0".repeat(40), date: 0, subject: String::new() };
    add(&store, &commit, "sort", 1.0);
    assert!(publish(&folder, "../site", 2).contains("no result is of a commit that leads to --tip"));
    assert!(!folder.join("site").exists(), "nothing is made where nothing is written");
    let commits = Repository::of(&folder.join("project")).unwrap().history("HEAD").unwrap();
    add(&store, &commits[0], "sort", 1.0);
    folder.write("full/notes", "mine");
    assert!(publish(&folder, "../full", 2).contains("'../full' holds files, but no site of perfprop's"));
    assert_eq!(contents(&folder.join("full")).len(), 1);
    let said = publish(&folder, "../full/notes", 2);
    assert!(said.contains("'../full/notes' is a file: a site is a folder"), "{said}");
    assert!(publish(&folder, "/proc/none", 125).contains("'/proc/none': "));
    let (_, said) = texts(&history(&folder, &["publish", "../site", "--url", "example.org"]), 2);
    assert!(said.contains("expected an address"), "{said}");
}

/// What a publish with more options says.
fn publish_with(folder: &Folder, more: &[&str]) -> String {
    texts(&history(folder, &[&["publish", "../site", "--results", "../results"], more].concat()), 0).1
}

#[test]
fn rules_of_asv_count_unless_a_threshold_is_named() {
    let (folder, _, commits) = measured();
    folder.write("asv.conf.json", "{\"regressions_thresholds\": {\"so\": 0.3}} // of sort alone");
    let said = publish_with(&folder, &[]);
    assert!(said.contains("thresholds and first commits are those of") && said.contains(", 0 regressions"), "{said}");
    let index = fs::read_to_string(folder.join("site/data/index.js")).unwrap();
    assert!(index.contains("\"hasThresholds\":true"), "{index}");
    let said = publish_with(&folder, &["--threshold", "5%"]);
    assert!(said.contains("first commits, but not thresholds") && said.contains(", 1 regression\n"), "{said}");
    let all = ["regressions", "--results", "../results"];
    texts(&history(&folder, &all), 0);
    texts(&history(&folder, &[&all[..], &["--threshold", "5%"]].concat()), 1);
    let first = format!("{{\"regressions_first_commits\": {{\"sort\": \"{}\"}}}}", commits[10].hash);
    folder.write("other.json", &first);
    let said = publish_with(&folder, &["--asv-conf", "../other.json"]);
    assert!(said.contains("other.json") && said.contains(", 0 regressions"), "{said}");
}

#[test]
fn builds_and_what_was_added_are_told_apart_and_failed_builds_are_not_measured() {
    let folder = repository(4);
    let run = |build: &str| {
        let run = ["run", "HEAD~3..", "--build", build, "--bench", "cat=./work", "--keep", "data", "-r", "1"];
        texts(&history(&folder, &[&run[..], &["--results", "../results"]].concat()), 0);
    };
    run("sh build.sh");
    run("sh ./build.sh");
    folder.write("h.json", r#"{"results": [{"command": "./cat", "times": [0.01]}]}"#);
    texts(&history(&folder, &["add", "../h.json", "--results", "../results"]), 0);
    let said = publish(&folder, "../site", 0);
    assert!(said.contains("3 plots of 2 commits (1 that couldn't be built or run), 0 regressions"), "{said}");
    let index = fs::read_to_string(folder.join("site/data/index.js")).unwrap();
    assert!(index.contains(r#"["build",["added","sh ./build.sh","sh build.sh"]]"#), "{index}");
    assert!(index.contains(r#""failed":1"#) && index.contains(r#""measured":2"#), "{index}");
    assert!(index.contains(r#""least":6"#) && index.contains(r#""short":3"#), "{index}");
    let states = fs::read_to_string(folder.join("site/data/commits.js")).unwrap();
    assert_eq!((states.matches(",1]").count(), states.matches(",0]").count()), (1, 2), "{states}");
    let (out, _) = texts(&history(&folder, &["show", "cat", "--results", "../results"]), 0);
    assert!(out.contains("(added)") && out.contains("(build sh ./build.sh)"), "{out}");
}

#[test]
fn tags_stand_in_the_data_of_a_site() {
    let (folder, _, commits) = measured();
    let root = folder.join("project");
    git(&root, &["tag", "v1</script>", &commits[2].hash]);
    git(&root, &["tag", "-a", "-m", "second", "v2", &commits[9].hash]);
    publish(&folder, "../site", 0);
    let data = fs::read_to_string(folder.join("site/data/commits.js")).unwrap();
    let tags = data.split_once(r#""tags":"#).map_or("", |(_, tags)| tags);
    let at = |place: usize| commits[place].date;
    let expected = [format!(r#"[[2,{},"v1\u003c/script>"]"#, at(2)), format!(r#",[9,{},"v2"]]"#, at(9))].concat();
    assert!(tags.starts_with(&expected), "{tags}");
}
