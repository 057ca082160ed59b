// Scaled dot-product attention, forward and backward. elementwise.h states the rules of all
// operations.
#pragma once

#include "numsim/backend/matrix.h"
#include "numsim/ops/attention_recipe.h"

namespace numsim {

struct AttentionShape {
  size_t batch = 0, length = 0;  // sequences and tokens per sequence; tokens = batch * length rows
  size_t heads = 0, head_dim = 0;
  bool causal = true;  // token t attends only to tokens 0 .. t
};

// Computes out = softmax(q k^T / sqrt(head_dim)) v for each sequence and head. q, k, v and out are
// tokens x heads * head_dim, with head h in the columns from h * head_dim; they may be columns of
// one wider matrix. log_sums (tokens x heads) receives what the gradient needs of each row of
// scores: log(sum of exp), to base 2 in modes other than fp32:unfused.
//
// In float, the products are those of the recipe; in double, all arithmetic is in double. A value
// that is not finite reaches those tokens alone that attend to it. With one scale for a head, its
// absence from the absolute maximum may change the bits of others.
template <typename T>
void Attention(const AttentionShape& shape,
               In<T> q,
               In<T> k,
               In<T> v,
               MatrixSpan<T> log_sums,
               MatrixSpan<T> out,
               const AttentionRecipe& recipe = {});
// Writes dq, dk and dv from the gradient g of out. Recomputes the scores. Requires log_sums and out
// of Attention with the same recipe.
template <typename T>
void AttentionGradient(const AttentionShape& shape,
                       In<T> g,
                       In<T> q,
                       In<T> k,
                       In<T> v,
                       In<T> log_sums,
                       In<T> out,
                       MatrixSpan<T> dq,
                       MatrixSpan<T> dk,
                       MatrixSpan<T> dv,
                       const AttentionRecipe& recipe = {});

}  // namespace numsim
