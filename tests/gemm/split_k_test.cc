// GEMMs from parts of the inner dimension: each product is given its part alone, and the parts of each
// result are added one at a time.
#include "numsim/gemm/split_k.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "tests/gemm/scaled_by_hand.h"
#include "tests/support/error_of.h"
#include "tests/support/gemm_problem.h"

namespace numsim {
namespace {

constexpr SplitPartition kBoth[] = {SplitPartition::kContiguous, SplitPartition::kCublasLt};

// The part of product k, or nothing.
std::optional<size_t> PartOfProduct(const SplitK& split, size_t inner, size_t k) {
  if (split.partition == SplitPartition::kContiguous) {
    size_t tiles = 0, per_part = 0;
    while (tiles * split.tile < inner) ++tiles;
    while (per_part * split.parts < tiles) ++per_part;
    return k / split.tile / per_part;
  }
  size_t length = 0;
  while (length < inner / split.parts) length += split.tile;
  const size_t part = k / length;
  return part < split.parts ? std::optional(part) : std::nullopt;
}

TEST(SplitK, EveryProductIsInItsPart) {
  size_t losing = 0;
  for (const size_t tile : {size_t{1}, size_t{3}, size_t{8}, size_t{64}}) {
    for (size_t inner = 1; inner <= 150; ++inner) {
      for (size_t parts = 1; parts <= 20; ++parts) {
        for (const SplitPartition partition : kBoth) {
          const bool cublas = partition == SplitPartition::kCublasLt;
          if (cublas && parts > inner) continue;
          const SplitK split{.parts = parts, .tile = tile, .partition = partition};
          std::vector<std::optional<size_t>> found(inner);
          for (size_t s = 0; s < parts; ++s) {
            const InnerRange part = PartOf(split, inner, s);
            ASSERT_LE(part.begin, part.end);
            ASSERT_LE(part.end, inner);
            for (size_t k = part.begin; k < part.end; ++k) {
              ASSERT_FALSE(found[k]) << "in two parts";
              found[k] = s;
            }
          }
          size_t none = 0;
          for (size_t k = 0; k < inner; ++k) {
            ASSERT_EQ(found[k], PartOfProduct(split, inner, k))
                << ToString(partition) << ": product " << k << " of " << inner << ", " << parts
                << " parts, tiles of " << tile;
            none += !found[k];
          }
          ASSERT_EQ(ProductsLeftOut(split, inner), none);
          // The condition of docs/results/library-products.md.
          const bool loses = cublas && inner / parts % tile == 0;
          ASSERT_EQ(none, loses ? inner % parts : 0) << inner << " " << parts << " " << tile;
          losing += none != 0;
        }
      }
    }
  }
  EXPECT_GT(losing, 100u);
}

TEST(SplitK, HugeTilesAndManyPartsHoldAll) {
  const SplitK split{.parts = SplitK::kMost, .tile = SplitK::kMost};
  EXPECT_EQ(PartOf(split, 1000, 0).end, 1000u);
  EXPECT_EQ(PartOf(split, 1000, SplitK::kMost - 1).begin, 1000u);
  EXPECT_EQ(ProductsLeftOut(split, 1000), 0u);
}

// Shapes of which an H200 was seen to lose products, and others of the same run.
TEST(SplitK, LosesWhatCublasLtLostOnAnH200) {
  struct Seen {
    size_t inner, parts, tile, lost;
  };
  for (const Seen& seen : {Seen{11528, 9, 64, 8},
                           {14792, 11, 64, 8},
                           {4112, 32, 64, 16},
                           {43536, 17, 128, 16},
                           {99872, 39, 128, 32},
                           {11536, 9, 128, 0},
                           {11520, 9, 64, 0},
                           {65536, 25, 128, 0}}) {
    const SplitK split{seen.parts, seen.tile, SplitPartition::kCublasLt};
    EXPECT_EQ(ProductsLeftOut(split, seen.inner), seen.lost) << seen.inner;
  }
}

float RoundedByHand(float x, const FormatSpec& format) {
  if (format == kFp32) return x;
  if (format == ParseFormat("fp16").spec) return static_cast<float>(Eigen::half(x));
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return x;
  return std::bit_cast<float>((bits + 0x7FFFu + (bits >> 16 & 1)) & 0xFFFF0000u);
}

std::vector<float> Expected(const Factor& a,
                            const Factor& b,
                            const AccumulationMode& mode,
                            const SplitK& split,
                            Epilogue epilogue,
                            bool one_scale) {
  const GemmOperand left = a.Get(), right = b.Get();
  const bool product = one_scale && epilogue == Epilogue::kCublasLt;
  std::vector<float> out;
  for (size_t i = 0; i < a.rows(); ++i) {
    for (size_t j = 0; j < b.rows(); ++j) {
      volatile float total = 0;
      for (size_t s = 0; s < split.parts; ++s) {
        std::vector<float> x, y;
        for (size_t k = 0; k < a.inner(); ++k) {
          if (PartOfProduct(split, a.inner(), k) != s) continue;
          x.push_back(a.Row(i)[k]);
          y.push_back(b.Row(j)[k]);
        }
        const double sum = OddFloat64(Accumulate(mode, {a.format(), x}, {b.format(), y}));
        const float part = RoundedByHand(static_cast<float>(sum), split.partials);
        total = s == 0 ? part : total + part;
      }
      float t = ScaledByHand(total,
                             left.scales.At(i, 0),
                             right.scales.At(j, 0),
                             product ? Epilogue::kFloat32Product : epilogue);
      if (product) t += 0.0f;
      out.push_back(std::isnan(t) ? std::bit_cast<float>(NanResult(mode)) : t);
    }
  }
  return out;
}

struct Case {
  const char* mode;
  const char* format;
  size_t inner;
  SplitK split;
};

std::vector<Case> Cases() {
  const FormatSpec bf16 = ParseFormat("bf16").spec, fp16 = ParseFormat("fp16").spec;
  constexpr auto kCublas = SplitPartition::kCublasLt;
  return {{"hopper-fp8", "e4m3fn", 784, {.parts = 3, .tile = 128, .partition = kCublas}},
          {"hopper-fp8", "e4m3fn", 528, {.parts = 4, .tile = 128, .partition = kCublas}},
          {"hopper-fp8-fast", "e5m2", 300, {.parts = 5, .tile = 32, .partials = bf16}},
          {"hopper-bf16", "bf16", 265, {.parts = 4, .tile = 16, .partition = kCublas}},
          {"hopper-bf16", "bf16", 260, {.parts = 4, .tile = 16, .partials = bf16}},
          {"hopper-fp16", "fp16", 150, {.parts = 9, .tile = 16, .partition = kCublas}},
          {"hopper-fp16", "fp16", 200, {.parts = 3, .tile = 8, .partials = fp16}},
          {"fp32", "bf16", 97, {.parts = 7, .tile = 5}},
          {"fp32", "e4m3fn", 9, {.parts = 12, .tile = 2}},
          {"exact", "e5m2", 61, {.parts = 3, .tile = 4, .partition = kCublas}},
          {"fp64", "fp16", 50, {.parts = 2, .tile = 64}}};
}

TEST(SplitK, EqualsPartsAddedByHandAtAnyThreadCountOnEveryBackend) {
  const ExecutionState state;
  oracle::TestRandom random(20261129);
  size_t at = 0, different = 0;
  for (const Case& c : Cases()) {
    const AccumulationMode mode = ParseAccumulationMode(c.mode);
    const FormatSpec format = ParseFormat(c.format).spec;
    for (const Spread spread : kSpreads) {
      Factor a = Factor::Random(format, 19, c.inner, spread, Side::kLeft, random);
      Factor b = Factor::Random(format, 23, c.inner, spread, Side::kRight, random);
      const bool one_scale = at % 2 == 0;
      std::vector<float> sa, sb;
      for (size_t i = 0; i < 23; ++i) {
        sa.push_back(0.3f + static_cast<float>(i) * 0.7f);
        sb.push_back(-0.9f + static_cast<float>(i) * 0.11f);
      }
      a.SetScales(sa, {.row_stride = one_scale ? size_t{0} : 1});
      b.SetScales(sb, {.row_stride = one_scale ? size_t{0} : 1});
      const bool values = at % 3 == 0, transposed = at % 4 >= 2;
      a.Store(values ? Storage::kValues : Storage::kCodes, transposed, at % 5);
      b.Store(Storage::kCodes, !transposed, at % 2 * 7);
      const Epilogue epilogues[] = {Epilogue::kFloat64,
                                    Epilogue::kFloat32Product,
                                    Epilogue::kFloat32LeftFirst,
                                    Epilogue::kFloat32RightFirst,
                                    Epilogue::kCublasLt};
      const Epilogue epilogue = epilogues[at++ % 5];
      const auto expected = Expected(a, b, mode, c.split, epilogue, one_scale);
      const auto check = [&] {
        std::vector<float> got(19 * 23, 12345);
        Gemm(a.Get(), b.Get(), mode, c.split, epilogue, got);
        EXPECT_TRUE(SameMatrix(got, expected, 23)) << c.mode << ", " << ToString(epilogue) << ", "
                                                   << ThreadCount() << " threads, " << a.Describe();
      };
      for (const int threads : {1, 2, 3}) {
        SetThreadCount(threads);
        check();
      }
      WithEachBackend(check);
      ASSERT_FALSE(HasFailure());
      std::vector<float> whole(19 * 23);
      Gemm(a.Get(), b.Get(), mode, epilogue, whole);
      different += !SameMatrix(whole, expected, 23);
    }
  }
  EXPECT_GT(different, 25u) << "the split hardly shows in these products";
}

// More results than one thread adds at a time.
TEST(SplitK, EqualsPartsAddedByHandForManyResults) {
  const ExecutionState state;
  oracle::TestRandom random(8);
  const FormatSpec e5m2 = ParseFormat("e5m2").spec;
  const Factor a = Factor::Random(e5m2, 211, 21, Spread::kExponents, Side::kLeft, random);
  const Factor b = Factor::Random(e5m2, 187, 21, Spread::kExponents, Side::kRight, random);
  const AccumulationMode mode = ParseAccumulationMode("fp32");
  const SplitK split{.parts = 5, .tile = 4, .partition = SplitPartition::kCublasLt};
  ASSERT_EQ(ProductsLeftOut(split, 21), 1u);
  const auto expected = Expected(a, b, mode, split, Epilogue::kCublasLt, true);
  for (const int threads : {1, 3}) {
    SetThreadCount(threads);
    std::vector<float> got(211 * 187);
    Gemm(a.Get(), b.Get(), mode, split, Epilogue::kCublasLt, got);
    EXPECT_TRUE(SameMatrix(got, expected, 187)) << threads << " threads";
  }
}

TEST(SplitK, OnePartIsThePlainGemm) {
  oracle::TestRandom random(3);
  const FormatSpec e4m3fn = ParseFormat("e4m3fn").spec;
  const Factor a = Factor::Random(e4m3fn, 5, 200, Spread::kNormal, Side::kLeft, random);
  const Factor b = Factor::Random(e4m3fn, 6, 200, Spread::kNormal, Side::kRight, random);
  const AccumulationMode mode = ParseAccumulationMode("hopper-fp8");
  for (const SplitPartition partition : kBoth) {
    std::vector<float> got(30), plain(30);
    Gemm(a.Get(), b.Get(), mode, SplitK{.partition = partition}, Epilogue::kCublasLt, got);
    Gemm(a.Get(), b.Get(), mode, Epilogue::kCublasLt, plain);
    EXPECT_EQ(got, plain);
  }
}

// A sum that rounds to -0, and an empty part after it, whose +0 makes it +0.
TEST(SplitK, AnEmptyPartAddsZero) {
  const float tiny = 0x1p-100f, minus = -0x1p-100f;
  const GemmOperand a{.format = kFp32, .values = {&tiny, 1}, .rows = 1, .inner = 1};
  const GemmOperand b{.format = kFp32, .values = {&minus, 1}, .rows = 1, .inner = 1};
  const auto sign = [&](size_t parts) {
    float out = 1;
    const AccumulationMode fp32 = ParseAccumulationMode("fp32");
    Gemm(a, b, fp32, SplitK{.parts = parts}, Epilogue::kFloat32Product, {&out, 1});
    EXPECT_EQ(out, 0);
    return std::signbit(out);
  };
  EXPECT_TRUE(sign(1));
  EXPECT_FALSE(sign(2));
}

TEST(SplitK, NoProductsGiveZero) {
  const GemmOperand a{.format = kFp32, .rows = 1, .inner = 0};
  float out = 7;
  for (const SplitPartition partition : kBoth) {
    const SplitK split{.parts = 4, .partition = partition};
    EXPECT_EQ(ProductsLeftOut(split, 0), 0u);
    Gemm(a, a, ParseAccumulationMode("fp32"), split, Epilogue::kFloat64, {&out, 1});
    EXPECT_EQ(out, 0);
    EXPECT_FALSE(std::signbit(out));
  }
}

TEST(SplitK, TilesOfCublasLtAreOf128Bytes) {
  const FormatSpec e4m3fn = ParseFormat("e4m3fn").spec, int8 = ParseFormat("int8").spec;
  EXPECT_EQ(CublasLtTile(e4m3fn, int8), 128u);
  EXPECT_EQ(CublasLtTile(kBf16, kBf16), 64u);
  EXPECT_EQ(CublasLtTile(e4m3fn, kBf16), 64u);
}

TEST(SplitK, NamesAreParsed) {
  for (const SplitPartition partition : kBoth) {
    EXPECT_EQ(ParseSplitPartition(ToString(partition)), partition);
  }
  EXPECT_EQ(ErrorOf([] { ParseSplitPartition("cublas"); }),
            "split partition 'cublas' is not one of contiguous, cublaslt; did you mean cublaslt?");
}

TEST(SplitK, WhatCannotBeSplitThrows) {
  std::vector<float> x(16, 1), scales(2, 1), out(1);
  const GemmOperand a{.format = kFp32, .values = x, .rows = 1, .inner = 16};
  const auto error = [&](const SplitK& split, const char* mode, GemmOperand b) {
    return ErrorOf(
        [&] { Gemm(a, b, ParseAccumulationMode(mode), split, Epilogue::kFloat64, out); });
  };
  EXPECT_EQ(error({.parts = 0}, "fp32", a), "split-K: 0 parts, expected 1 to 1073741824");
  EXPECT_EQ(error({.tile = 0}, "fp32", a),
            "split-K: a k-tile of 0 products, expected 1 to 1073741824");
  EXPECT_EQ(error({.tile = SplitK::kMost + 1}, "fp32", a),
            "split-K: a k-tile of 1073741825 products, expected 1 to 1073741824");
  EXPECT_EQ(
      error({.parts = 17, .partition = SplitPartition::kCublasLt}, "fp32", a),
      "split-K: 17 parts of 16 products, expected at most one part per product under partition "
      "cublaslt");
  EXPECT_EQ(error({.parts = 2}, "mxf8f6f4", a), "split-K: mode mxf8f6f4 has no split");
  GemmOperand segmented = a;
  segmented.scales = {.data = scales, .row_stride = 2, .segment = 8, .segment_stride = 1};
  EXPECT_EQ(error({.parts = 2}, "fp32", segmented),
            "split-K: the operands have scales along the inner dimension, expected one scale per "
            "operand or row");
  GemmOperand shorter = a;
  shorter.inner = 8;
  EXPECT_NE(error({.parts = 2}, "fp32", shorter), kNoError);
  EXPECT_THROW(PartOf({.parts = 2}, 16, 2), Error);
}

}  // namespace
}  // namespace numsim
