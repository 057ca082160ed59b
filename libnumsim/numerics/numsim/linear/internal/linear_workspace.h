// The working memory of linear layers.
#pragma once

#include <deque>

#include "numsim/linear/internal/linear_operand.h"

namespace numsim {

// Memory reused by later calls. Its content between calls has no meaning.
struct LinearWorkspace {
  QuantizedMatrix operands[6];    // indexed by LinearOperand
  FloatBuffer values;             // the dequantised X
  Buffer<float> rescaled;         // X times its channels
  Buffer<float> dequantized_w;    // W from its codes of the forward GEMM
  ContainedOperand contained[2];  // of the two operands of a GEMM
  Buffer<float> transformed[2];   // the same, after a Hadamard transform
};

// The workspaces of a place: one for all layers. A call within a call, such as one of an observer,
// takes another one.
class LinearWorkspaces {
 public:
  // Returns those of a context, or those of the calling thread for the host.
  static LinearWorkspaces& At(Place place);

  // A workspace while a call uses it.
  class Lease {
   public:
    explicit Lease(Place place) : owner_(At(place)), index_(owner_.used_++) {
      if (index_ == owner_.all_.size()) owner_.all_.emplace_back();
    }
    ~Lease() { --owner_.used_; }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    LinearWorkspace& operator*() const { return owner_.all_[index_]; }

   private:
    LinearWorkspaces& owner_;
    size_t index_;
  };

 private:
  std::deque<LinearWorkspace> all_;
  size_t used_ = 0;
};

}  // namespace numsim
