#!/bin/bash
# Runs the tasks of this sweep whose numbers are the arguments, or the lines of a file (--from FILE),
# or all 4, then the merge.
set -euo pipefail
sweep=/home/user/slurm/sweep
for program in sbatch squeue; do
  command -v "$program" >/dev/null && continue
  echo "$program: not found on PATH; this sweep needs it" >&2
  exit 2
done
tasks=("$@")
[ "${1-}" != --from ] || mapfile -t tasks <"$2"
[ $# -gt 0 ] || mapfile -t tasks < <(seq 0 3)
trap 'echo "sbatch did not take all jobs: numsim sweep status ${sweep%/sweep}" >&2; exit 2' ERR
if [ -e "$sweep/job" ] && [ -n "$(squeue --noheader --jobs="$(cat "$sweep/job")" 2>/dev/null)" ]; then
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
job=$(sbatch --parsable --array="$array" "$sweep/task.sh")
echo "${job%%;*}" >"$sweep/job"
merge=$(sbatch --parsable --dependency="afterok:${job%%;*}" --kill-on-invalid-dep=yes "$sweep/merge.sh")
echo "submitted the tasks as job ${job%%;*} and the merge as job ${merge%%;*}"
