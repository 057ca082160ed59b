#include "numsim/data/internal/split.h"

#include <algorithm>

#include "numsim/base/error.h"

namespace numsim {

size_t TrainShare(size_t size, double valid_share) {
  NUMSIM_CHECK(size >= 2 && valid_share >= 0 && valid_share <= 1, "{} of {}", valid_share, size);
  const auto train = static_cast<size_t>((1 - valid_share) * static_cast<double>(size));
  return std::clamp<size_t>(train, 1, size - 1);
}

}  // namespace numsim
