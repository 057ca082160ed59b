// Hadamard transforms against their definition: by halves in the stated order, and as a dense matrix.
#include "numsim/quantize/hadamard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/parallel.h"
#include "tests/reference/inputs.h"
#include "tests/reference/linear/naive_hadamard.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

constexpr uint16_t kMask = 0xD7E8;  // that of [TransformerEngine]

// Numbers of many binades, with zeros of both signs.
naive::Matrix Wide(size_t rows, size_t cols, uint64_t seed) {
  oracle::TestRandom random(seed);
  naive::Matrix m{rows, cols, std::vector<float>(rows * cols)};
  for (float& x : m.data) {
    const uint32_t bits = random.Next32();
    x = std::bit_cast<float>((bits & 0x807FFFFFu) | (117 + (bits >> 23 & 15)) << 23);
    if ((bits & 0x3F000000u) == 0) x = std::copysign(0.0f, x);
  }
  return m;
}

std::vector<float> Transformed(const naive::Matrix& in,
                               size_t size,
                               const HadamardSigns& signs,
                               HadamardAxis axis) {
  std::vector<float> out(in.data.size(), 7.0f);
  HadamardTransform(in.data, {in.rows, in.cols}, size, signs, axis, out);
  return out;
}

void ExpectBits(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
        << "element " << i << " is " << actual[i] << ", not " << expected[i];
  }
}

void ExpectDefinition(const naive::Matrix& rows, const naive::Matrix& columns, size_t size) {
  SCOPED_TRACE(size);
  const naive::Negated by_mask = naive::ByMask(kMask);
  ExpectBits(Transformed(rows, size, RepeatedSigns(kMask), HadamardAxis::kRows),
             naive::HadamardRows(rows, size, by_mask).data);
  const RandomStream stream{0x123456789ABCDEF0, 0x1122334455667788};
  ExpectBits(Transformed(columns, size, DrawSigns(stream), HadamardAxis::kColumns),
             naive::HadamardColumns(columns, size, naive::ByStream(stream)).data);
}

// Numbers of blocks and columns on both sides of a vector's, a thread's and a piece of work's.
TEST(Hadamard, AddsInTheStatedOrderOnEveryBackend) {
  WithEachBackend([] {
    for (const size_t size : kHadamardSizes) {
      for (const size_t n : {1, 2, 3, 5, 15, 16, 17, 33, 259}) {
        ExpectDefinition(Wide(n, size * (n % 3 + 1), n), Wide(2 * size, n, 100 + n), size);
      }
    }
  });
}

TEST(Hadamard, ThreadsChangeNothing) {
  const ExecutionState state;
  for (const int threads : {1, 2, 3, 8}) {
    SetThreadCount(threads);
    ExpectDefinition(Wide(130, 512, 3), Wide(256, 700, 4), 16);
    ExpectDefinition(Wide(130, 512, 3), Wide(256, 700, 4), 128);
  }
}

TEST(Hadamard, NanAndInfinityFillTheirBlockOnEveryBackend) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  WithEachBackend([] {
    for (const size_t size : kHadamardSizes) {
      naive::Matrix rows = Wide(4, 3 * size, 5), columns = Wide(3 * size, 37, 6);
      rows.data[size + 2] = std::bit_cast<float>(0xFFC12345u);
      rows.data[3 * size + 1] = -kInfinity;
      rows.data[6 * size + 1] = rows.data[6 * size + 9] = kInfinity;
      rows.data[9 * size + 1] = std::numeric_limits<float>::max();
      rows.data[9 * size + 2] = std::numeric_limits<float>::max();
      for (const size_t i : {0, 36, 40}) columns.data[i] = -std::nanf("5");
      columns.data[37 * size + 36] = kInfinity;
      ExpectDefinition(rows, columns, size);
      const auto out = Transformed(rows, size, {}, HadamardAxis::kRows);
      EXPECT_TRUE(std::isnan(out[size]) && std::isnan(out[2 * size - 1]));
      EXPECT_FALSE(std::isnan(out[size - 1]) || std::isnan(out[2 * size]));
    }
  });
}

TEST(Hadamard, InPlaceIsTheSame) {
  for (const HadamardAxis axis : {HadamardAxis::kRows, HadamardAxis::kColumns}) {
    naive::Matrix m = Wide(64, 96, 8);
    const std::vector<float> apart = Transformed(m, 32, RepeatedSigns(kMask), axis);
    HadamardTransform(m.data, {64, 96}, 32, RepeatedSigns(kMask), axis, m.data);
    ExpectBits(m.data, apart);
  }
}

// Entry (i, j) by the definition's parity, for every i and j and both signs. Sums of one number are
// exact, so the transform of unit vectors is the matrix itself.
TEST(Hadamard, OfUnitVectorsIsTheMatrixWhichIsOrthogonal) {
  for (const size_t size : kHadamardSizes) {
    naive::Matrix units{size, size, std::vector<float>(size * size, 0.0f)};
    for (size_t i = 0; i < size; ++i) units.data[i * size + i] = 1;
    const std::vector<float> h =
        Transformed(units, size, RepeatedSigns(kMask), HadamardAxis::kRows);
    const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) {
        const bool odd = std::popcount(i & j) % 2 == 1, negated = (kMask >> (i % 16) & 1) != 0;
        ASSERT_EQ(h[i * size + j], odd != negated ? -factor : factor) << i << ", " << j;
      }
    }
    EXPECT_NEAR(static_cast<double>(size) * factor * factor, 1.0, 1e-7);
    for (size_t i = 0; i < size; ++i) {
      for (size_t k = 0; k < size; ++k) {
        size_t equal = 0;  // all magnitudes are the same, so the product counts signs
        for (size_t j = 0; j < size; ++j) {
          equal += h[i * size + j] == h[k * size + j] ? 1 : 0;
        }
        ASSERT_EQ(equal, i == k ? size : size / 2) << size << ": " << i << ", " << k;
      }
    }
  }
}

// log2(n) roundings of sums and one of the product, each of at most 2^-24 of a sum of magnitudes.
TEST(Hadamard, ErrorIsWithinTheBoundOfItsRoundings) {
  for (const size_t size : kHadamardSizes) {
    const naive::Matrix in = Wide(50, size, 40 + size);
    const std::vector<float> out = Transformed(in, size, {}, HadamardAxis::kRows);
    const double root = std::sqrt(static_cast<double>(size));
    const double roundings = std::log2(static_cast<double>(size)) + 2;
    for (size_t r = 0; r < in.rows; ++r) {
      double magnitudes = 0;
      for (size_t i = 0; i < size; ++i) magnitudes += std::fabs(in.At(r, i));
      for (size_t j = 0; j < size; ++j) {
        double sum = 0;
        for (size_t i = 0; i < size; ++i) {
          const double x = in.At(r, i);
          sum += std::popcount(i & j) % 2 == 1 ? -x : x;
        }
        ASSERT_LE(std::fabs(out[r * size + j] - sum / root),
                  roundings * 0x1p-24 * 1.001 * magnitudes / root);
      }
    }
  }
}

// Integers are added exactly, so the product of transformed vectors is that of the vectors.
TEST(Hadamard, KeepsInnerProducts) {
  oracle::TestRandom random(9);
  for (const size_t size : {16, 64}) {
    naive::Matrix m{2, size, std::vector<float>(2 * size)};
    for (float& x : m.data) x = static_cast<float>(static_cast<int>(random.Next32() % 401) - 200);
    const auto out = Transformed(m, size, DrawSigns({5, 7}), HadamardAxis::kRows);
    double before = 0, after = 0;
    for (size_t i = 0; i < size; ++i) {
      before += static_cast<double>(m.data[i]) * static_cast<double>(m.data[size + i]);
      after += static_cast<double>(out[i]) * static_cast<double>(out[size + i]);
    }
    EXPECT_EQ(before, after);
  }
}

TEST(Hadamard, SignsAreTheMasksOrTheStreamsBits) {
  const HadamardSigns mask = RepeatedSigns(kMask), drawn = DrawSigns({11, 7});
  int negated = 0;
  for (size_t i = 0; i < 128; ++i) {
    EXPECT_EQ(mask.Negates(i), naive::ByMask(kMask)(i)) << i;
    EXPECT_EQ(drawn.Negates(i), naive::ByStream({11, 7})(i)) << i;
    negated += drawn.Negates(i) ? 1 : 0;
  }
  EXPECT_GT(negated, 40);
  EXPECT_LT(negated, 88);
  EXPECT_FALSE(drawn == DrawSigns({11, 8}));
  EXPECT_FALSE(drawn == DrawSigns({12, 7}));
}

TEST(Hadamard, RefusesWhatAreNoWholeBlocks) {
  std::vector<float> m(24 * 16);
  const auto transform = [&](size_t size, HadamardAxis axis) {
    return ErrorOf([&] { HadamardTransform(m, {24, 16}, size, {}, axis, m); });
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(transform(16, HadamardAxis::kColumns),
              HasSubstr("columns of 24 elements, expected a multiple of 16"));
  EXPECT_THAT(transform(32, HadamardAxis::kRows),
              HasSubstr("rows of 16 elements, expected a multiple of 32"));
  EXPECT_THAT(transform(8, HadamardAxis::kRows), HasSubstr("expected 16, 32, 64 or 128"));
  EXPECT_THAT(transform(48, HadamardAxis::kRows), HasSubstr("blocks of 48 elements"));
  EXPECT_THAT(ErrorOf([&] {
                HadamardTransform(m, {24, 16}, 16, {}, HadamardAxis::kRows, std::span(m).first(16));
              }),
              HasSubstr("'out'"));
  HadamardTransform({}, {0, 16}, 16, {}, HadamardAxis::kColumns, {});  // no columns to speak of
}

}  // namespace
}  // namespace numsim
