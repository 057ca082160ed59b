#include <span>
#include <vector>

#include "numsim/cast/cast.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/internal/gemm_parts.h"

namespace numsim {

void WidenedProduct(const LibraryFactor<uint16_t>& a,
                    const LibraryFactor<uint16_t>& b,
                    float* out) {
  const size_t size_a = a.rows * a.inner, size_b = b.rows * b.inner;
  std::vector<float> values(size_a + size_b);
  const std::span<float> values_a = std::span(values).first(size_a);
  const std::span<float> values_b = std::span(values).subspan(size_a);
  Decode(kBf16, std::span(a.data, size_a), values_a);
  Decode(kBf16, std::span(b.data, size_b), values_b);
  LibraryProduct(LibraryFactor<float>{values_a.data(), a.rows, a.inner, a.transposed},
                 LibraryFactor<float>{values_b.data(), b.rows, b.inner, b.transposed},
                 out);
}

}  // namespace numsim
