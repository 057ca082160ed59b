#!/bin/bash
# Runs the tasks of this sweep whose numbers are the arguments, or all 4, then the merge.
set -euo pipefail
sweep=/home/user/local/sweep
tasks=("$@")
[ $# -gt 0 ] || mapfile -t tasks < <(seq 0 3)
exec 9>"$sweep/lock"
if ! flock --nonblock 9; then
  echo "$sweep: tasks of this sweep are still running" >&2
  exit 2
fi
trap 'echo "not all tasks finished: numsim sweep status ${sweep%/sweep}" >&2' ERR
printf '%s\n' "${tasks[@]}" | xargs -P 2 -I '{}' bash "$sweep/task.sh" '{}'
exec bash "$sweep/merge.sh"
