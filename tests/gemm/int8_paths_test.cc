// Each way of adding int8 products up by itself, against integers: Gemm takes only the fastest
// one that the processor has.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "numsim/backend/backend.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/internal/gemm_paths.h"
#include "numsim/gemm/internal/gemm_paths_int8.h"
#include "numsim/gemm/internal/gemm_tiles.h"
#include "tests/reference/inputs.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

// An operand of random int8 codes, the lowest among them, stored as rows x inner or transposed.
struct CodeFactor {
  CodeFactor(size_t rows, size_t inner, bool transposed, oracle::TestRandom& random)
      : codes(rows * inner) {
    for (uint8_t& code : codes) {
      code = random.Below(8) == 0 ? uint8_t{0x80} : static_cast<uint8_t>(random.Below(256));
    }
    operand.format = NamedFormat("int8");
    operand.codes8 = codes;
    operand.rows = rows;
    operand.inner = inner;
    operand.transposed = transposed;
  }

  int64_t At(size_t row, size_t k) const {
    const size_t at = operand.transposed ? k * operand.rows + row : row * operand.inner + k;
    return static_cast<int8_t>(codes[at]);
  }

  std::vector<uint8_t> codes;
  GemmOperand operand;
};

struct ProductShape {
  size_t rows, cols, inner;
};
// Around the sizes of tiles, steps and blocks.
constexpr ProductShape kProductShapes[] = {{1, 1, 1},
                                           {31, 33, 63},
                                           {32, 32, 64},
                                           {33, 65, 65},
                                           {70, 12, 130},
                                           {13, 97, 1025},
                                           {40, 40, 2048},
                                           {37, 66, 2049},
                                           {35, 34, 4200},
                                           {1100, 40, 70}};  // two threads pack all of B

template <class Path>
void ExpectIntegerSums(const auto& make_path) {
  const ExecutionState state;
  SetThreadCount(2);
  oracle::TestRandom random(1);
  for (const ProductShape& shape : kProductShapes) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      const CodeFactor a(shape.rows, shape.inner, (transposed & 1) != 0, random);
      const CodeFactor b(shape.cols, shape.inner, (transposed & 2) != 0, random);
      std::vector<double> sums(shape.rows * shape.cols, -1);
      Path path = make_path(a.operand, b.operand);
      const auto store = [&](const TilePlace& at, const auto* tile) {
        for (size_t i = 0; i < at.rows; ++i) {
          for (size_t j = 0; j < at.cols; ++j) {
            sums[(at.row + i) * shape.cols + at.col + j] =
                static_cast<double>(tile[i * at.stride + j]);
          }
        }
      };
      MultiplyTiles(path, shape.rows, shape.cols, {0, shape.inner}, store);
      for (size_t i = 0; i < shape.rows; ++i) {
        for (size_t j = 0; j < shape.cols; ++j) {
          int64_t sum = 0;
          for (size_t k = 0; k < shape.inner; ++k) sum += a.At(i, k) * b.At(j, k);
          ASSERT_EQ(sums[i * shape.cols + j], static_cast<double>(sum))
              << shape.rows << " x " << shape.cols << " x " << shape.inner << ", transposed "
              << transposed << ", element (" << i << ", " << j << ")";
        }
      }
    }
  }
}

template <class Path>
void ExpectIntegerSums() {
  ExpectIntegerSums<Path>([](const GemmOperand& a, const GemmOperand& b) { return Path(a, b); });
}

TEST(Int8Path, InFloat32) {
  if (UsesScalarReference()) GTEST_SKIP() << "the scalar backend has no tiles";
  using Path = Float32Path<double>;
  ExpectIntegerSums<Path>(
      [](const GemmOperand& a, const GemmOperand& b) { return Path(a, b, 1024); });
}

TEST(Int8Path, ByVnni) {
  if (!HasVnniTile()) GTEST_SKIP() << "this processor has no AVX-512 VNNI";
  ExpectIntegerSums<VnniPath<int32_t>>();
  ExpectIntegerSums<VnniPath<double>>();
}

TEST(Int8Path, ByAmx) {
  if (!HasAmxTile()) GTEST_SKIP() << "this processor has no AMX";
  ExpectIntegerSums<AmxPath<int32_t>>();
  ExpectIntegerSums<AmxPath<double>>();
}

// The panels for AMX on any processor, byte by byte.
TEST(Int8Path, StepsOfAmx) {
  oracle::TestRandom random(2);
  constexpr size_t kWidth = 32;
  for (const ProductShape& shape : kProductShapes) {
    if (shape.inner > 2050) continue;
    for (const bool transposed : {false, true}) {
      const CodeFactor a(shape.rows, shape.inner, transposed, random);
      const InnerRange range{shape.inner / 3, shape.inner};
      const size_t steps = (range.Size() + kAmxDepth - 1) / kAmxDepth;
      const size_t strips = Strips(shape.rows, kWidth), size = steps * kWidth * kAmxDepth;
      std::vector<uint8_t> panels(strips * size, 0xEE);
      PackInt8Steps(a.operand, kWidth, 0, strips, range, panels.data(), size);
      for (size_t i = 0; i < panels.size(); ++i) {
        const size_t row = i / size * kWidth + i % (kWidth * kAmxDepth) / kAmxDepth;
        const size_t k = range.begin + i % size / (kWidth * kAmxDepth) * kAmxDepth + i % kAmxDepth;
        const int64_t expected = row < shape.rows && k < range.end ? a.At(row, k) : 0;
        ASSERT_EQ(static_cast<int8_t>(panels[i]), expected) << "byte " << i;
      }
    }
  }
}

}  // namespace
}  // namespace numsim
