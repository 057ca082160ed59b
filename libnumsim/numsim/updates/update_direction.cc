#include "numsim/updates/update_direction.h"

#include <cmath>

#include "numsim/base/error.h"

namespace numsim {
namespace {

bool IsDecay(float beta) { return beta >= 0 && beta < 1; }

void CheckLengths(size_t state, size_t gradient, size_t update) {
  NUMSIM_CHECK(state == gradient && state == update,
               "state of {}, gradient of {}, update of {} elements",
               state,
               gradient,
               update);
}

}  // namespace

Momentum::Momentum(size_t n, const Options& options) : options_(options), mean_(n) {
  NUMSIM_CHECK(IsDecay(options.beta), "beta {}", options.beta);
}

void Momentum::Next(std::span<const float> gradient, std::span<float> update) noexcept {
  CheckLengths(mean_.size(), gradient.size(), update.size());
  const float beta = options_.beta;
  const float share = options_.damped ? 1.0f - beta : 1.0f;
  for (size_t i = 0; i < mean_.size(); ++i) {
    const float m = beta * mean_[i] + share * gradient[i];
    mean_[i] = m;
    update[i] = -m;
  }
}

Adam::Adam(size_t n, const Options& options) : options_(options), mean_(n), square_(n) {
  NUMSIM_CHECK(IsDecay(options.beta1) && IsDecay(options.beta2),
               "beta1 {}, beta2 {}",
               options.beta1,
               options.beta2);
  NUMSIM_CHECK(options.epsilon >= 0 && std::isfinite(options.epsilon), "{}", options.epsilon);
}

void Adam::Next(std::span<const float> gradient, std::span<float> update) noexcept {
  CheckLengths(mean_.size(), gradient.size(), update.size());
  ++steps_;
  power1_ *= static_cast<double>(options_.beta1);
  power2_ *= static_cast<double>(options_.beta2);
  const auto correction1 = static_cast<float>(1 - power1_);
  const auto correction2 = static_cast<float>(1 - power2_);
  const float beta1 = options_.beta1, share1 = 1.0f - beta1;
  const float beta2 = options_.beta2, share2 = 1.0f - beta2;
  for (size_t i = 0; i < mean_.size(); ++i) {
    const float g = gradient[i];
    const float m = beta1 * mean_[i] + share1 * g;
    const float v = beta2 * square_[i] + share2 * (g * g);
    mean_[i] = m;
    square_[i] = v;
    update[i] = -((m / correction1) / (std::sqrt(v / correction2) + options_.epsilon));
  }
}

}  // namespace numsim
