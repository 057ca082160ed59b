#!/bin/bash
sweep=/home/user/mpi-rounds/sweep
# One rank of mpirun: runs those of sweep/tasks that no other rank has taken, one after the other. To take
# a task is to create its file in taken/, which only one rank can do.
set -u
mapfile -t tasks <"$sweep/tasks"
cd "$sweep/taken" || exit 2
for task in "${tasks[@]}"; do
  [ ! -e "$task" ] || continue
  if (set -o noclobber && echo "rank $OMPI_COMM_WORLD_RANK on $(uname -n)" >"$task") 2>/dev/null; then
    bash "$sweep/task.sh" "$task" "$1"
  elif [ ! -e "$task" ]; then
    echo "$sweep/taken/$task: cannot be written" >&2
    exit 2
  fi
done
exit 0
