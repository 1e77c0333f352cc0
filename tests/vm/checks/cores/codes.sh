# Each preset is encoded on this core as the table says, and as libpfm encodes the same event where it
# knows the core.
. checks/lib.sh

# table KEY: the presets that have it on this core, with its value.
table() {
  awk -v core="\"$CORE\"" -v key="\"$1\": \"" '
    /^ *"name":/ { split($0, part, "\""); name = part[4] }
    /"on":/ && index($0, core) && index($0, key) {
      value = substr($0, index($0, key) + length(key)); print name, substr(value, 1, index(value, "\"") - 1)
    }' presets.json
}
# names KEY PREFIX: what to count of those, after -e.
values() { table "$1" | sed "s/.* /$2/" | tr '\n' ',' | sed 's/,$//'; }
# encoded EVENTS: their codes, one a line.
encoded() { perfprop record -o /tmp/encoded -e "$1" -- true 2> /tmp/errors; configs /tmp/encoded; }

table code > /tmp/presets
echo "   $CORE: $(wc -l < /tmp/presets) presets with a code, $(table event | wc -l) of them in libpfm's words"
holds "$CORE has presets" "$(wc -l < /tmp/presets) >= 8"
expected=$(while read -r _ code; do printf '%d\n' "$code"; done < /tmp/presets)
check "$CORE: presets have the codes of the table" "$expected" "$(encoded "$(sed 's/ .*//' /tmp/presets | tr '\n' ',' | sed 's/,$//')")"

case $CORE in a53) tables=arm_ac53 ;; a57) tables=arm_ac57 ;; n1) tables=arm_n1 ;; *) tables= ;; esac
if [ -n "$tables" ]; then
  expected=$(while read -r name _; do grep "^$name " /tmp/presets; done << EOF | while read -r _ code; do printf '%d\n' "$code"; done
$(table event)
EOF
)
  check "$CORE: libpfm encodes the same events so" "$expected" "$(encoded "$(values event "$tables::")")"
fi

table missing | while read -r name _; do
  perfprop stat -j -e "$name,cycles" -o /tmp/missing -- true 2> /tmp/errors
  check "$CORE: $name is known to be absent" 'not supported' "$(value "$name" status /tmp/missing)"
done
