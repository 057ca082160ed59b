// The arrays of a quantised matrix on the host, for comparisons.
#pragma once

#include <vector>

#include "numsim/quantize/quantized_matrix.h"

namespace numsim {

inline std::vector<uint8_t> Codes8Of(const QuantizedMatrix& matrix) {
  return {matrix.Codes8().begin(), matrix.Codes8().end()};
}
inline std::vector<uint16_t> Codes16Of(const QuantizedMatrix& matrix) {
  return {matrix.Codes16().begin(), matrix.Codes16().end()};
}
inline std::vector<float> ScalesOf(const QuantizedMatrix& matrix) {
  return {matrix.Scales().begin(), matrix.Scales().end()};
}

}  // namespace numsim
