// Attention over one head in any recipe: GEMMs around a softmax of rows.
#pragma once

#include "numsim/ops/attention_recipe.h"
#include "numsim/ops/internal/ops_simd.h"

namespace numsim {

// Do what Attend and AttendGradient (ops_simd.h) do, in the formats and the accumulation mode of
// the recipe. With a mask, P and dS have zeros where a token does not attend to another one, and
// sums run over all tokens. A value that is not finite counts as 0 in products with these zeros, so
// that it does not reach a token that does not attend to it. A zero result is +0. Keep scratch
// memory for each thread.
void AttendByGemms(const AttentionRecipe& recipe,
                   const HeadShape& shape,
                   const HeadRows& q,
                   const HeadRows& k,
                   const HeadRows& v,
                   float* log_sums,
                   size_t log_stride,
                   const HeadRowsOut& out);
void AttendGradientByGemms(const AttentionRecipe& recipe,
                           const HeadShape& shape,
                           const HeadGradientInputs& in,
                           const HeadRowsOut& dq,
                           const HeadRowsOut& dk,
                           const HeadRowsOut& dv);

}  // namespace numsim
