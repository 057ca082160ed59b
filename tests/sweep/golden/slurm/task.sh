#!/bin/bash
#SBATCH --job-name=quantization-variance
#SBATCH --output="/home/user/slurm/sweep/logs/%a.log"
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --array=0-3
#SBATCH --signal=B:TERM@60
#SBATCH --account=lab
#SBATCH --cpus-per-task=2
#SBATCH --mem=200M
#SBATCH --partition=main
#SBATCH --time=0:10:00
# Runs one of the 4 tasks of this sweep, whose number is the argument. Trials that are
# finished are not run again.
set -u
task=${1:-$SLURM_ARRAY_TASK_ID}
sweep=/home/user/slurm/sweep
cd /home/user || exit 2
rm -f "$sweep/exit/$task"
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
/opt/numsim run quantization-variance \
  --seeds=3 \
  --distributions=normal,laplace \
  --formats=e4m3fn \
  --pairs=8 \
  --k-high=512 \
  --shard "$task/4" --out /home/user/slurm/shards/"$task" --resume --take-over &
program=$!
# At TERM the program ends its trials, keeps the finished ones and exits with 75.
trap 'signalled=yes; kill -TERM "$program"' INT TERM
signalled=yes
while [ "$signalled" = yes ]; do
  signalled=no
  wait "$program"
  status=$?
done
code=$sweep/exit/$task
if echo "$status" >"$code.new" && sync "$code.new"; then
  mv "$code.new" "$code"
else
  rm -f "$code.new"
fi
if [ "$status" = 75 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
