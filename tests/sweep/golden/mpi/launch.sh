#!/bin/bash
# Runs the tasks of this sweep whose numbers are the arguments, or all 4, then the merge.
set -euo pipefail
sweep=/home/user/mpi/sweep
tasks=("$@")
[ $# -gt 0 ] || mapfile -t tasks < <(seq 0 3)
exec 9>"$sweep/lock"
if ! flock --nonblock 9; then
  echo "$sweep: tasks of this sweep are still running" >&2
  exit 2
fi
trap 'echo "not all tasks finished: numsim sweep status ${sweep%/sweep}" >&2' ERR
# Each rank runs one task; a task that fails does not end the others.
# shellcheck disable=SC2016 # expanded by the shell of the rank
mpirun -np "${#tasks[@]}" --bind-to none --mca orte_abort_on_non_zero_status 0 \
  bash -c 'tasks=("$@"); exec bash "$0" "${tasks[OMPI_COMM_WORLD_RANK]}"' "$sweep/task.sh" "${tasks[@]}"
exec bash "$sweep/merge.sh"
