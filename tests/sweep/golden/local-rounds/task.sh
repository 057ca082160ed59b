#!/bin/bash
# Runs one of the tasks of a round of this sweep. The arguments are the numbers of the task and of
# the round. Trials that are finished are not run again.
set -u
task=$1
round=$2
name=$round-$task
sweep=/home/user/local-rounds/sweep
cd /home/user || exit 2
exec >>"$sweep/logs/$name.log" 2>&1
rm -f "$sweep/exit/$name"
export OMP_NUM_THREADS=$((($(nproc) + 1) / 2))
/opt/numsim run quantization-variance \
  --seeds=2 \
  --until-decided=true \
  --max-seeds=12 \
  --distributions=normal \
  --formats=int8 \
  --pairs=300 \
  --k-high=512 \
  --look "$round" \
  --shard "$task/4" --out /home/user/local-rounds/shards/"$task" --resume &
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
exit "$status"
