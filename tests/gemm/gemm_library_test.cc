// Products by the linear algebra library: small integers, whose sums are exact
// in any order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cfenv>
#include <cmath>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/internal/gemm_parts.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

// Puts back the number of threads after each test.
class LibraryProducts : public testing::Test {
 protected:
  ~LibraryProducts() override { SetThreadCount(before_); }

 private:
  int before_ = ThreadCount();
};

// Element (row, k) of a factor: -4 .. 4, different for each `seed`.
int Value(size_t row, size_t k, size_t seed) {
  return static_cast<int>((row * 7 + k * 5 + row * k + seed) % 9) - 4;
}

float AsElement(int value, float) { return static_cast<float>(value); }
uint16_t AsElement(int value, uint16_t) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
}

template <typename Element>
std::vector<Element> Stored(size_t rows, size_t inner, bool transposed, size_t seed) {
  std::vector<Element> x(rows * inner);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < inner; ++k) {
      x[transposed ? k * rows + r : r * inner + k] = AsElement(Value(r, k, seed), Element{});
    }
  }
  return x;
}

struct Size {
  size_t rows_a, rows_b, inner;
};

constexpr Size kSizes[] = {{1, 1, 1},
                           {1, 1, 5},
                           {4, 1, 1},
                           {1, 6, 3},
                           {5, 1, 7},
                           {3, 4, 1},
                           {2, 3, 4},
                           {33, 17, 65},
                           {128, 96, 64}};

std::vector<float> Expected(const Size& size) {
  std::vector<float> out(size.rows_a * size.rows_b);
  for (size_t i = 0; i < size.rows_a; ++i) {
    for (size_t j = 0; j < size.rows_b; ++j) {
      int sum = 0;
      for (size_t k = 0; k < size.inner; ++k) sum += Value(i, k, 1) * Value(j, k, 2);
      out[i * size.rows_b + j] = static_cast<float>(sum);
    }
  }
  return out;
}

template <typename Element>
std::vector<float> Result(const Size& size, bool transposed_a, bool transposed_b) {
  const auto a = Stored<Element>(size.rows_a, size.inner, transposed_a, 1);
  const auto b = Stored<Element>(size.rows_b, size.inner, transposed_b, 2);
  std::vector<float> out(size.rows_a * size.rows_b, NAN);
  LibraryProduct(LibraryFactor<Element>{a.data(), size.rows_a, size.inner, transposed_a},
                 LibraryFactor<Element>{b.data(), size.rows_b, size.inner, transposed_b},
                 out.data());
  return out;
}

template <typename Element>
void ExpectEveryStorageAndThreadCount() {
  for (const int threads : {1, 2, 3}) {
    SetThreadCount(threads);
    for (const Size& size : kSizes) {
      for (const bool transposed_a : {false, true}) {
        for (const bool transposed_b : {false, true}) {
          EXPECT_EQ(Result<Element>(size, transposed_a, transposed_b), Expected(size))
              << size.rows_a << " x " << size.rows_b << " x " << size.inner << " " << transposed_a
              << transposed_b << ", threads " << threads;
        }
      }
    }
  }
}

TEST_F(LibraryProducts, OfFloat32EqualTheSumsInEveryStorage) {
  ExpectEveryStorageAndThreadCount<float>();
}

TEST_F(LibraryProducts, OfBf16EqualTheSumsInEveryStorage) {
  ExpectEveryStorageAndThreadCount<uint16_t>();
}

TEST_F(LibraryProducts, WidenedEqualTheSumsOfBf16) {
  const Size size{5, 6, 7};
  const auto a = Stored<uint16_t>(size.rows_a, size.inner, true, 1);
  const auto b = Stored<uint16_t>(size.rows_b, size.inner, false, 2);
  std::vector<float> out(size.rows_a * size.rows_b, NAN);
  WidenedProduct({a.data(), size.rows_a, size.inner, true},
                 {b.data(), size.rows_b, size.inner, false},
                 out.data());
  EXPECT_EQ(out, Expected(size));
}

TEST_F(LibraryProducts, RunSideBySideInTasks) {
  SetThreadCount(4);
  constexpr size_t kTasks = 64;
  std::atomic<int> wrong = 0;
  ParallelTasks(kTasks, [&](size_t task) {
    const Size& size = kSizes[task % std::size(kSizes)];
    const bool same = task % 2 == 0
                          ? Result<float>(size, task % 3 == 0, task % 5 == 0) == Expected(size)
                          : Result<uint16_t>(size, task % 3 == 0, task % 5 == 0) == Expected(size);
    if (!same) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
}

TEST_F(LibraryProducts, KeepSubnormalsOfFloat32) {
  const std::vector<float> a = {0x1p-140f, 0x1p-70f}, b = {1.0f, 0x1p-70f};
  float out = 0;
  LibraryProduct(LibraryFactor<float>{a.data(), 1, 2}, {b.data(), 1, 2}, &out);
  EXPECT_EQ(out, 0x1p-139f);
}

TEST_F(LibraryProducts, LeaveTheRoundingModeAndItsSubnormals) {
  std::fesetround(FE_UPWARD);
  Result<float>({33, 17, 65}, false, true);
  Result<uint16_t>({33, 17, 65}, false, true);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  volatile float tiny = 0x1p-140f;
  EXPECT_EQ(tiny * 2.0f, 0x1p-139f);
}

TEST_F(LibraryProducts, NameTheLibraryAndItsVersion) {
  const std::string name = GemmLibrary();
  EXPECT_TRUE(name.starts_with("oneDNN ") || name.starts_with("Eigen ")) << name;
  EXPECT_THAT(name, HasSubstr("."));
}

}  // namespace
}  // namespace numsim
