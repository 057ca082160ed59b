// Sums of parts of the inner dimension as a device makes them, run on the host: the order of the parts,
// and the kernel that adds, scales and stores. The results are those of Gemm, bit for bit.
#include "numsim/gemm/internal/gemm_inner_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>
#include <vector>

#include "numsim/cast/cast.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/internal/gemm_store_kernel.h"
#include "tests/support/gemm_problem.h"

namespace numsim {
namespace {

using cuda::CoverInParts;
using cuda::InnerParts;
using cuda::PartSlots;
using cuda::StoreKernel;

// Every part is multiplied once, and the sums are added in order, whatever the memory.
TEST(InnerParts, AreCoveredInOrderForEveryMemory) {
  for (size_t inner = 1; inner <= 40; ++inner) {
    for (size_t length = 1; length < inner; ++length) {
      for (size_t slots = 2; slots <= 9; ++slots) {
        SCOPED_TRACE(fmt::format("{} in parts of {}, {} slots", inner, length, slots));
        std::vector<std::vector<size_t>> memory(
            slots);  // the products that a slot holds the sum of
        std::vector<size_t> result;
        const auto multiply = [&](const InnerParts& parts, size_t slot) {
          ASSERT_GE(parts.count, 1u);
          ASSERT_LE(slot + parts.count, slots);
          for (size_t p = 0; p < parts.count; ++p) {
            EXPECT_EQ((parts.first + p * parts.length) % length, 0u);
            memory[slot + p].clear();
            for (size_t k = 0; k < parts.length; ++k) {
              memory[slot + p].push_back(parts.first + p * parts.length + k);
            }
            EXPECT_TRUE(parts.length == length || memory[slot + p].back() == inner - 1);
          }
        };
        const auto add = [&](size_t count, bool last) {
          ASSERT_TRUE(result.empty());
          ASSERT_LE(count, slots);
          std::vector<size_t> all;
          for (size_t s = 0; s < count; ++s) {
            all.insert(all.end(), memory[s].begin(), memory[s].end());
          }
          (last ? result : memory[0]) = all;
        };
        CoverInParts(inner, length, slots, multiply, add);
        ASSERT_EQ(result.size(), inner);
        for (size_t k = 0; k < inner; ++k) ASSERT_EQ(result[k], k);
      }
    }
  }
}

TEST(InnerParts, TakeBoundedMemory) {
  EXPECT_EQ(PartSlots(65536, 8192, 4 * 768 * 2304), 8u);
  EXPECT_EQ(PartSlots(8193, 8192, 4 * 768 * 2304), 2u);
  EXPECT_EQ(PartSlots(65536, 8192, 4 * 4096 * 4096), 4u);   // 256 MiB
  EXPECT_EQ(PartSlots(65536, 8192, 4 * 32768 * 4096), 2u);  // more, for the least
  EXPECT_EQ(PartSlots(size_t{1} << 30, 16, 4 * 16), 65535u);
}

// Scales of all signs, or none.
void PutScales(Factor& factor, size_t kind, oracle::TestRandom& random) {
  if (kind == 0) return factor.SetScales({}, {});
  std::vector<float> scales(kind == 1 ? 1 : factor.rows());
  for (float& x : scales) x = static_cast<float>(UnitRandom(random)) * 3 - 1;
  factor.SetScales(scales, {.row_stride = kind == 1 ? 0u : 1u});
}

cuda::StoreScales ScalesOf(const GemmOperand& x) {
  return {x.scales.data.data, x.scales.row_stride};
}

// The bits of an element that is stored.
uint32_t BitsOf(float x) { return std::bit_cast<uint32_t>(x); }
uint32_t BitsOf(uint16_t code) { return code; }
template <typename Out>
uint32_t WantedBits(float value) {
  if constexpr (std::is_same_v<Out, float>) return BitsOf(value);
  return std::isnan(value) ? 0x7FC0 : Encode(kBf16, value);
}

// Runs the threads of a store in one of several orders.
template <class Kernel>
void RunStore(Kernel kernel, size_t order) {
  const size_t rows = kernel.shape.rows;
  kernel.row_step = order % 3 == 0 ? rows : order % 3 == 1 ? 1 : std::min<size_t>(rows, 3);
  const size_t threads = kernel.Threads();
  RunThreads(kernel, threads, threads / 3 * (order % 4), order % 2 == 0 ? 1 : threads - 1);
}

// Memory whose elements are aligned to 16 bytes from the first on.
template <typename T>
struct Aligned {
  explicit Aligned(size_t n) : pieces((n * sizeof(T) + 15) / 16) {}
  T* data() { return reinterpret_cast<T*>(pieces.data()); }
  struct alignas(16) Sixteen {
    T at[16 / sizeof(T)] = {};
  };
  std::vector<Sixteen> pieces;
};

// Computes a product as a device does under a mode with parts, with the CPU in place of tensor cores.
template <typename Out, size_t kWidth>
std::vector<uint32_t> ProductInParts(
    const Factor& a, const Factor& b, const AccumulationMode& mode, size_t slots, size_t order) {
  const GemmOperand left = a.Get(), right = b.Get();
  const MatrixShape shape = {a.rows(), b.rows()};
  const size_t n = shape.Elements();
  Aligned<float> sums(slots * n);
  Aligned<Out> out(n);
  AccumulationMode unsplit = mode;
  unsplit.promote = 0;
  const auto multiply = [&](const InnerParts& parts, size_t slot) {
    for (size_t p = 0; p < parts.count; ++p) {
      const auto part_of = [&](GemmOperand x) {
        x.values = x.values.Columns(parts.first + p * parts.length, parts.length);
        x.inner = parts.length;
        x.scales = {};
        return x;
      };
      Gemm(part_of(left), part_of(right), unsplit, std::span(sums.data() + (slot + p) * n, n));
    }
  };
  const float nan = std::bit_cast<float>(NanResult(mode));
  const auto add = [&](size_t count, bool last) {
    if (!last) {
      return RunStore(StoreKernel<float, float, kWidth>{.sums = sums.data(),
                                                        .stride = shape.cols,
                                                        .parts = count,
                                                        .part_stride = n,
                                                        .out = sums.data(),
                                                        .shape = shape,
                                                        .nan = nan},
                      order++);
    }
    RunStore(StoreKernel<float, Out, kWidth>{.sums = sums.data(),
                                             .stride = shape.cols,
                                             .parts = count,
                                             .part_stride = n,
                                             .out = out.data(),
                                             .shape = shape,
                                             .rows = ScalesOf(left),
                                             .columns = ScalesOf(right),
                                             .nan = nan},
             order++);
  };
  CoverInParts(a.inner(), static_cast<size_t>(mode.promote), slots, multiply, add);
  std::vector<uint32_t> bits;
  for (size_t i = 0; i < n; ++i) bits.push_back(BitsOf(out.data()[i]));
  return bits;
}

template <typename Out, size_t kWidth>
void ExpectGemm(
    const Factor& a, const Factor& b, const AccumulationMode& mode, size_t slots, size_t order) {
  const std::vector<float> values = GemmResult(a, b, mode);
  std::vector<uint32_t> want;
  for (const float x : values) want.push_back(WantedBits<Out>(x));
  EXPECT_EQ((ProductInParts<Out, kWidth>(a, b, mode, slots, order)), want)
      << ToString(mode) << ", " << slots << " slots, bytes " << sizeof(Out) << ", width " << kWidth
      << "\na: " << a.Describe() << "\nb: " << b.Describe();
}

TEST(SumsOfParts, EqualGemm) {
  oracle::TestRandom random{20261128};
  size_t count = 0;
  for (const FormatSpec& format : {kBf16, kFp16}) {
    for (const char* const name : {"trunc:25,16,16", "trunc:25,16,48", "trunc:25,16,128"}) {
      const AccumulationMode mode = ParseAccumulationMode(name);
      const auto length = static_cast<size_t>(mode.promote);
      for (const size_t inner : {length + 1, 2 * length, 5 * length - 7, 9 * length + 16}) {
        for (const size_t slots : {size_t{2}, size_t{3}, size_t{20}}) {
          const Spread spread = kSpreads[count % std::size(kSpreads)];
          Factor a = Factor::Random(format, 5, inner, spread, Side::kLeft, random);
          Factor b = Factor::Random(format, 16, inner, spread, Side::kRight, random);
          PutScales(a, count % 3, random);
          PutScales(b, count / 3 % 3, random);
          ++count;
          ExpectGemm<float, 8>(a, b, mode, slots, count);
          ExpectGemm<float, 1>(a, b, mode, slots, count);
          ExpectGemm<uint16_t, 8>(a, b, mode, slots, count);
          ExpectGemm<uint16_t, 1>(a, b, mode, slots, count);
        }
      }
    }
  }
}

// Sums whose value depends on the order in which parts are added.
TEST(SumsOfParts, DependOnTheirOrder) {
  const AccumulationMode mode = ParseAccumulationMode("trunc:25,16,16");
  const uint32_t one = Encode(kBf16, 1.0f);
  Factor a(kBf16, 1, 48, std::vector<uint32_t>(48, 0)),
      b(kBf16, 1, 48, std::vector<uint32_t>(48, one));
  a.SetCode(0, 0, Encode(kBf16, 0x1p24f));
  a.SetCode(0, 16, one);
  a.SetCode(0, 32, one);
  EXPECT_EQ(GemmResult(a, b, mode)[0], 0x1p24f);
  ExpectGemm<float, 1>(a, b, mode, 3, 0);
  std::swap(a, b);
  ExpectGemm<float, 1>(a, b, mode, 2, 0);
  Factor c(kBf16, 1, 48, std::vector<uint32_t>(48, 0));
  c.SetCode(0, 0, one);
  c.SetCode(0, 16, one);
  c.SetCode(0, 32, Encode(kBf16, 0x1p24f));
  EXPECT_EQ(GemmResult(c, a, mode)[0], 0x1p24f + 2);
  ExpectGemm<float, 1>(c, a, mode, 3, 0);
}

// A mode with parts is the one without for sums that are not longer than a part.
TEST(SumsOfParts, OfOnePartAreUnsplit) {
  oracle::TestRandom random{7};
  for (const size_t inner : {size_t{1}, size_t{47}, size_t{48}}) {
    for (const Spread spread : kSpreads) {
      const Factor a = Factor::Random(kBf16, 5, inner, spread, Side::kLeft, random);
      const Factor b = Factor::Random(kBf16, 6, inner, spread, Side::kRight, random);
      EXPECT_TRUE(SameMatrix(GemmResult(a, b, ParseAccumulationMode("trunc:25,16,48")),
                             GemmResult(a, b, ParseAccumulationMode("hopper-bf16")),
                             b.rows()));
    }
  }
}

template <typename Out, size_t kWidth>
void ExpectScaledIntegers(const Factor& a, const Factor& b, size_t order) {
  const GemmOperand left = a.Get(), right = b.Get();
  const MatrixShape shape = {a.rows(), b.rows()};
  Aligned<int32_t> sums(shape.Elements());
  Aligned<Out> out(shape.Elements());
  ASSERT_TRUE(GemmInt32(left, right, MatrixSpan<int32_t>(sums.data(), shape)));
  RunStore(StoreKernel<int32_t, Out, kWidth>{.sums = sums.data(),
                                             .stride = shape.cols,
                                             .out = out.data(),
                                             .shape = shape,
                                             .rows = ScalesOf(left),
                                             .columns = ScalesOf(right),
                                             .nan = std::bit_cast<float>(0x7FC00000u)},
           order);
  const std::vector<float> want = GemmResult(a, b, AccumulationMode{});
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(BitsOf(out.data()[i]), WantedBits<Out>(want[i])) << i << " " << a.Describe();
  }
}

TEST(StoredSums, OfIntegersEqualGemm) {
  oracle::TestRandom random{8};
  for (size_t count = 0; count < 18; ++count) {
    Factor a = Factor::Random(kInt8, 7, 100, Spread::kAllCodes, Side::kLeft, random);
    Factor b = Factor::Random(kInt8, 24, 100, Spread::kAllCodes, Side::kRight, random);
    PutScales(a, count % 3, random);
    PutScales(b, count / 3 % 3, random);
    a.Store(Storage::kCodes, false);
    b.Store(Storage::kCodes, false);
    ExpectScaledIntegers<float, 8>(a, b, count);
    ExpectScaledIntegers<float, 1>(a, b, count);
    ExpectScaledIntegers<uint16_t, 8>(a, b, count);
    ExpectScaledIntegers<uint16_t, 1>(a, b, count);
  }
}

TEST(StoredSums, EveryRowHasAThread) {
  for (const size_t rows : std::vector<size_t>{1, 2, 7, 8, 9, 768, 65536}) {
    for (const size_t groups : std::vector<size_t>{1, 96, 5000, 400000}) {
      const size_t step = cuda::RowStep(rows, groups);
      EXPECT_GE(step, (rows + 7) / 8);
      EXPECT_LE(step, rows);
    }
  }
  EXPECT_EQ(cuda::RowStep(768, 96), 768u);
  EXPECT_EQ(cuda::RowStep(65536, 512), 8192u);
}

}  // namespace
}  // namespace numsim
