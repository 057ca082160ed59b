#!/bin/bash
# Runs the tasks of this sweep whose numbers are the arguments, or all 4, then the merge.
set -euo pipefail
sweep=/home/user/parallel/sweep
tasks=("$@")
[ $# -gt 0 ] || mapfile -t tasks < <(seq 0 3)
exec 9>"$sweep/lock"
if ! flock --nonblock 9; then
  echo "$sweep: tasks of this sweep are still running" >&2
  exit 2
fi
trap 'echo "not all tasks finished: numsim sweep status ${sweep%/sweep}" >&2' ERR
# With tasks as arguments, each of them runs, whatever the log of all says.
log=$sweep/joblog
if [ $# -gt 0 ]; then
  log=$sweep/joblog-some
  rm -f "$log"
fi
printf '%s\n' "${tasks[@]}" |
  parallel --quote --jobs 1 --sshlogin :,node1 --joblog "$log" --resume-failed bash "$sweep/task.sh" "{}"
exec bash "$sweep/merge.sh"
