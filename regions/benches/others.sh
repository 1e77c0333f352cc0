#!/usr/bin/env bash
# Measures markers of likwid and PAPI beside those of perfprop-regions, in C: what an enter and a leave cost, over two
# readings of the clock. Debian has both: apt-get install likwid libpapi-dev. Says why where one can't be measured.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
cargo build --quiet --release --manifest-path "$here/../Cargo.toml" --config 'profile.release.opt-level=3'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Name, what the program is run by, arguments of the compiler.
measure() {
  local name=$1 run=$2
  shift 2
  printf '%-45s' "$name"
  if ! cc -O2 -I "$here/../include" "$here/others.c" -o "$work/program" "$@" 2> "$work/errors"; then
    echo "can't be compiled: $(grep -m 1 -o 'fatal error.*\|cannot find.*' "$work/errors" || tail -1 "$work/errors")"
    return
  fi
  # shellcheck disable=SC2086 # a command and its arguments
  $run "$work/program" > "$work/output" 2> "$work/errors" || true
  grep -m 1 -E '^[0-9.]+$' "$work/output" || echo "can't be measured: $(cat "$work/errors" "$work/output" | grep -m 1 -v '^-*$' || true)"
}

perfprop=(-L "$target/release" -lperfprop_regions "-Wl,-rpath,$target/release")
measure "perfprop-regions" env "${perfprop[@]}"
measure "perfprop-regions with page-faults" "env PERFPROP_REGION_EVENTS=page-faults" "${perfprop[@]}"
measure "PAPI_read of page-faults, twice" env -DPAPI -lpapi
measure "PAPI_hl_region_begin and _end, page-faults" "env PAPI_EVENTS=perf::PAGE-FAULTS PAPI_REPORT=0 PAPI_OUTPUT_DIRECTORY=$work" -DPAPI_HL -lpapi
measure "likwid's markers" "likwid-perfctr -C 0 -g CLOCK -m" -DLIKWID -llikwid
