// The MLP of a transformer's block, forward and backward.
#pragma once

#include <cstdint>
#include <string>

#include "numsim/models/internal/linear_factory.h"

namespace numsim {

enum class MlpKind : uint8_t {
  kSwiglu,  // down(swish(gate) * up) [SwiGLU]
  kGelu,    // down(gelu(up)) [GELU]
};

struct MlpOptions {
  MlpKind kind = MlpKind::kSwiglu;
  size_t width = 0, hidden = 0;
  size_t rows = 0;  // that one example makes, at most
  bool biases = false;
  Initial up{}, down{};  // `up`: of the gate too
};

// Gradients that live within one Backward. Layers of one shape may share it.
template <typename T>
struct MlpScratch {
  explicit MlpScratch(Place place) : hidden(place), up(place) {}
  Buffer<T> hidden, up;
};

// Linear layers: kSwiglu NAME.gate_up (width -> 2 hidden, the gate's columns first), kGelu NAME.up
// (width -> hidden); NAME.down (hidden -> width). Points: those of these layers, and NAME.hidden,
// what the activation puts out.
template <typename T>
class MlpLayer {
 public:
  MlpLayer(LinearFactory<T>& linears, const std::string& name, const MlpOptions& options);

  // x, y: rows x width, contiguous; they do not overlap. The caller keeps x as it is until
  // Backward.
  void Forward(const Pass<T>& pass, In<T> x, MatrixSpan<T> y);
  // Writes the gradients of the parameters and dx, which does not overlap g. g may be changed by an
  // observer.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g, MatrixSpan<T> dx, MlpScratch<T>& scratch);

 private:
  std::string hidden_name_;
  MlpOptions options_;
  LinearLayer<T>& up_;
  LinearLayer<T>& down_;
  Buffer<T> up_output_, hidden_;
};

}  // namespace numsim
