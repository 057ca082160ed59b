#!/bin/bash
# Combines the trials of all tasks into the results.
set -eu
cd /home/user
exec /opt/numsim merge quantization-variance --shards-in /home/user/mpi/shards --out /home/user/mpi
