// Directions that an optimiser moves weights in, made from gradients: the update u of
// update_rule.h. State and arithmetic are float32: fl is the processor's rounding to nearest even
// after every operation, in the order written here, so the bits are the same everywhere. A NaN or
// infinity in a gradient goes into the state of its element and stays there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace numsim {

// Heavy-ball momentum [Polyak]. m, zero at first, is
//   m' = fl(fl(beta m) + g)                    plain: sums gradients, a steady one 1/(1 -
//   beta)-fold m' = fl(fl(beta m) + fl(fl(1 - beta) g))   damped: an average of gradients
// and u = -m'.
class Momentum {
 public:
  struct Options {
    float beta = 0.9f;  // [0, 1); 0: u = -g
    bool damped = false;
  };

  Momentum(size_t n, const Options& options);

  // Takes the gradient g of the next step and writes u. Requires lengths n; update may be gradient.
  void Next(std::span<const float> gradient, std::span<float> update) noexcept;

  std::span<const float> Mean() const { return mean_; }  // m

 private:
  Options options_;
  std::vector<float> mean_;
};

// Adam [Adam]: the average gradient over the root of the average square, with the bias of averages
// that start at zero taken out. With m and v zero at first, and t = 1, 2, ... the step,
//   m' = fl(fl(beta1 m) + fl(fl(1 - beta1) g))
//   v' = fl(fl(beta2 v) + fl(fl(1 - beta2) fl(g g)))
//   M  = fl(m' / c1),  V = fl(v' / c2)
//   u  = -fl(M / fl(fl(sqrt V) + epsilon))
// where c = fl(1 - beta^t), the power and the difference in float64, the power by t products.
// The first u is g / (|g| + epsilon) but for rounding: about 1 in magnitude, whatever g.
class Adam {
 public:
  struct Options {
    float beta1 = 0.9f;     // [0, 1)
    float beta2 = 0.999f;   // [0, 1)
    float epsilon = 1e-8f;  // >= 0 and finite; 0 makes u NaN where v is zero
  };

  Adam(size_t n, const Options& options);

  // As Momentum's.
  void Next(std::span<const float> gradient, std::span<float> update) noexcept;

  std::span<const float> Mean() const { return mean_; }      // m
  std::span<const float> Square() const { return square_; }  // v
  uint64_t Steps() const { return steps_; }                  // t of the last step

 private:
  Options options_;
  std::vector<float> mean_, square_;
  double power1_ = 1, power2_ = 1;  // beta^t
  uint64_t steps_ = 0;
};

}  // namespace numsim
