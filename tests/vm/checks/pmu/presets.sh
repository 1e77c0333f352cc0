# Presets find an event of this PMU. The emulated one counts no cache misses, and says 0.
. checks/lib.sh

perfprop stat -j -e L1_MISSES,CYCLES,INSTRUCTIONS -o /tmp/ours -- loop 1
for preset in L1_MISSES CYCLES INSTRUCTIONS; do
  check "$preset opens" counted "$(value $preset status /tmp/ours)"
done
holds 'INSTRUCTIONS counts' "$(value INSTRUCTIONS counter-value /tmp/ours) >= 60000009"
holds 'CYCLES counts' "$(value CYCLES counter-value /tmp/ours) >= 60000009"
