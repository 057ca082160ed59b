#!/bin/bash
# Runs the tasks of this sweep whose numbers are the arguments, or all 4, then the merge.
set -euo pipefail
sweep=/home/user/slurm/sweep
tasks=("$@")
[ $# -gt 0 ] || mapfile -t tasks < <(seq 0 3)
if [ -e "$sweep/job" ] && [ -n "$(squeue --noheader --jobs="$(cat "$sweep/job")" 2>/dev/null)" ]; then
  echo "$sweep: tasks of this sweep are still queued or running: job $(cat "$sweep/job")" >&2
  exit 2
fi
array=$(IFS=,; echo "${tasks[*]}")
[ $# -gt 0 ] || array=0-3
job=$(sbatch --parsable --array="$array" "$sweep/task.sh")
echo "${job%%;*}" >"$sweep/job"
merge=$(sbatch --parsable --dependency="afterok:${job%%;*}" --kill-on-invalid-dep=yes "$sweep/merge.sh")
echo "submitted the tasks as job ${job%%;*} and the merge as job ${merge%%;*}"
