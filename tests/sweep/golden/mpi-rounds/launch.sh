#!/bin/bash
# Runs a round of this sweep, the first argument (default: 1), then its look, which starts the
# next round if the claims are undecided. Further arguments are the numbers of its tasks to run
# (default: all).
set -euo pipefail
sweep=/home/user/mpi-rounds/sweep
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
# Each rank runs one task; a task that fails does not end the others.
# shellcheck disable=SC2016 # expanded by the shell of the rank
mpirun -np "${#tasks[@]}" --bind-to none --mca orte_abort_on_non_zero_status 0 \
  bash -c 'tasks=("${@:2}"); exec bash "$0" "${tasks[OMPI_COMM_WORLD_RANK]}" "$1"' \
  "$sweep/task.sh" "$round" "${tasks[@]}"
exec bash "$sweep/merge.sh" "$round"
