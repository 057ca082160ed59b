#!/bin/bash
# Runs the tasks of this sweep whose numbers are the arguments, or the lines of a file (--from FILE),
# or all 4, then the merge.
set -euo pipefail
sweep=/home/user/mpi/sweep
for program in mpirun flock; do
  command -v "$program" >/dev/null && continue
  echo "$program: not found on PATH; this sweep needs it" >&2
  exit 2
done
tasks=("$@")
[ "${1-}" != --from ] || mapfile -t tasks <"$2"
[ $# -gt 0 ] || mapfile -t tasks < <(seq 0 3)
[ /proc/self/fd/9 -ef "$sweep/lock" ] || exec 9>"$sweep/lock"
if ! flock --nonblock 9; then
  echo "$sweep: tasks of this sweep are still running" >&2
  exit 2
fi
trap 'echo "not all tasks finished: numsim sweep status ${sweep%/sweep}" >&2; exit 2' ERR
stopped() {
  echo "interrupted; finished trials are kept; to resume: numsim sweep resume ${sweep%/sweep}" >&2
  exit "$1"
}
trap 'stopped 130' INT
trap 'stopped 143' TERM
progress() {
  local finished last=0 pause=2 never
  trap - ERR INT TERM
  exec {never}<> <(:)
  while kill -0 $$ 2>/dev/null; do
    read -r -t "$pause" -u "$never" || true
    finished=$(find /home/user/mpi/shards -path '*/journal/*.jsonl' -exec cat {} + 2>/dev/null | wc -l) || true
    [ "$finished" = "$last" ] || echo "$finished of 24 trials are finished" >&2
    last=$finished
    pause=$((pause < 30 ? 2 * pause : 60))
  done
}
progress 9>&- &
watcher=$!
trap 'kill "$watcher" 2>/dev/null || true' EXIT
# Ranks take the tasks in this order. One that is killed does not end the others (--enable-recovery).
rm -rf "$sweep/taken"
mkdir "$sweep/taken"
printf '%s\n' "${tasks[@]}" >"$sweep/tasks"
ranks=$((${#tasks[@]} < 2 ? ${#tasks[@]} : 2))
mpirun -np "$ranks" --bind-to none --enable-recovery bash "$sweep/rank.sh"
# mpirun does not tell of a rank that was killed.
for task in "${tasks[@]}"; do
  [ "$(cat "$sweep/exit/$task" 2>/dev/null)" = 0 ]
done
kill "$watcher" 2>/dev/null || true
exec bash "$sweep/merge.sh"
