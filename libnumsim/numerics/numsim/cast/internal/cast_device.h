// The functions of cast.h and round_step.h for contiguous arrays of one place that
// is a device. Callers have checked sizes and types. Arrays need only the alignment of their element
// type; large ones are fastest when aligned to 16 bytes. Only in builds with CUDA.
#pragma once

#include <cstdint>

#include "numsim/cast/cast.h"

namespace numsim::cuda {

// Code is an unsigned integer of 1, 2 or 4 bytes.
template <typename Code>
void Encode(const EncodePlan& plan,
            MatrixSpan<const float> in,
            MatrixSpan<Code> codes,
            const ArrayRandom& random);
template <typename Code>
void Decode(const FormatSpec& format, MatrixSpan<const Code> codes, MatrixSpan<float> out);
void FakeQuantize(const EncodePlan& plan,
                  MatrixSpan<const float> in,
                  MatrixSpan<float> out,
                  const ArrayRandom& random);
void RandomBitsArray(const ArrayRandom& random, int bits, MatrixSpan<uint32_t> out);

// Do the same from float32 or float64, one element at a time and so more slowly. If `words` is not
// empty, its element i holds the random bits of in[i], and `random` is not read.
template <typename Float, typename Code>
void EncodeEach(const EncodePlan& plan,
                MatrixSpan<const Float> in,
                MatrixSpan<Code> codes,
                const ArrayRandom& random,
                MatrixSpan<const uint32_t> words);
template <typename Float>
void RoundEach(const EncodePlan& plan,
               MatrixSpan<const Float> in,
               MatrixSpan<Float> out,
               const ArrayRandom& random,
               MatrixSpan<const uint32_t> words);

// Requires HasStepRule(plan) (round_step_rule.h). Every NaN sum counts as a positive NaN. `out` may be
// `base` or `direction`.
void RoundStep(const EncodePlan& plan,
               MatrixSpan<const float> base,
               MatrixSpan<const float> direction,
               float factor,
               MatrixSpan<float> out,
               const ArrayRandom& random);

}  // namespace numsim::cuda
