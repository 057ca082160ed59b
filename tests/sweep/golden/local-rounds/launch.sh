#!/bin/bash
# Runs a round of this sweep, the first argument (default: 1), then its look, which starts the
# next round if the claims are undecided. Further arguments are the numbers of its tasks to run, or
# --from and a file with a number per line (default: all).
set -euo pipefail
sweep=/home/user/local-rounds/sweep
for program in xargs flock; do
  command -v "$program" >/dev/null && continue
  echo "$program: not found on PATH; this sweep needs it" >&2
  exit 2
done
round=${1:-1}
counts=(4 4 4 4)  # tasks of each round
tasks=("${@:2}")
[ "${2-}" != --from ] || mapfile -t tasks <"$3"
[ $# -gt 1 ] || mapfile -t tasks < <(seq 0 $((counts[round - 1] - 1)))
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
    finished=$(find /home/user/local-rounds/shards -path '*/journal/*.jsonl' -exec cat {} + 2>/dev/null | wc -l) || true
    [ "$finished" = "$last" ] || echo "$finished of up to 48 trials are finished" >&2
    last=$finished
    pause=$((pause < 30 ? 2 * pause : 60))
  done
}
progress 9>&- &
watcher=$!
trap 'kill "$watcher" 2>/dev/null || true' EXIT
# In the folder, since xargs would replace braces of its path.
printf '%s\n' "${tasks[@]}" | (cd "$sweep" && exec xargs -P 2 -I '{}' bash task.sh '{}' "$round")
kill "$watcher" 2>/dev/null || true
exec bash "$sweep/merge.sh" "$round"
