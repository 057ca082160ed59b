#!/bin/bash
# Judges the results so far. If they do not decide, starts the round after that of the argument.
set -eu
cd /home/user
status=0
/opt/numsim merge quantization-variance --shards-in /home/user/local-rounds/shards --out /home/user/local-rounds || status=$?
[ "$status" = 3 ] || exit "$status"
# Without the lock of this round, which processes of the next one must not inherit.
exec bash /home/user/local-rounds/sweep/launch.sh "$(($1 + 1))" 9>&-
