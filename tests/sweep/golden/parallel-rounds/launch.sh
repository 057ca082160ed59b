#!/bin/bash
# Runs a round of this sweep, the first argument (default: 1), then its look, which starts the
# next round if the claims are undecided. Further arguments are the numbers of its tasks to run
# (default: all).
set -euo pipefail
sweep=/home/user/parallel-rounds/sweep
round=${1:-1}
counts=(4 4 4 4)  # tasks of each round
tasks=("${@:2}")
[ $# -gt 1 ] || mapfile -t tasks < <(seq 0 $((counts[round - 1] - 1)))
exec 9>"$sweep/lock"
if ! flock --nonblock 9; then
  echo "$sweep: tasks of this sweep are still running" >&2
  exit 2
fi
trap 'echo "not all tasks finished: numsim sweep status ${sweep%/sweep}" >&2' ERR
# With tasks as arguments, each of them runs, whatever the log of all says.
log=$sweep/joblog-$round
if [ $# -gt 1 ]; then
  log=$sweep/joblog-some
  rm -f "$log"
fi
printf '%s\n' "${tasks[@]}" |
  parallel --quote --jobs 1 --sshlogin :,node1 --joblog "$log" --resume-failed bash "$sweep/task.sh" "{}" "$round"
exec bash "$sweep/merge.sh" "$round"
