#!/bin/bash
#SBATCH --job-name=quantization-variance
#SBATCH --output="/home/user/slurm-rounds/sweep/logs/%a.log"
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --array=0-8
#SBATCH --signal=B:TERM@60
#SBATCH --partition=main
# Runs one of the tasks of a round of this sweep. The arguments are the numbers of the task and of
# the round. Trials that are finished are not run again.
set -u
task=${1:-$SLURM_ARRAY_TASK_ID}
round=$2
name=$round-$task
sweep=/home/user/slurm-rounds/sweep
cd /home/user || exit 2
rm -f "$sweep/exit/$name"
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
/opt/numsim run quantization-variance \
  --seeds=2 \
  --until-decided=true \
  --max-seeds=12 \
  --distributions=normal \
  --formats=int8 \
  --pairs=300 \
  --k-high=512 \
  --look "$round" \
  --shard "$task/9" --out /home/user/slurm-rounds/shards/"$task" --resume --take-over &
program=$!
# At TERM the program ends its trials, keeps the finished ones and exits with 75.
trap 'signalled=yes; kill -TERM "$program"' INT TERM
signalled=yes
while [ "$signalled" = yes ]; do
  signalled=no
  wait "$program"
  status=$?
done
code=$sweep/exit/$name
if echo "$status" >"$code.new" && sync "$code.new"; then
  mv "$code.new" "$code"
else
  rm -f "$code.new"
fi
if [ "$status" = 75 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
