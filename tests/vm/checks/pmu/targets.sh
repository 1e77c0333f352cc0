# Processes that run, the whole machine, and levels of privilege.
. checks/lib.sh

perfprop stat -j -e '{instructions,instructions:u,instructions:k}' -o /tmp/levels -- loop 2
total=$(value instructions counter-value /tmp/levels)
user=$(value instructions:u counter-value /tmp/levels)
kernel=$(value instructions:k counter-value /tmp/levels)
check 'user space and kernel are all' "${total%.0}" "$((${user%.0} + ${kernel%.0}))"
check 'user space is the loop' "$((3 * 2 * 20000000 + 9)).0" "$user"

# The loop begins when it is attached to, so that all of it is counted.
mkfifo /tmp/go
sh -c 'read -r _ < /tmp/go; exec loop 3' &
perfprop stat -j -e instructions:u,task-clock -o /tmp/attached -p $! &
sleep 1
echo go > /tmp/go
wait
near 'a running process is counted to its end' "$((3 * 3 * 20000000))" "$(value instructions:u counter-value /tmp/attached)" 0.01

perfprop stat -j -a -e instructions:u -o /tmp/machine -- loop 3
near 'the whole machine counts what runs on it' "$((3 * 3 * 20000000))" "$(value instructions:u counter-value /tmp/machine)" 0.02
perfprop stat -j -A -a -e instructions:u -o /tmp/cpus -- loop 1
check 'a count for each CPU' 0 "$(value instructions:u cpu /tmp/cpus)"
