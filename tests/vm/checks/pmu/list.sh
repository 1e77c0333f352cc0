# What is listed is what can be counted.
. checks/lib.sh

perfprop list > /tmp/list
check 'list ends well' 0 $?
has 'the PMU is listed' /tmp/list '^Events of the PMU armv8_pmuv3'
has 'its events can be counted' /tmp/list 'armv8_pmuv3/inst_retired/.*yes'
has 'cycles can be counted' /tmp/list '^  cycles OR cpu-cycles .*yes'
# Versions of qemu differ in which of these a PMU has: what the kernel opens is listed as such, and what it refuses as refused.
for event in branches branch-misses cache-references cache-misses stalled-cycles-frontend; do
  perfprop list $event > /tmp/event
  if perf stat -x, -e $event -- true 2>&1 | grep -q '<not supported>'; then
    has "$event cannot" /tmp/event "^  \(.* OR \)\{0,1\}$event .* — not supported"
  else
    has "$event can be counted" /tmp/event "^  \(.* OR \)\{0,1\}$event .*yes"
  fi
done
has 'presets are listed' /tmp/list '^  INSTRUCTIONS .*yes'
has 'software events are listed' /tmp/list '^  page-faults .*software.*yes'
has "libpfm's events are listed" /tmp/list 'Events of arm_n1 (libpfm)'
perfprop list --names > /tmp/names
has 'names are listed alone' /tmp/names '^armv8_pmuv3/cpu_cycles/$'
perfprop list nosuchevent > /tmp/none 2>&1
check 'nothing found is status 1' 1 $?
