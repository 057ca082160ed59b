#!/bin/bash
#SBATCH --job-name=quantization-variance
#SBATCH --output="/home/user/slurm-rounds/sweep/logs/merge.log"
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --partition=main
# Judges the results so far. If they do not decide, starts the round after that of the argument.
set -eu
cd /home/user
status=0
/opt/numsim merge quantization-variance --shards-in /home/user/slurm-rounds/shards --out /home/user/slurm-rounds || status=$?
[ "$status" = 3 ] || exit "$status"
# Without the lock of this round, which processes of the next one must not inherit.
exec bash /home/user/slurm-rounds/sweep/launch.sh "$(($1 + 1))" 9>&-
