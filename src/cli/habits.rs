//! An option of `perf stat` that perfprop hasn't in, what to do instead out.

/// Options of perf, and what does the same here.
const INSTEAD: [(&[&str], &str); 19] = [
    (&["--all-user"], "write it with the events:  -e cycles:u,page-faults:u"),
    (&["--all-kernel"], "write it with the events:  -e cycles:k,page-faults:k"),
    (&["-B", "--big-num", "--no-big-num"], "text has large numbers in groups of three, -x and -j have them plain"),
    (&["-n", "--null"], "time is always printed; the cheapest event is  -e dummy"),
    (&["-g", "--group"], "write groups in braces:  -e '{cycles,instructions}'"),
    (&["-v", "--verbose"], "what opens, and why not:  perfprop check -e EVENTS"),
    (&["-q", "--quiet"], "send the counts away:  -o /dev/null"),
    (&["-S", "--sync"], "sync; perfprop stat ..."),
    (
        &["-T", "--transaction", "--topdown", "--td-level", "--smi-cost", "--iostat"],
        "metrics:  perfprop list metric; -M",
    ),
    (&["--metric-only"], "metrics alone:  -M METRICS -j"),
    (&["--metric-no-group", "--metric-no-merge"], "metrics give up their groups by themselves where these don't fit"),
    (&["--no-merge", "--hybrid-merge", "--cputype"], "each kind of core is counted apart:  -e cpu_core/cycles/"),
    (&["--no-scale", "--scale"], "unscaled counts, enabled and running times:  perfprop record"),
    (&["--per-core", "--per-die", "--per-node", "--per-socket", "--percore-show-thread"], "each CPU apart:  -A"),
    (&["--for-each-cgroup"], "one control group in a run:  -G CGROUP"),
    (&["--log-fd"], "a file instead of a descriptor:  -o /dev/fd/N"),
    (&["--pre", "--post"], "a shell does both:  -- sh -c 'PRE; COMMAND; POST', which counts them too"),
    (
        &["--table", "--summary", "--no-csv-summary", "--interval-clear"],
        "every run and interval:  -I MS; live:  perfprop top",
    ),
    (&["--control"], "a part of a run:  -D MS, --timeout MS, or  -p PID"),
];

/// What somebody used to perf does here instead of this option, given as it was written.
pub(super) fn instead(option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or(option);
    INSTEAD.iter().find(|(names, _)| names.contains(&name)).map(|(_, instead)| *instead)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Args;

    #[test]
    fn only_options_that_there_are_not_are_explained() {
        let command = Args::command();
        let stat = command.find_subcommand("stat").into_iter().flat_map(|stat| stat.get_arguments());
        for argument in stat {
            let long = argument.get_long().map(|name| format!("--{name}"));
            let short = argument.get_short().map(|name| format!("-{name}"));
            assert!(long.into_iter().chain(short).all(|name| instead(&name).is_none()), "{argument:?}");
        }
        assert!(instead("--td-level=1").is_some() && instead("--nosuch").is_none());
    }
}
