#!/usr/bin/env bash
# Writes docs/disagreements.md to standard output, from `numsim oracle diff`.
#   docs/disagreements.sh PROGRAM > docs/disagreements.md
set -euo pipefail
program=$1

# section TITLE TEXT A B FROM TO [OPTION...]
section() {
  local title=$1 text=$2 a=$3 b=$4 from=$5 to=$6
  shift 6
  printf '\n## %s\n\n%s\n\n```\n$ numsim oracle diff %s %s --from %s --to %s%s\n' \
    "$title" "$text" "$a" "$b" "$from" "$to" "${*:+ $*}"
  "$program" oracle diff "$a" "$b" --from "$from" --to "$to" "$@"
  printf '```\n'
}

cat <<'TEXT'
# Where implementations disagree

This page lists the float32 inputs for which two implementations of a conversion give different codes.

Every block below is a command and its output: all intervals of float32 numbers on which the two
implementations give different codes, grouped by cause, with the number of the 2^32 patterns that are in each.
`--limit N` prints only the first N intervals. Nothing is sampled. `docs/disagreements.sh` writes this page, and a test
compares the page with the program.

The evidence for a profile says how far it can be trusted (`numsim oracle profiles`). *Measured* profiles of
CUDA 13.0, PyTorch 2.11 and 2.15 and ml_dtypes 0.6 equal the output of the implementation for every float32 pattern
([tests/profiles/recorded](../tests/profiles/recorded/README.md)). *Specification* profiles follow the
published rule, *read* profiles a source text, *third-party* profiles somebody else's report. Codes are
compared as bit patterns; the value of a code is shown as each side interprets it.
TEXT

section "E4M3: CUDA and HIP" \
  "CUDA without saturation is compared with HIP's host code. HIP tests for overflow before it rounds, so 449 to 464, which round to 448, become NaN. Far below the smallest subnormal its shift wraps around, and the results are nonzero again." \
  cuda-13 hip-host float32 e4m3fn
section "E4M3: saturating CUDA and PyTorch 2.11" \
  "Inputs that overflow to NaN in PyTorch become the largest value in CUDA." \
  cuda-13-satfinite torch-2.11 float32 e4m3fn
section "E4M3: PyTorch 2.11 and 2.12" \
  "The development versions of 2.12 saturate finite overflow." \
  torch-2.11 torch-2.12 float32 e4m3fn
section "E4M3: PyTorch 2.11 and 2.15" \
  "PyTorch 2.15 saturates, infinity included (measured on the CPU)." \
  torch-2.11 torch-2.15 float32 e4m3fn
section "E4M3: CUDA and QPyTorch" \
  "QPyTorch's E4M3 has no NaN and reaches 480. QPyTorch rounds ties away from zero, and rounds subnormal results twice." \
  cuda-13 qpytorch float32 e4m3fn
section "E5M2: codes of NaN" \
  "CUDA, PyTorch and ml_dtypes agree on every number, but write NaN in three ways." \
  cuda-13 torch-2.11 float32 e5m2
section "E5M2: PyTorch and ml_dtypes" "Again, only the codes of NaN differ." torch-2.11 ml-dtypes float32 e5m2
section "E4M3FNUZ: ONNX Cast 23 and 24" \
  "The result of a saturating cast of infinity changed with opset 24." \
  onnx-cast-23 onnx-cast-24 float32 e4m3fnuz
section "E8M0: ml_dtypes and PyTorch" \
  "ml_dtypes converts zero and negative numbers to NaN; PyTorch ignores the sign. Both round all of (2^-127, 1.5 * 2^-127) up, although 2^-127 is nearest." \
  ml-dtypes torch-2.11 float32 e8m0fnu --limit 16
section "E8M0: CUDA and PyTorch" \
  "CUDA rounds scales up, PyTorch to nearest: half of all numbers differ." \
  cuda-13 torch-2.11 float32 e8m0fnu --limit 8
section "E2M1: NaN in a format that has none" \
  "CUDA converts NaN to the largest value, ml_dtypes to a zero of the other sign." \
  cuda-13 ml-dtypes float32 e2m1fn
section "P3109 Binary8p4se with and without saturation" \
  "The draft has two policies for overflow and infinity." \
  p3109-v4-satnone p3109-v4-satfinite float32 binary8p4se
