# What is listed is what can be counted.
. checks/lib.sh

perfprop list > /tmp/list
check 'list ends well' 0 $?
has 'the PMU is listed' /tmp/list '^Events of the PMU armv8_pmuv3'
has 'its events can be counted' /tmp/list 'armv8_pmuv3/inst_retired/.*yes'
has 'cycles can be counted' /tmp/list '^  cycles OR cpu-cycles .*yes'
has 'branches cannot' /tmp/list '^  branch.* — not supported'
has 'presets are listed' /tmp/list '^  INSTRUCTIONS .*yes'
has 'software events are listed' /tmp/list '^  page-faults .*software.*yes'
has "libpfm's events are listed" /tmp/list 'Events of arm_n1 (libpfm)'
perfprop list --names > /tmp/names
has 'names are listed alone' /tmp/names '^armv8_pmuv3/cpu_cycles/$'
perfprop list nosuchevent > /tmp/none 2>&1
check 'nothing found is status 1' 1 $?
