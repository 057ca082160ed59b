#!/usr/bin/env bash
# Builds, checks and times the GPU kernels on the device of this machine, in one go.
#   bench/cuda_study.sh [OUT_DIR] [BUILD_DIR]
# OUT_DIR (results/cuda-study) gets logs and CSV files, no folders; experiments/published/cuda/README.md says
# which. BUILD_DIR holds the programs, at any depth; without it preset cuda is built.
#
# From the environment:
#   PARTS            which of "tests sanitizer bench speed probe"; the order is always this
#   SPEED_OPTIONS    further options of `numsim run linear-speed`
#   TEST_FILTER, MEMCHECK_FILTER, RACECHECK_FILTER   gtest filters; the last also for initcheck
#   BENCH_FILTER     of the benchmarks
#   LIMIT_TESTS, LIMIT_SANITIZER, LIMIT_BENCH, LIMIT_SPEED, LIMIT_PROBE   seconds for each program
#
# A part that fails or takes too long ends alone; the exit status is 1 if there was one, 2 without a
# device. parts.csv lists them all.
set -euo pipefail

case ${1-} in -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit ;; esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-$root/results/cuda-study}
build=${2:-}
parts=${PARTS:-tests sanitizer bench speed probe}
mkdir -p "$out"
out=$(cd "$out" && pwd)
failed=0
# The checkout may belong to another user than the one that runs this.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=$root

for part in $parts; do
  case $part in tests | sanitizer | bench | speed | probe) ;; *)
    echo "PARTS: '$part' is none of tests sanitizer bench speed probe" >&2
    exit 2 ;;
  esac
done

# step PART NAME LIMIT COMMAND...: runs it with its output in OUT/NAME.log and a line in parts.csv.
step() {
  local part=$1 name=$2 limit=$3 start=$SECONDS status=0
  shift 3
  printf '$' >"$out/$name.log"
  printf ' %q' "$@" >>"$out/$name.log"
  echo >>"$out/$name.log"
  timeout --kill-after=10 "$limit" "$@" >>"$out/$name.log" 2>&1 </dev/null || status=$?
  local seconds=$((SECONDS - start)) word=passed
  if [ $status = 124 ] || [ $status = 137 ]; then word="over $limit s"; elif [ $status != 0 ]; then word="status $status"; fi
  if [ $status != 0 ]; then failed=1; fi
  echo "$part,$name,$word,$seconds" >>"$out/parts.csv"
  printf '%-10s %-44s %5d s  %s\n' "$part" "$name" "$seconds" "$word"
  return 0
}

# A part that cannot run at all.
miss() {
  failed=1
  echo "$1,$2,missing: $3,0" >>"$out/parts.csv"
  printf '%-10s %-44s          missing: %s\n' "$1" "$2" "$3"
}

programs() { find "$build" -type f -executable -name "$1" | sort; }

wants() { [[ " $parts " == *" $1 "* ]]; }

echo "part,name,status,seconds" >"$out/parts.csv"

if [ -z "$build" ]; then
  build=$root/build/cuda
  step build build-configure 600 cmake -S "$root" --preset cuda
  benches=$(find "$root/bench" -name '*_device_bench.cc' -exec basename {} .cc ';')
  # shellcheck disable=SC2086
  step build build-compile 7200 cmake --build "$build" --parallel "$(nproc)" \
    --target numsim_app device_tests $benches
  if [ $failed != 0 ]; then
    echo "the build failed: $out/build-*.log" >&2
    exit 1
  fi
fi
build=$(cd "$build" && pwd)
numsim=$(programs numsim | head -n 1)
if [ -z "$numsim" ]; then
  echo "$build: no program numsim" >&2
  exit 2
fi
if ! "$numsim" --backend cuda backends >"$out/backends.log" 2>&1; then
  cat "$out/backends.log" >&2
  exit 2
fi

# The machine and the code.
{
  echo "commit    $(git -C "$root" describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)"
  echo "started   $(date -u +%Y-%m-%dT%H:%M:%SZ)"
  echo "system    $(uname -srm)"
  echo "cpu       $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
  echo "toolkit   $({ nvcc --version 2>/dev/null || /usr/local/cuda/bin/nvcc --version 2>/dev/null || echo 'no nvcc here'; } | tail -n 2 | head -n 1)"
  echo "command   PARTS=\"$parts\" SPEED_OPTIONS=\"${SPEED_OPTIONS-}\" bench/cuda_study.sh"
  echo
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.memory,power.limit,ecc.mode.current \
    --format=csv 2>&1 || true
  echo
  cat "$out/backends.log"
} >"$out/machine.txt"
rm "$out/backends.log"
export NUMSIM_SOURCE_DIR=$root NUMSIM_PROGRAM=$numsim

# attribute NAME FILE: of the first element of an XML file.
attribute() { sed -n "/<testsuites/{s/.* $1=\"\([^\"]*\)\".*/\1/p;q}" "$2"; }

if wants tests; then
  echo "program,tests,failures,skipped,seconds" >"$out/tests.csv"
  found=
  for program in $(programs 'test_*_device'); do
    found=1
    name=$(basename "$program")
    step tests "$name" "${LIMIT_TESTS:-600}" "$program" --gtest_filter="${TEST_FILTER:-*}" \
      --gtest_output="xml:$out/$name.xml"
    if [ -f "$out/$name.xml" ]; then
      skipped=$(grep -c '<skipped' "$out/$name.xml" || true)
      echo "$name,$(attribute tests "$out/$name.xml"),$(attribute failures "$out/$name.xml"),$skipped,$(attribute time "$out/$name.xml")" \
        >>"$out/tests.csv"
    fi
  done
  if [ -z "$found" ]; then miss tests 'test_*_device' "not in $build"; fi
fi

# Tests that only repeat at greater sizes or provoke errors are left out: the tools are slow.
if wants sanitizer; then
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
  heavy='*Long*:*Large*:*Random*:*Billion*:*Many*:*TooMuch*:*Refuses*:HopperRules.*:LinearSpeedDevice.*'
  if [ -z "$sanitizer" ]; then
    miss sanitizer compute-sanitizer "not on this machine"
  else
    # sanitize TOOL PROGRAM FILTER: every copy of the program under the tool.
    sanitize() {
      local found program
      found=$(programs "$2")
      if [ -z "$found" ]; then miss sanitizer "$1-$2" "not built"; fi
      for program in $found; do
        step sanitizer "$1-$2" "${LIMIT_SANITIZER:-240}" "$sanitizer" --tool "$1" --error-exitcode 99 \
          --report-api-errors no --print-limit 20 "$program" --gtest_filter="$3"
      done
    }
    for program in $(programs 'test_*_device'); do
      sanitize memcheck "$(basename "$program")" "${MEMCHECK_FILTER:-*-$heavy}"
    done
    # The shortest tests of each family of kernels: ragged shapes, float32 results, all that a step
    # of a layer runs.
    layers='*AnEmptyDimension*:*ZerosAndRowsOfZeros*:DeviceLinearExecution.*'
    kernels="*Quantize*:*Transpose*:*Absmax*:*Gemm*:*Blocks*:*Ordered*:*Delayed*:*EverySize*:$layers"
    for tool in racecheck initcheck; do
      for name in cast gemm linear quantize updates; do
        sanitize $tool "test_${name}_device" "${RACECHECK_FILTER:-$kernels-$heavy}"
      done
    done
  fi
fi

if wants bench; then
  found=
  for program in $(programs '*_device_bench'); do
    found=1
    name=$(basename "$program" _device_bench)
    step bench "bench-$name" "${LIMIT_BENCH:-300}" "$program" \
      --benchmark_filter="${BENCH_FILTER:-.}" \
      --benchmark_out="$out/bench-$name.json" --benchmark_out_format=json
    # As CSV: its own writer wants the same counters in every line.
    if [ -s "$out/bench-$name.json" ]; then
      python3 - "$out/bench-$name" <<'PYTHON'
import csv, json, sys
runs = json.load(open(sys.argv[1] + ".json"))["benchmarks"]
known = ("family_index", "per_family_instance_index", "run_name", "run_type", "repetitions",
         "repetition_index", "threads", "iterations", "time_unit", "cpu_time", "real_time", "name")
counters = sorted({key for run in runs for key in run if key not in known})
with open(sys.argv[1] + ".csv", "w", newline="") as file:
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["name", "time", "unit", *counters])
    for run in runs:
        name = run["name"].replace("/iterations:1/manual_time", "")
        rows.writerow([name, f'{run["real_time"]:.5g}', run["time_unit"],
                       *(f"{x:.5g}" if isinstance(x, float) else x
                         for x in (run.get(key, "") for key in counters))])
PYTHON
      rm "$out/bench-$name.json"
    fi
  done
  if [ -z "$found" ]; then miss bench '*_device_bench' "not in $build"; fi
fi

# Its result directory goes to a file as a whole, too: `numsim plot` draws the figures from it.
if wants speed; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # shellcheck disable=SC2086
  step speed linear-speed "${LIMIT_SPEED:-580}" "$numsim" --backend cuda run linear-speed \
    --preset paper --out "$work/linear-speed" ${SPEED_OPTIONS-}
  if [ -d "$work/linear-speed" ]; then
    tar -C "$work" -czf "$out/linear-speed.tar.gz" linear-speed
    for file in operations.csv layers.csv crossings.csv summary.txt manifest.json; do
      if [ -f "$work/linear-speed/$file" ]; then
        cp "$work/linear-speed/$file" "$out/linear-speed-$file"
      fi
    done
  fi
fi

if wants probe; then
  step probe probe-device "${LIMIT_PROBE:-300}" "$numsim" --backend cuda oracle probe-device
fi

echo "ended     $(date -u +%Y-%m-%dT%H:%M:%SZ)" >>"$out/machine.txt"
exit $failed
