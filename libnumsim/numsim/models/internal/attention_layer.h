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
  size_t length = 0;  // longest sequence
  bool causal = true;
  bool rotary = false;  // rotary positions of queries and keys [RoPE]
  double rope_base = 10000;
  bool biases = false;
  std::optional<NormOptions> qk_norm{};  // of each head's queries and keys [QKNorm]; size: head_dim
  Initial qkv{}, out{};
};

// Gradients that live within one Backward. Layers of one shape may share it.
template <typename T>
struct AttentionScratch {
  explicit AttentionScratch(Place place) : core(place), qkv(place), query(place), key(place) {}
  Buffer<T> core, qkv, query, key;
};

// y = out(attention(rotate(norm(q)), rotate(norm(k)), v)) with (q | k | v) = qkv(x).
// Linear layers: NAME.qkv (width -> 3 width), NAME.out. Norms: NAME.query_norm, NAME.key_norm.
// Points: those of these layers, and NAME.core, what attention puts out.
template <typename T>
class AttentionLayer {
 public:
  AttentionLayer(LinearFactory<T>& linears,
                 const std::string& name,
                 const AttentionOptions& options);

  // x, y: batch * length x width, contiguous; they do not overlap. The caller keeps x as it is
  // until Backward. Requires length <= options.length.
  void Forward(const Pass<T>& pass, In<T> x, size_t batch, size_t length, MatrixSpan<T> y);
  // Writes the gradients of the parameters and dx, which does not overlap g. g may be changed by an
  // observer. Of the last Forward; once.
  void Backward(const Pass<T>& pass,
                MatrixSpan<T> g,
                MatrixSpan<T> dx,
                AttentionScratch<T>& scratch);

 private:
  void Rotate(const Pass<T>& pass, bool inverse, MatrixSpan<T> q, MatrixSpan<T> k) const;

  std::string core_name_;
  AttentionOptions options_;
  AttentionShape shape_;
  LinearLayer<T>& qkv_linear_;
  std::optional<NormLayer<T>> query_norm_, key_norm_;
  LinearLayer<T>& out_linear_;
  Buffer<T> cosines_, sines_;  // of all positions
  Buffer<T> qkv_, log_sums_, core_;
  MatrixSpan<T> query_, key_;  // as attention takes them: in qkv_, or what the norms put out
};

}  // namespace numsim
