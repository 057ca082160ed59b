#!/bin/bash
# Runs a round of this sweep, the first argument (default: 1), then its look, which starts the
# next round if the claims are undecided. Further arguments are the numbers of its tasks to run
# (default: all).
set -euo pipefail
sweep=/home/user/slurm-rounds/sweep
round=${1:-1}
counts=(8 8 9 9)  # tasks of each round
tasks=("${@:2}")
[ $# -gt 1 ] || mapfile -t tasks < <(seq 0 $((counts[round - 1] - 1)))
left=
[ ! -e "$sweep/job" ] || left=$(squeue --noheader --format=%A --jobs="$(cat "$sweep/job")" 2>/dev/null |
  grep -vx "${SLURM_JOB_ID:-none}" || true)
if [ -n "$left" ]; then
  echo "$sweep: tasks of this sweep are still queued or running: job $(cat "$sweep/job")" >&2
  exit 2
fi
array=$(IFS=,; echo "${tasks[*]}")
[ $# -gt 1 ] || array=0-$((counts[round - 1] - 1))
job=$(sbatch --parsable --array="$array" --output="$sweep/logs/$round-%a.log" "$sweep/task.sh" "" "$round")
echo "${job%%;*}" >"$sweep/job"
look=$(sbatch --parsable --dependency="afterok:${job%%;*}" --kill-on-invalid-dep=yes "$sweep/merge.sh" "$round")
echo "${job%%;*},${look%%;*}" >"$sweep/job"
echo "submitted the tasks of round $round as job ${job%%;*} and the look as job ${look%%;*}"
