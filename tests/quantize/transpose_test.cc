#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "numsim/quantize/internal/transpose_simd.h"
#include "tests/reference/inputs.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

constexpr size_t kSizes[] = {0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 80, 130, 200};

// Rows are longer than what is transposed: the elements between must not be written.
template <typename T>
void CheckTranspose(size_t rows, size_t cols) {
  const size_t in_stride = cols + 3, out_stride = rows + 5;
  constexpr T kUntouched = 0x5A;
  oracle::TestRandom random(rows * 1000 + cols);
  std::vector<T> in(rows * in_stride);
  for (T& x : in) x = static_cast<T>(random.Next32());
  std::vector<T> want(cols * out_stride, kUntouched), out = want;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) want[c * out_stride + r] = in[r * in_stride + c];
  }
  Transpose(in.data(), in_stride, rows, cols, out.data(), out_stride);
  EXPECT_EQ(out, want) << fmt::format("{} x {} of {} bytes", rows, cols, sizeof(T));
}

TEST(Transpose, MovesEveryElementAndTouchesNoOther) {
  WithEachBackend([] {
    for (const size_t rows : kSizes) {
      for (const size_t cols : kSizes) {
        CheckTranspose<uint8_t>(rows, cols);
        CheckTranspose<uint16_t>(rows, cols);
      }
    }
  });
}

}  // namespace
}  // namespace numsim
