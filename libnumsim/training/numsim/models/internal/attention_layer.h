// Multi-head self-attention with its projections, forward and backward.
#pragma once

#include <optional>
#include <string>

#include "numsim/models/internal/linear_factory.h"
#include "numsim/models/internal/norm_layer.h"
#include "numsim/ops/shared/attention.h"

namespace numsim {

struct AttentionOptions {
  size_t width = 0, heads = 0;
  size_t length = 0;  // maximum sequence length
  bool causal = true;
  bool rotary = false;  // rotary positions for queries and keys [RoPE]
  double rope_base = 10000;
  bool biases = false;
  std::optional<NormOptions> qk_norm{};  // per head of queries and keys [QKNorm]; size: head_dim
  AttentionPrecision precision{};        // of the products; not for double
  Initial qkv{}, out{};
};

// Scratch memory for gradients, used only within one Backward. Layers of the same shape may share
// it.
template <typename T>
struct AttentionScratch {
  explicit AttentionScratch(Place place) : core(place), qkv(place), query(place), key(place) {}
  Buffer<T> core, qkv, query, key;
};

// Computes y = out(attention(rotate(norm(q)), rotate(norm(k)), v)) with (q | k | v) = qkv(x). The
// linear layers are NAME.qkv (width -> 3 width) and NAME.out; the norms are NAME.query_norm and
// NAME.key_norm. The tensor names are those of these layers, and NAME.core for the attention output
// before the output projection.
template <typename T>
class AttentionLayer {
 public:
  AttentionLayer(LinearFactory<T>& linears,
                 const std::string& name,
                 const AttentionOptions& options);

  // Computes y. x and y are batch * length x width, contiguous, and do not overlap. The caller must
  // leave x unchanged until Backward. Requires length <= options.length.
  void Forward(const Pass<T>& pass, In<T> x, size_t batch, size_t length, MatrixSpan<T> y);
  // Writes dx and the gradients of the parameters for the last Forward. dx must not overlap g. An
  // observer may change g. May be called once per Forward.
  void Backward(const Pass<T>& pass,
                MatrixSpan<T> g,
                MatrixSpan<T> dx,
                AttentionScratch<T>& scratch);

 private:
  void Rotate(const Pass<T>& pass, bool inverse, MatrixSpan<T> q, MatrixSpan<T> k) const;

  std::string core_name_;
  AttentionOptions options_;
  AttentionShape shape_;
  AttentionRecipe recipe_;
  LinearLayer<T>& qkv_linear_;
  std::optional<NormLayer<T>> query_norm_, key_norm_;
  LinearLayer<T>& out_linear_;
  Buffer<T> cosines_, sines_;  // for all positions
  Buffer<T> qkv_, log_sums_, core_;
  MatrixSpan<T> query_, key_;  // the inputs of attention: parts of qkv_, or the norms' outputs
};

}  // namespace numsim
