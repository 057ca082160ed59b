#!/bin/bash
# Runs a round of this sweep, the first argument (default: 1), then its look, which starts the
# next round if the claims are undecided. Further arguments are the numbers of its tasks to run, or
# --from and a file with a number per line (default: all).
set -euo pipefail
sweep=/home/user/slurm-rounds/sweep
for program in sbatch squeue; do
  command -v "$program" >/dev/null && continue
  echo "$program: not found on PATH; this sweep needs it" >&2
  exit 2
done
round=${1:-1}
counts=(8 8 9 9)  # tasks of each round
tasks=("${@:2}")
[ "${2-}" != --from ] || mapfile -t tasks <"$3"
[ $# -gt 1 ] || mapfile -t tasks < <(seq 0 $((counts[round - 1] - 1)))
trap 'echo "sbatch did not take all jobs: numsim sweep status ${sweep%/sweep}" >&2; exit 2' ERR
left=
[ ! -e "$sweep/job" ] || left=$(squeue --noheader --format=%A --jobs="$(cat "$sweep/job")" 2>/dev/null |
  grep -vx "${SLURM_JOB_ID:-none}" || true)
if [ -n "$left" ]; then
  echo "$sweep: tasks of this sweep are still queued or running: job $(cat "$sweep/job")" >&2
  exit 2
fi
# The numbers of the tasks as ranges.
array=
for ((i = 0; i < ${#tasks[@]}; i = j)); do
  for ((j = i + 1; j < ${#tasks[@]} && tasks[j] == tasks[j - 1] + 1; j++)); do :; done
  array+=,${tasks[i]}
  [ $((j - i)) = 1 ] || array+=-${tasks[j - 1]}
done
array=${array#,}
job=$(sbatch --parsable --array="$array" --output="$sweep/logs/$round-%a.log" "$sweep/task.sh" "" "$round")
echo "${job%%;*}" >"$sweep/job"
look=$(sbatch --parsable --dependency="afterok:${job%%;*}" --kill-on-invalid-dep=yes "$sweep/merge.sh" "$round")
echo "${job%%;*},${look%%;*}" >"$sweep/job"
echo "submitted the tasks of round $round as job ${job%%;*} and the look as job ${look%%;*}"
