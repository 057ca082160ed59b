#include "numsim/data/internal/pixel_values.h"

#include <array>
#include <cmath>

#include "numsim/base/error.h"

namespace numsim {
namespace {

constexpr size_t kLevels = 256;

struct Moments {
  double mean = 0, deviation = 1;
};

// Returns the moments of levels with the given counts. The sums are integers, so they are exact in
// any order.
Moments MomentsOf(std::span<const uint64_t> histogram) {
  uint64_t count = 0, sum = 0, squares = 0;
  for (uint64_t level = 0; level < kLevels; ++level) {
    count += histogram[level];
    sum += histogram[level] * level;
    squares += histogram[level] * level * level;
  }
  const auto n = static_cast<double>(count);
  const double mean = static_cast<double>(sum) / n;
  const double variance = static_cast<double>(squares) / n - mean * mean;
  // A variance this small is only rounding error: the channel has a single level.
  return {mean, variance > 1e-6 ? std::sqrt(variance) : 1};
}

}  // namespace

PixelValues::PixelValues(std::span<const uint8_t> pixels, size_t channels) : channels_(channels) {
  NUMSIM_CHECK(channels >= 1 && !pixels.empty() && pixels.size() % channels == 0,
               "{} bytes of {} channels",
               pixels.size(),
               channels);
  std::vector<uint64_t> histograms(channels * kLevels);
  for (size_t i = 0; i < pixels.size(); i += channels) {
    for (size_t c = 0; c < channels; ++c) ++histograms[c * kLevels + pixels[i + c]];
  }
  table_.resize(channels * kLevels);
  for (size_t c = 0; c < channels; ++c) {
    const Moments moments = MomentsOf(std::span(histograms).subspan(c * kLevels, kLevels));
    for (size_t level = 0; level < kLevels; ++level) {
      table_[c * kLevels + level] =
          static_cast<float>((static_cast<double>(level) - moments.mean) / moments.deviation);
    }
  }
}

void PixelValues::Write(std::span<const uint8_t> pixels, std::span<float> values) const {
  NUMSIM_CHECK(pixels.size() == values.size() && pixels.size() % channels_ == 0,
               "{} pixels, {} values",
               pixels.size(),
               values.size());
  for (size_t i = 0; i < pixels.size(); i += channels_) {
    for (size_t c = 0; c < channels_; ++c) values[i + c] = table_[c * kLevels + pixels[i + c]];
  }
}

}  // namespace numsim
