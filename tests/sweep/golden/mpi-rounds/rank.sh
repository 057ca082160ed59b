#!/bin/bash
sweep=/home/user/mpi-rounds/sweep
# One rank of mpirun: runs the tasks of the arguments that no other rank has taken, one after the other.
# To take a task is to create its file in taken/, which only one rank can do.
set -u
round=$1
shift
cd "$sweep/taken" || exit 2
for task in "$@"; do
  [ ! -e "$task" ] || continue
  if (set -o noclobber && echo "rank $OMPI_COMM_WORLD_RANK on $(uname -n)" >"$task") 2>/dev/null; then
    bash "$sweep/task.sh" "$task" "$round"
  elif [ ! -e "$task" ]; then
    echo "$sweep/taken/$task: cannot be written" >&2
    exit 2
  fi
done
exit 0
