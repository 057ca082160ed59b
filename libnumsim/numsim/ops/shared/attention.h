// Scaled dot-product attention, forward and backward. Rules: tensor.h.
#pragma once

#include "numsim/ops/tensor.h"

namespace numsim {

struct AttentionShape {
  size_t batch = 0, length = 0;  // sequences, tokens of each; tokens = batch * length rows
  size_t heads = 0, head_dim = 0;
  bool causal = true;  // token t sees tokens 0 .. t
};

// For each sequence and head: out = softmax(q k^T / sqrt(head_dim)) v. q, k, v, out: tokens x
// heads * head_dim, head h in columns h * head_dim ...; they may be columns of one wider matrix.
// log_sums (tokens x heads) receives log(sum of exp) of each row of scores, for the gradient.
// Arithmetic is T's throughout.
template <typename T>
void Attention(const AttentionShape& shape,
               In<T> q,
               In<T> k,
               In<T> v,
               MatrixSpan<T> log_sums,
               MatrixSpan<T> out);
// dq, dk, dv from the gradient g of out; scores are computed again.
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
                       MatrixSpan<T> dv);

}  // namespace numsim
