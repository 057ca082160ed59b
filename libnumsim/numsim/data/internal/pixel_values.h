// Pixels of 8 bits as values of about mean 0 and deviation 1.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace numsim {

// A value for each level of each channel: (level - mean) / deviation, with the mean and standard
// deviation of that channel over all pixels given (channels last), worked out in float64 and
// rounded to float32. A channel of one level alone has deviation 1.
class PixelValues {
 public:
  // Requires pixels of whole groups of `channels`, at least one.
  PixelValues(std::span<const uint8_t> pixels, size_t channels);

  // Requires spans of one size, whole groups of channels.
  void Write(std::span<const uint8_t> pixels, std::span<float> values) const;

 private:
  size_t channels_;
  std::vector<float> table_;  // channels x 256
};

}  // namespace numsim
