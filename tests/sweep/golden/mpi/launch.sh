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
# Ranks take the tasks in this order. One that is killed does not end the others (--enable-recovery).
rm -rf "$sweep/taken"
mkdir "$sweep/taken"
ranks=$((${#tasks[@]} < 2 ? ${#tasks[@]} : 2))
mpirun -np "$ranks" --bind-to none --enable-recovery bash "$sweep/rank.sh" "${tasks[@]}"
# mpirun does not tell of a rank that was killed.
for task in "${tasks[@]}"; do
  [ "$(cat "$sweep/exit/$task" 2>/dev/null)" = 0 ]
done
exec bash "$sweep/merge.sh"
