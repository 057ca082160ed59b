#!/bin/bash
# Runs one of the 4 tasks of this sweep, whose number is the argument. Trials that are
# finished are not run again.
set -u
task=$1
sweep=/home/user/local/sweep
cd /home/user || exit 2
exec >>"$sweep/logs/$task.log" 2>&1
rm -f "$sweep/exit/$task"
export OMP_NUM_THREADS=$((($(nproc) + 1) / 2))
/opt/numsim run quantization-variance \
  --seeds=3 \
  --distributions=normal,laplace \
  --formats=e4m3fn \
  --pairs=8 \
  --k-high=512 \
  --shard "$task/4" --out /home/user/local/shards/"$task" --resume &
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
exit "$status"
