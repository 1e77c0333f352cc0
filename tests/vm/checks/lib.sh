# Sourced by the checks, in the guest.

# check NAME EXPECTED FOUND: passes where both are the same text.
check() {
  if [ "$2" = "$3" ]; then echo "ok $1"; else echo "FAIL $1: expected $2, found $3" | tr '\n' ' ' && echo; fi
}

# holds NAME FORMULA: passes where awk finds the formula of numbers true.
holds() {
  case $(awk "BEGIN { print ($2) ? \"yes\" : \"no\" }" 2> /dev/null) in
    yes) echo "ok $1" ;;
    *) echo "FAIL $1: expected $2, found that it does not hold" ;;
  esac
}

# near NAME EXPECTED FOUND PART: passes where the numbers differ by less than that part.
near() {
  case $(awk "BEGIN { part = $3 / $2 - 1; print (part < $4 && -part < $4) ? \"yes\" : \"no\" }" 2> /dev/null) in
    yes) echo "ok $1" ;;
    *) echo "FAIL $1: expected $2 within $4 of it, found $3" ;;
  esac
}

# has NAME FILE PATTERN: passes where a line of the file matches.
has() {
  if grep -q -- "$3" "$2"; then echo "ok $1"; else echo "FAIL $1: expected /$3/, found $(tr "\n" "|" < "$2" | cut -c 1-400)"; fi
}

# configs FILE: the raw codes of a recording's events, in decimal, one a line; without those that
# perfprop added, which stand among the anchors.
configs() {
  head -n 1 "$1" | sed 's/"anchors":.*//' | grep -o '"encoding":{"pmu_type":[0-9]*,"config":[0-9]*' | sed 's/.*://'
}

# value EVENT KEY FILE: what the JSON lines of `stat -j` say of an event; in several lines if they do.
value() {
  grep -F "\"event\":\"$1\"" "$3" | sed "s/.*\"$2\":\"\{0,1\}\([^,\"}]*\).*/\1/"
}

# perfs EVENT FILE: the count in the lines of `perf stat -x,`.
perfs() { sed -n "s/^\([0-9]*\),[^,]*,$1,.*/\1/p" "$2"; }
