// Products of the C interface against their definition, the library's and what an H200 gave.
#include "numsim/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include "numsim/io/npy.h"
#include "tests/capi/capi_fixture.h"
#include "tests/support/gemm_problem.h"

namespace numsim::capi_test {
namespace {

// A factor in C, with its memory.
class CFactor {
 public:
  // `codes`: vectors x inner, stored as elements of code_bytes, or transposed.
  CFactor(const std::string& format,
          const std::vector<uint32_t>& codes,
          size_t inner,
          int code_bytes,
          bool transposed)
      : vectors_(codes.size() / inner), inner_(inner), spec_(ParseFormat(format).spec) {
    const auto width = static_cast<size_t>(code_bytes);
    for (const uint32_t code : codes) values_.push_back(Decode(spec_, code & spec_.CodeMask()));
    memory_.resize((codes.size() * width + 3) / 4);
    for (size_t i = 0; i < codes.size(); ++i) {
      const size_t at = transposed ? i % inner * vectors_ + i / inner : i;
      std::memcpy(reinterpret_cast<char*>(memory_.data()) + at * width, &codes[i], width);
    }
    c_ = {CFormat(format), memory_.data(), code_bytes, transposed ? 1 : 0, nullptr, {}};
  }
  CFactor(const CFactor&) = delete;
  CFactor& operator=(const CFactor&) = delete;

  // Scales of this layout, each another number.
  void Scale(const numsim_scale_layout_t& layout) {
    size_t count = 0;
    scales_.clear();
    ASSERT_EQ(numsim_scale_count(&layout, vectors_, inner_, &count), NUMSIM_OK);
    for (size_t s = 0; s < count; ++s) {
      scales_.push_back((s % 3 == 0 ? -0.7f : 1.3f) * static_cast<float>(s + 1));
    }
    c_.scales = scales_.data();
    c_.layout = layout;
  }

  const numsim_factor_t* c() const { return &c_; }
  const FormatSpec& spec() const { return spec_; }
  size_t vectors() const { return vectors_; }
  size_t inner() const { return inner_; }
  size_t Block() const {  // elements of a segment
    if (c_.scales == nullptr) return inner_;
    if (c_.layout.granularity == NUMSIM_SCALE_COLUMN) return 1;
    if (c_.layout.granularity != NUMSIM_SCALE_BLOCK) return inner_;
    return std::min<size_t>(c_.layout.block, inner_);
  }
  DotOperand Segment(size_t vector, size_t begin, size_t n) const {
    return {spec_, std::span(values_).subspan(vector * inner_ + begin, n)};
  }
  float ScaleOf(size_t vector, size_t k) const {
    if (c_.scales == nullptr) return 1;
    switch (c_.layout.granularity) {
      case NUMSIM_SCALE_ROW:
        return scales_.at(vector);
      case NUMSIM_SCALE_COLUMN:
        return scales_.at(k);
      case NUMSIM_SCALE_BLOCK:
        return scales_.at(vector * ((inner_ + Block() - 1) / Block()) + k / Block());
      default:
        return scales_.at(0);
    }
  }
  GemmOperand Values() const {
    return {.format = spec_, .values = values_, .rows = vectors_, .inner = inner_};
  }

 private:
  size_t vectors_, inner_;
  FormatSpec spec_;
  std::vector<float> values_;
  std::vector<uint32_t> memory_;  // aligned for every width
  std::vector<float> scales_;
  numsim_factor_t c_;
};

std::vector<float> Product(const CFactor& a, const CFactor& b, const char* accumulator) {
  std::vector<float> out(a.vectors() * b.vectors(), 12345.0f);
  char message[400] = "before";
  EXPECT_EQ(numsim_gemm_any_operands(a.c(),
                                     b.c(),
                                     a.vectors(),
                                     b.vectors(),
                                     a.inner(),
                                     accumulator,
                                     out.data(),
                                     message,
                                     sizeof message),
            NUMSIM_OK)
      << message;
  EXPECT_STREQ(message, "");
  return out;
}

// The words of the header, on single numbers.
std::vector<float> Defined(const CFactor& a, const CFactor& b, const char* accumulator) {
  const AccumulationMode mode = ParseAccumulationMode(accumulator);
  const size_t block = std::min(a.Block(), b.Block());
  std::vector<float> out;
  for (size_t i = 0; i < a.vectors(); ++i) {
    for (size_t j = 0; j < b.vectors(); ++j) {
      float sum = 0;
      for (size_t k = 0; k < a.inner(); k += block) {
        const size_t n = std::min(block, a.inner() - k);
        const double s = OddFloat64(Accumulate(mode, a.Segment(i, k, n), b.Segment(j, k, n)));
        const double scale = static_cast<double>(a.ScaleOf(i, k)) * b.ScaleOf(j, k);
        const auto part = static_cast<float>(s * scale);
        sum = k == 0 ? part : sum + part;
      }
      out.push_back(std::isnan(sum) ? std::bit_cast<float>(NanResult(mode)) : sum);
    }
  }
  return out;
}

struct FactorKind {
  const char* format;
  int code_bytes;
};

CFactor RandomFactor(const FactorKind& kind,
                     size_t vectors,
                     size_t inner,
                     Spread spread,
                     Side side,
                     bool transposed,
                     oracle::TestRandom& random) {
  const FormatSpec spec = ParseFormat(kind.format).spec;
  std::vector<uint32_t> codes = SpreadCodes(spec, spread, side, vectors * inner, random);
  // Bits above the width are not read.
  for (uint32_t& code : codes) code |= random.Next32() & ~spec.CodeMask();
  return {kind.format, codes, inner, kind.code_bytes, transposed};
}

struct Pair {
  FactorKind a, b;
};
constexpr Pair kPairs[] = {{{"int8", 1}, {"int8", 1}},
                           {{"int8", 2}, {"int8", 1}},
                           {{"e4m3fn", 1}, {"e5m2", 1}},
                           {{"e4m3fn", 4}, {"e5m2", 2}},
                           {{"bf16", 2}, {"bf16", 2}},
                           {{"fp16", 2}, {"fp16", 4}},
                           {{"tf32", 4}, {"tf32", 4}},
                           {{"fp32", 4}, {"fp32", 4}},
                           {{"e2m1fn", 1}, {"e2m3fn", 1}},
                           {{"e5m3:bias=20", 2}, {"fp32", 4}}};
constexpr const char* kRules[] = {"exact",
                                  "fp64",
                                  "fp32",
                                  "bf16:unfused",
                                  "fp32-chunked:8",
                                  "trunc:12,8,16",
                                  "hopper-fp8",
                                  "hopper-mma-fp8",
                                  "cdna1-fp16",
                                  "cdna2-bf16",
                                  "cdna3-fp8"};

TEST(CGemm, IsTheSumOfExactProductsUnderTheRule) {
  constexpr size_t kRows = 5, kCols = 7, kInner = 41;
  oracle::TestRandom random(1);
  for (const Pair& pair : kPairs) {
    for (const Spread spread : {Spread::kAllCodes, Spread::kNormal, Spread::kCancelling}) {
      for (const int transposed : {0, 1, 2, 3}) {
        const CFactor a =
            RandomFactor(pair.a, kRows, kInner, spread, Side::kLeft, (transposed & 1) != 0, random);
        const CFactor b = RandomFactor(
            pair.b, kCols, kInner, spread, Side::kRight, (transposed & 2) != 0, random);
        for (const char* mode : kRules) {
          ASSERT_TRUE(SameMatrix(Product(a, b, mode), Defined(a, b, mode), kCols))
              << pair.a.format << " " << pair.b.format << " " << mode << " " << transposed;
        }
      }
    }
  }
}

// Layouts refer to the vectors, also where these are stored as columns.
TEST(CGemm, ScalesSegmentsAndAddsThem) {
  constexpr size_t kRows = 4, kCols = 6, kInner = 50;
  constexpr numsim_scale_layout_t kTensor = {NUMSIM_SCALE_TENSOR, 0, 0},
                                  kRow = {NUMSIM_SCALE_ROW, 0, 0},
                                  kColumn = {NUMSIM_SCALE_COLUMN, 0, 0},
                                  kBlock1 = {NUMSIM_SCALE_BLOCK, 0, 1},
                                  kBlock16 = {NUMSIM_SCALE_BLOCK, 0, 16},
                                  kBlock50 = {NUMSIM_SCALE_BLOCK, 0, 50},
                                  kBlockMax = {NUMSIM_SCALE_BLOCK, 0, ~uint64_t{0}};
  struct Layouts {
    numsim_scale_layout_t a, b;
  };
  oracle::TestRandom random(2);
  for (const Layouts& layouts : {Layouts{kTensor, kTensor},
                                 {kTensor, kRow},
                                 {kRow, kRow},
                                 {kRow, kBlock16},
                                 {kBlock16, kTensor},
                                 {kBlock16, kBlock16},
                                 {kBlock16, kBlock50},
                                 {kBlockMax, kBlock16},
                                 {kBlockMax, kBlock50},
                                 {kColumn, kRow},
                                 {kColumn, kBlock1},
                                 {kColumn, kColumn}}) {
    for (const bool transposed : {false, true}) {
      CFactor a = RandomFactor(
          {"e4m3fn", 1}, kRows, kInner, Spread::kNormal, Side::kLeft, transposed, random);
      CFactor b = RandomFactor(
          {"bf16", 2}, kCols, kInner, Spread::kNormal, Side::kRight, !transposed, random);
      for (const bool both : {false, true}) {
        a.Scale(layouts.a);
        if (both) b.Scale(layouts.b);
        for (const char* mode : {"exact", "fp32", "hopper-fp8-fast"}) {
          ASSERT_TRUE(SameMatrix(Product(a, b, mode), Defined(a, b, mode), kCols))
              << layouts.a.granularity << " " << layouts.a.block << ", " << layouts.b.granularity
              << " " << layouts.b.block << " " << both << " " << mode;
        }
      }
    }
  }
}

// Under block-scaled modes the scales are operands of the unit.
TEST(CGemm, TakesTheScalesIntoTheUnit) {
  const std::vector<uint8_t> codes(64, 0x38), some = [] {  // ones of e4m3fn
    std::vector<uint8_t> x(64, 0);
    x[0] = x[32] = 0x38;
    x[33] = 0x30;  // 0.5
    return x;
  }();
  float scales[] = {1, 0x1p-24f}, out = 0;
  const numsim_format_t e4m3fn = CFormat("e4m3fn");
  const numsim_scale_layout_t blocks = {NUMSIM_SCALE_BLOCK, 0, 32};
  const numsim_factor_t a = {e4m3fn, some.data(), 1, 0, scales, blocks};
  const numsim_factor_t b = {e4m3fn, codes.data(), 1, 0, nullptr, {}};
  char message[200] = "";
  const auto multiply = [&](const char* mode) {
    return numsim_gemm(&a, &b, 1, 1, 64, mode, &out, message, sizeof message);
  };
  ASSERT_EQ(multiply("fp32"), NUMSIM_OK);
  EXPECT_EQ(out, 1 + 0x1p-23f);
  ASSERT_EQ(multiply("mxf8f6f4"), NUMSIM_OK);
  EXPECT_EQ(out, 1);
  scales[1] = 0.75f;
  EXPECT_EQ(multiply("mxf8f6f4"), NUMSIM_ERROR_BAD_ARGUMENT);
  EXPECT_NE(std::strstr(message, "not a number of e8m0fnu"), nullptr) << message;
  EXPECT_EQ(multiply("mxf4nvf4"), NUMSIM_ERROR_ACCUMULATOR_OPERANDS);
}

TEST(CGemm, QuantizedMatrixIsAFactorAsItIs) {
  constexpr size_t kRows = 3, kInner = 20;
  const numsim_scale_layout_t blocks = {NUMSIM_SCALE_BLOCK, 0, 8};
  const numsim_format_t int8 = CFormat("int8");
  float in[kRows * kInner], absmax[kRows * 3], inv_scales[kRows * 3], scales[kRows * 3];
  float values[kRows * kInner], out[kRows * kRows];
  for (size_t i = 0; i < kRows * kInner; ++i) in[i] = static_cast<float>(i % 13) - 5.5f;
  ASSERT_EQ(numsim_absmax(in, kRows, kInner, &blocks, absmax), NUMSIM_OK);
  for (size_t s = 0; s < kRows * 3; ++s) {
    inv_scales[s] = 127 / absmax[s];
    scales[s] = absmax[s] / 127;
  }
  for (const int transposed : {0, 1}) {
    uint8_t codes[kRows * kInner];
    ASSERT_EQ(
        numsim_quantize(
            in, kRows, kInner, &blocks, inv_scales, &int8, nullptr, nullptr, transposed, codes, 1),
        NUMSIM_OK);
    const numsim_factor_t factor = {int8, codes, 1, transposed, scales, blocks};
    ASSERT_EQ(numsim_gemm(&factor, &factor, kRows, kRows, kInner, "exact", out, nullptr, 0),
              NUMSIM_OK);
    if (transposed == 0) {
      ASSERT_EQ(numsim_dequantize(&int8, codes, 1, kRows, kInner, &blocks, scales, values),
                NUMSIM_OK);
    }
    for (size_t i = 0; i < kRows; ++i) {
      for (size_t j = 0; j < kRows; ++j) {
        double sum = 0;
        for (size_t k = 0; k < kInner; ++k) {
          sum += static_cast<double>(values[i * kInner + k]) * values[j * kInner + k];
        }
        EXPECT_NEAR(out[i * kRows + j], sum, 1e-4) << i << " " << j << " " << transposed;
      }
    }
  }
}

// Large enough for the kernels to share among threads.
TEST(CGemm, LargeProductIsThatOfTheLibrary) {
  constexpr size_t kRows = 130, kCols = 200, kInner = 530;
  oracle::TestRandom random(3);
  for (const Pair& pair : {Pair{{"int8", 1}, {"int8", 1}},
                           Pair{{"e4m3fn", 1}, {"e5m2", 1}},
                           Pair{{"bf16", 2}, {"bf16", 2}},
                           Pair{{"fp32", 4}, {"fp32", 4}}}) {
    const CFactor a =
        RandomFactor(pair.a, kRows, kInner, Spread::kNormal, Side::kLeft, true, random);
    const CFactor b =
        RandomFactor(pair.b, kCols, kInner, Spread::kNormal, Side::kRight, false, random);
    for (const char* mode : {"exact", "fp32", "hopper-bf16"}) {
      std::vector<float> expected(kRows * kCols);
      Gemm(a.Values(), b.Values(), ParseAccumulationMode(mode), expected);
      EXPECT_TRUE(SameMatrix(Product(a, b, mode), expected, kCols)) << pair.a.format << mode;
    }
  }
}

TEST(CGemm, HopperRuleGivesEveryBitOfAnH200) {
  const char* root = std::getenv("NUMSIM_SOURCE_DIR");
  const std::filesystem::path directory =
      std::filesystem::path(root != nullptr ? root : ".") / "tests/gemm/recorded";
  const std::string name = "hopper-fp8.e4m3fn.e4m3fn.272";
  const Array a = ReadNpy(directory / (name + "-a.npy")),
              b = ReadNpy(directory / (name + "-b.npy"));
  const Array out = ReadNpy(directory / (name + "-out.npy"));
  const size_t rows = a.shape.at(0), cols = b.shape.at(0), inner = a.shape.at(1);
  ASSERT_EQ(inner, 272u);
  const numsim_format_t e4m3fn = CFormat("e4m3fn");
  const numsim_factor_t left = {e4m3fn, a.bytes.data(), 1, 0, nullptr, {}};
  const numsim_factor_t right = {e4m3fn, b.bytes.data(), 1, 0, nullptr, {}};
  std::vector<float> result(rows * cols);
  const auto multiply = [&](const char* mode) {
    return numsim_gemm(&left, &right, rows, cols, inner, mode, result.data(), nullptr, 0);
  };
  ASSERT_EQ(multiply("hopper-fp8"), NUMSIM_OK);
  ASSERT_EQ(out.bytes.size(), result.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(result.data(), out.bytes.data(), out.bytes.size()), 0);
  ASSERT_EQ(multiply("hopper-fp8-fast"), NUMSIM_OK);
  EXPECT_NE(std::memcmp(result.data(), out.bytes.data(), out.bytes.size()), 0);
}

TEST(CGemm, EmptyProductsAreZeroOrNothing) {
  const numsim_format_t int8 = CFormat("int8");
  const numsim_factor_t empty = {int8, nullptr, 1, 0, nullptr, {}};
  float out[4] = {7, 7, 7, 7};
  EXPECT_EQ(numsim_gemm(&empty, &empty, 2, 2, 0, "exact", out, nullptr, 0), NUMSIM_OK);
  for (const float x : out) EXPECT_EQ(std::bit_cast<uint32_t>(x), 0u);
  const uint8_t codes[4] = {};
  const numsim_factor_t full = {int8, codes, 1, 0, nullptr, {}};
  EXPECT_EQ(numsim_gemm(&empty, &full, 0, 2, 2, "exact", nullptr, nullptr, 0), NUMSIM_OK);
  EXPECT_EQ(numsim_gemm(&full, &empty, 2, 0, 2, "exact", nullptr, nullptr, 0), NUMSIM_OK);
  EXPECT_EQ(numsim_gemm(&full, &empty, 2, 0, 2, "nothing", nullptr, nullptr, 0),
            NUMSIM_ERROR_UNKNOWN_ACCUMULATOR);
}

// Every format under every kind of mode, with any scales: what matters is that the call returns.
TEST(CGemm, EveryFormatRuleAndScaleIsTaken) {
  constexpr size_t kVectors = 3, kInner = 40;
  std::vector<std::string> modes = {
      "exact", "fp64", "fp32-chunked:7", "trunc:1,1", "trunc:40,65536"};
  for (size_t i = 0; i < numsim_accumulator_count(); ++i) {
    numsim_accumulator_info_t info;
    ASSERT_EQ(numsim_accumulator_info(i, &info), NUMSIM_OK);
    if (IsBlockScaled(ParseAccumulationMode(info.name))) continue;  // takes numbers of its scales
    modes.emplace_back(info.name);
  }
  for (const NamedFormat& format : Formats()) {
    modes.push_back(format.name);
    modes.push_back(format.name + ":unfused");
  }
  const float huge = std::numeric_limits<float>::max(),
              inf = std::numeric_limits<float>::infinity();
  const float scales[] = {0, -0.0f, inf, -inf, std::nanf(""), huge, 1e-45f, -3};
  oracle::TestRandom random(4);
  const std::vector<NamedFormat> formats = Formats();
  for (const std::string& mode : modes) {
    for (int repeat = 0; repeat < 6; ++repeat) {
      const auto factor = [&](Side side) {
        const NamedFormat& format = formats[random.Below(formats.size())];
        const FactorKind kind = {format.name.c_str(), format.spec.StorageBytes()};
        return RandomFactor(
            kind, kVectors, kInner, Spread::kAllCodes, side, random.Below(2) != 0, random);
      };
      const CFactor a = factor(Side::kLeft), b = factor(Side::kRight);
      const std::vector<float> plain = Product(a, b, mode.c_str());
      EXPECT_TRUE(SameMatrix(plain, Defined(a, b, mode.c_str()), kVectors)) << mode;
      numsim_factor_t scaled = *a.c();
      scaled.scales = scales + random.Below(6);
      scaled.layout = {NUMSIM_SCALE_ROW, 0, 0};
      std::vector<float> out(plain.size());
      EXPECT_EQ(
          numsim_gemm_any_operands(
              &scaled, b.c(), kVectors, kVectors, kInner, mode.c_str(), out.data(), nullptr, 0),
          NUMSIM_OK);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace numsim::capi_test
