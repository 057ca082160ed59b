#include "numsim/updates/shared/decay_update.h"

namespace numsim {

void DecayUpdate(
    const float* update, const float* weights, size_t n, float decay, float* decayed) noexcept {
  const double rate = static_cast<double>(decay);
  for (size_t i = 0; i < n; ++i) {
    const double pull = rate * static_cast<double>(weights[i]);
    decayed[i] = static_cast<float>(static_cast<double>(update[i]) - pull);
  }
}

}  // namespace numsim
