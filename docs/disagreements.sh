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

Every block below is the output of the command above it: all intervals of float32 numbers on which two
implementations give different codes, with how many of the 2^32 patterns that are. Nothing is sampled.
`docs/disagreements.sh` makes this page and a test compares it with the program.

How far a profile can be trusted is its evidence (`numsim oracle profiles`). *Measured* profiles of
CUDA 13.0, PyTorch 2.11 and ml_dtypes 0.6 equal what the implementation gave for every float32
pattern ([tests/profiles/recorded](../tests/profiles/recorded/README.md)). *Read* ones follow a source
text, *third-party* ones somebody else's report. A code is compared as a bit pattern; its value is
shown as each side understands it.
TEXT

section "E4M3: what becomes of 448 and more" \
  "CUDA without saturation and HIP's host code. HIP tests for overflow before it rounds, so 449 to 464, which round to 448, are NaN there. Far below the smallest subnormal its shift wraps around and numbers come back." \
  cuda-13 hip-host float32 e4m3fn
section "E4M3: saturating CUDA and PyTorch 2.11" \
  "What overflows on one side is the largest value on the other." \
  cuda-13-satfinite torch-2.11 float32 e4m3fn
section "E4M3: PyTorch 2.11 and 2.12" \
  "The development versions of 2.12 saturate finite overflow." \
  torch-2.11 torch-2.12 float32 e4m3fn
section "E4M3: CUDA and QPyTorch" \
  "QPyTorch's E4M3 has no NaN and reaches 480, rounds ties away, and rounds subnormal results twice." \
  cuda-13 qpytorch float32 e4m3fn
section "E5M2: codes of NaN" \
  "CUDA, PyTorch and ml_dtypes agree on every number. They write NaN in three ways." \
  cuda-13 torch-2.11 float32 e5m2
section "E5M2: PyTorch and ml_dtypes" "Only the codes of NaN again." torch-2.11 ml-dtypes float32 e5m2
section "E4M3FNUZ: ONNX Cast 23 and 24" \
  "What a saturating cast makes of infinity changed with opset 24." \
  onnx-cast-23 onnx-cast-24 float32 e4m3fnuz
section "E8M0: ml_dtypes and PyTorch" \
  "Zero and negative numbers: NaN on one side, the sign ignored on the other. Both round all of (2^-127, 1.5 * 2^-127) up, although 2^-127 is nearest." \
  ml-dtypes torch-2.11 float32 e8m0fnu --limit 16
section "E8M0: CUDA and PyTorch" \
  "CUDA rounds scales up, PyTorch to nearest: half of all numbers differ." \
  cuda-13 torch-2.11 float32 e8m0fnu --limit 8
section "E2M1: NaN in a format that has none" \
  "CUDA makes it the largest value, ml_dtypes a zero of the other sign." \
  cuda-13 ml-dtypes float32 e2m1fn
section "P3109 Binary8p4se and the same numbers saturated" \
  "Overflow and infinity, by the draft's two policies." \
  p3109-v4-satnone p3109-v4-satfinite float32 binary8p4se
