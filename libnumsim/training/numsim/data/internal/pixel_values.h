// Conversion of 8-bit pixels to values with mean about 0 and standard deviation about 1.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace numsim {

// Maps each level of each channel to (level - mean) / deviation, where mean and standard deviation
// are taken per channel over all given pixels (channels last). Computed in float64 and rounded to
// float32. A channel with a single level uses deviation 1.
class PixelValues {
 public:
  // Requires at least one pixel, and pixels.size() to be a multiple of `channels`.
  PixelValues(std::span<const uint8_t> pixels, size_t channels);

  // Writes the value of each element of `pixels`. Requires spans of equal size, which must be a
  // multiple of the number of channels.
  void Write(std::span<const uint8_t> pixels, std::span<float> values) const;

 private:
  size_t channels_;
  std::vector<float> table_;  // channels x 256
};

}  // namespace numsim
