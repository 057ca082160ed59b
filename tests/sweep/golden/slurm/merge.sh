#!/bin/bash
#SBATCH --job-name=quantization-variance
#SBATCH --output="/home/user/slurm/sweep/logs/merge.log"
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --account=lab
#SBATCH --partition=main
# Combines the trials of all tasks into the results.
set -eu
cd /home/user
exec /opt/numsim merge quantization-variance --shards-in /home/user/slurm/shards --out /home/user/slurm
