// Tests what cuBLASLt computes on a Hopper GPU: candidates of a rule are judged by every output,
// and the number that each fits is printed. A test fails where no candidate fits all.
//
// With NUMSIM_RECORD_DIR set, small products are written there as tests/gemm/recorded wants
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "numsim/io/npy.h"
#include "tests/gemm/hopper_study.h"

namespace numsim {
namespace {

using HopperRules = HopperStudy;

// The result of a candidate for the scales of the factors.
std::vector<uint32_t> Predicted(LibraryScaling scaling,
                                const std::vector<float>& sums,
                                const Factor& a,
                                const Factor& b,
                                bool bf16) {
  const GemmOperand left = a.Get(), right = b.Get();
  std::vector<float> t(sums.size());
  for (size_t i = 0; i < t.size(); ++i) {
    const float sa = left.scales.At(i / b.rows(), 0), sb = right.scales.At(i % b.rows(), 0);
    t[i] = ScaledSum(scaling, sums[i], sa, sb);
  }
  return bf16 ? ResultCodes(kBf16, t) : ResultBits(t);
}

// Draws scales until all candidates differ from the first, or the best of many draws: rounded to
// bf16 they do so for few sums.
void PutTellingScales(ScalesFor kind,
                      const std::vector<float>& sums,
                      bool bf16,
                      Factor& a,
                      Factor& b,
                      oracle::TestRandom& random) {
  Factor best_a = a, best_b = b;
  int most = -1;
  for (int draw = 0; draw < 200 && most < 3; ++draw) {
    PutScales(a, kind, random);
    PutScales(b, kind, random);
    const auto first = Predicted(LibraryScaling::kOnce, sums, a, b, bf16);
    int different = 0;
    for (const LibraryScaling scaling : kLibraryScalings) {
      different += Predicted(scaling, sums, a, b, bf16) != first;
    }
    if (different <= most) continue;
    most = different;
    best_a = a;
    best_b = b;
  }
  a = best_a;
  b = best_b;
}

// The results that a candidate misses, for the reader.
void PrintMisses(const std::vector<uint32_t>& got,
                 const std::vector<uint32_t>& predicted,
                 const std::vector<float>& sums,
                 const Factor& a,
                 const Factor& b) {
  const GemmOperand left = a.Get(), right = b.Get();
  int printed = 0;
  for (size_t i = 0; i < got.size() && printed < 4; ++i) {
    if (got[i] == predicted[i]) continue;
    const float sa = left.scales.At(i / b.rows(), 0), sb = right.scales.At(i % b.rows(), 0);
    fmt::print("  miss at {}: sum {} ({:08x}) scales {} {}: {:08x}, predicted {:08x}\n",
               i,
               sums[i],
               std::bit_cast<uint32_t>(sums[i]),
               sa,
               sb,
               got[i],
               predicted[i]);
    ++printed;
  }
}

// Scales of the operands in the library's own epilogue.
TEST_F(HopperRules, ScalesInTheLibrary) {
  for (const ScalesFor kind : {ScalesFor::kTensor, ScalesFor::kRows}) {
    for (const LibraryResult result : {LibraryResult::kFloat32, LibraryResult::kBfloat16}) {
      const std::string text = fmt::format("{}{}",
                                           kind == ScalesFor::kTensor ? "tensor" : "rows",
                                           result == LibraryResult::kFloat32 ? "" : "-bf16");
      for (const StudiedMode& rule : kFp8Modes) {
        Candidates candidates;
        size_t count = 0;
        for (auto& [a, b] : Pairs(rule, 272)) {
          const std::vector<float> sums = Sums(a, b, rule);
          const bool bf16 = result == LibraryResult::kBfloat16;
          PutTellingScales(kind, sums, bf16, a, b, random_);
          LibraryOptions options = Options(rule, result);
          options.scales = true;
          const std::vector<uint32_t> got = Outputs(a, b, options);
          if (got.empty()) continue;
          for (size_t c = 0; c < std::size(kLibraryScalings); ++c) {
            candidates.Judge(std::string(kLibraryScalingNames[c]),
                             got,
                             Predicted(kLibraryScalings[c], sums, a, b, bf16));
          }
          const bool small = std::string_view(rule.a) == rule.b;
          if (std::getenv("NUMSIM_PRINT_MISSES") != nullptr) {
            PrintMisses(got, Predicted(LibraryScaling::kScalesFirst, sums, a, b, bf16), sums, a, b);
          }
          if (count++ == 2 && small) Record(CaseName(rule, 272, text), a, b, result, got);
        }
        if (candidates.Empty()) {
          fmt::print("scales {} {} {} {}: no algorithm\n", text, rule.name, rule.a, rule.b);
          continue;
        }
        EXPECT_TRUE(candidates.Report(
            fmt::format("scales {} {} {} {} ({})", text, rule.name, rule.a, rule.b, algorithm_)));
      }
    }
  }
}

// Results of 16 bits, without scales.
TEST_F(HopperRules, ResultsOf16Bits) {
  std::vector<StudiedMode> rules(std::begin(kFp8Modes), std::end(kFp8Modes));
  rules.insert(rules.end(), std::begin(kWideModes), std::end(kWideModes));
  for (const LibraryResult result : {LibraryResult::kBfloat16, LibraryResult::kFloat16}) {
    const std::string text = result == LibraryResult::kBfloat16 ? "bf16" : "fp16";
    for (const StudiedMode& rule : rules) {
      Candidates candidates;
      size_t count = 0;
      for (const auto& [a, b] : Pairs(rule, 144)) {
        const std::vector<uint32_t> got = Outputs(a, b, Options(rule, result));
        if (got.empty()) continue;
        const std::vector<float> sums = Sums(a, b, rule);
        const FormatSpec& format = FormatOf(result);
        candidates.Judge("nearest-even", got, ResultCodes(format, sums));
        candidates.Judge("toward-zero", got, ResultCodes(format, sums, RoundingMode::kTowardZero));
        candidates.Judge(
            "nearest-away", got, ResultCodes(format, sums, RoundingMode::kNearestAway));
        if (count++ == 2) Record(CaseName(rule, 144, text), a, b, result, got);
      }
      if (candidates.Empty()) {
        fmt::print("result {} {} {} {}: no algorithm\n", text, rule.name, rule.a, rule.b);
        continue;
      }
      EXPECT_TRUE(candidates.Report(
          fmt::format("result {} {} {} {} ({})", text, rule.name, rule.a, rule.b, algorithm_)));
    }
  }
}

// Columns [begin, end) of a factor.
Factor Part(const Factor& factor, size_t begin, size_t end) {
  Factor stored = factor;
  stored.Store(Storage::kCodes, false);
  const GemmOperand x = stored.Get();
  std::vector<uint32_t> codes;
  for (size_t row = 0; row < x.rows; ++row) {
    for (size_t k = begin; k < end; ++k) {
      const size_t at = row * x.inner + k;
      codes.push_back(x.codes8.Empty() ? x.codes16.data[at] : x.codes8.data[at]);
    }
  }
  return {x.format, x.rows, end - begin, codes};
}

enum class Join { kAscending, kDescending, kPairs, kExact };
constexpr Join kJoins[] = {Join::kAscending, Join::kDescending, Join::kPairs, Join::kExact};
constexpr std::string_view kJoinNames[] = {"ascending", "descending", "pairs", "exact"};

float Joined(std::vector<float> parts, Join join) {
  if (join == Join::kDescending) std::reverse(parts.begin(), parts.end());
  if (join == Join::kExact) {
    double sum = 0;
    for (const float x : parts) sum += static_cast<double>(x);
    return static_cast<float>(sum);
  }
  if (join == Join::kPairs) {
    for (; parts.size() > 1; parts.resize((parts.size() + 1) / 2)) {
      for (size_t i = 0; 2 * i < parts.size(); ++i) {
        parts[i] = 2 * i + 1 < parts.size() ? parts[2 * i] + parts[2 * i + 1] : parts[2 * i];
      }
    }
    return parts[0];
  }
  float sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) sum += parts[i];
  return sum;
}

float AsBf16(float x) { return std::isnan(x) ? x : Decode(kBf16, Encode(kBf16, x)); }

// The results of partial sums under every way to join them.
void JudgeJoins(const std::vector<std::vector<float>>& parts,
                size_t unit,
                bool bf16,
                const std::vector<uint32_t>& got,
                Candidates& candidates) {
  for (size_t join = 0; join < std::size(kJoins); ++join) {
    for (const bool rounded_parts : {false, true}) {
      if (rounded_parts && !bf16) continue;
      std::vector<float> sums(got.size());
      for (size_t i = 0; i < sums.size(); ++i) {
        std::vector<float> terms;
        for (const auto& part : parts) terms.push_back(rounded_parts ? AsBf16(part[i]) : part[i]);
        sums[i] = Joined(terms, kJoins[join]);
      }
      candidates.Judge(
          fmt::format("{}{}/{}", kJoinNames[join], rounded_parts ? "-of-bf16" : "", unit),
          got,
          bf16 ? ResultCodes(kBf16, sums) : ResultBits(sums));
    }
  }
}

void StudySplit(const StudiedMode& rule,
                size_t inner,
                int split,
                const std::vector<std::pair<Factor, Factor>>& pairs,
                const std::function<std::vector<uint32_t>(const Factor&, const Factor&)>& outputs,
                bool bf16,
                Candidates& candidates) {
  const AccumulationMode accumulation = ParseAccumulationMode(rule.name);
  for (const auto& [a, b] : pairs) {
    const std::vector<uint32_t> got = outputs(a, b);
    if (got.empty()) return;
    size_t last = 0;
    for (const size_t unit : {16, 32, 64, 128, 256}) {
      const size_t even = (inner + static_cast<size_t>(split) - 1) / static_cast<size_t>(split);
      const size_t length = (even + unit - 1) / unit * unit;
      if (length == last) continue;
      last = length;
      std::vector<std::vector<float>> parts;
      for (size_t k = 0; k < inner; k += length) {
        const size_t end = std::min(inner, k + length);
        parts.push_back(HostProduct(Part(a, k, end), Part(b, k, end), accumulation));
      }
      JudgeJoins(parts, unit, bf16, got, candidates);
    }
  }
}

// The inner dimension in parts.
TEST_F(HopperRules, SplitSums) {
  constexpr std::string_view kReductions[] = {"none", "in-place", "compute-type", "output-type"};
  std::vector<StudiedMode> rules(std::begin(kWideModes), std::end(kWideModes));
  rules.push_back(kFp8Modes[0]);
  rules.push_back(kFp8Modes[3]);
  for (const StudiedMode& rule : rules) {
    for (const size_t inner : {size_t{2048}, size_t{1104}}) {
      auto pairs = Pairs(rule, inner);
      pairs.erase(pairs.begin() + 4, pairs.end());  // the spreads but the last
      for (const int split : {2, 3, 4}) {
        for (const LibraryReduction reduction : {LibraryReduction::kInPlace,
                                                 LibraryReduction::kComputeType,
                                                 LibraryReduction::kOutputType}) {
          for (const LibraryResult result : {LibraryResult::kFloat32, LibraryResult::kBfloat16}) {
            const bool bf16 = result == LibraryResult::kBfloat16;
            LibraryOptions options = Options(rule, result);
            options.ordered = false;
            options.split = split;
            options.reduction = reduction;
            Candidates candidates;
            const auto outputs = [&](const Factor& a, const Factor& b) {
              return Outputs(a, b, options);
            };
            StudySplit(rule, inner, split, pairs, outputs, bf16, candidates);
            const std::string title = fmt::format("split {} {} {} K {} {} ({})",
                                                  split,
                                                  kReductions[static_cast<size_t>(reduction)],
                                                  rule.name,
                                                  inner,
                                                  bf16 ? "bf16" : "float32",
                                                  algorithm_);
            if (candidates.Empty()) {
              fmt::print("{}: no algorithm\n", title);
              continue;
            }
            candidates.Report(title);
          }
        }
      }
    }
  }
}

// Sums of int8 beyond int32.
TEST_F(HopperRules, IntegerOverflow) {
  const size_t inner = 262176;
  std::vector<uint32_t> codes(32 * inner, 0x80);
  for (size_t row = 0; row < 32; ++row) {
    for (size_t k = 0; k < inner; ++k) {
      if (row % 4 == 1 && k >= inner / 2) codes[row * inner + k] = 0x7F;
      if (row % 4 == 2 && k % 3 != 0) codes[row * inner + k] = 0x7F;
      if (row % 4 == 3) codes[row * inner + k] = random_.Below(256);
    }
  }
  const Factor a(kInt8, 32, inner, codes);
  const Factor b(kInt8, 32, inner, std::vector<uint32_t>(32 * inner, 0x80));
  LibraryOptions options;
  options.result = LibraryResult::kInt32;
  const std::vector<uint32_t> got = Outputs(a, b, options);
  ASSERT_FALSE(got.empty()) << "no algorithm";
  std::vector<uint32_t> wrapped, clamped, stepwise;
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min();
  constexpr int64_t kHigh = std::numeric_limits<int32_t>::max();
  for (size_t i = 0; i < got.size(); ++i) {
    int64_t sum = 0, bounded = 0;
    for (size_t k = 0; k < inner; ++k) {
      const int64_t product = -128 * static_cast<int8_t>(codes[i / 32 * inner + k]);
      sum += product;
      bounded = std::clamp(bounded + product, kLow, kHigh);
    }
    wrapped.push_back(static_cast<uint32_t>(sum));
    clamped.push_back(static_cast<uint32_t>(std::clamp(sum, kLow, kHigh)));
    stepwise.push_back(static_cast<uint32_t>(bounded));
  }
  Candidates candidates;
  candidates.Judge("wraps", got, wrapped);
  candidates.Judge("saturates at the end", got, clamped);
  candidates.Judge("saturates at each step", got, stepwise);
  EXPECT_TRUE(candidates.Report("int8 beyond int32 (" + algorithm_ + ")"));
}

TEST_F(HopperRules, Integers) {
  const StudiedMode rule{"exact", "int8", "int8"};
  const Factor a = Factor::Random(kInt8, 48, 272, Spread::kAllCodes, Side::kLeft, random_);
  const Factor b = Factor::Random(kInt8, 48, 272, Spread::kAllCodes, Side::kRight, random_);
  LibraryOptions options;
  options.result = LibraryResult::kInt32;
  const std::vector<uint32_t> got = Outputs(a, b, options);
  ASSERT_FALSE(got.empty()) << "no algorithm";
  std::vector<uint32_t> want;  // |sums| < 2^24
  for (const float x : Sums(a, b, rule)) want.push_back(static_cast<uint32_t>(int32_t(x)));
  Candidates candidates;
  candidates.Judge("exact", got, want);
  EXPECT_TRUE(candidates.Report("int8 (" + algorithm_ + ")"));
  Record(CaseName(rule, 272, "int32"), a, b, LibraryResult::kInt32, got);
}

// Long sums without a split: shapes for which the library likes to split, and others.
TEST_F(HopperRules, LongSums) {
  std::vector<StudiedMode> rules(std::begin(kWideModes), std::end(kWideModes));
  rules.push_back(kFp8Modes[0]);
  rules.push_back(kFp8Modes[3]);
  struct Long {
    size_t rows_a, rows_b, inner;
  };
  for (const StudiedMode& rule : rules) {
    const FormatSpec format_a = ParseFormat(rule.a).spec, format_b = ParseFormat(rule.b).spec;
    for (const Long& shape : {Long{32, 32, 4096},
                              Long{256, 512, 4096},
                              Long{1024, 1024, 4096},
                              Long{32, 32, 16384},
                              Long{128, 512, 16384},
                              Long{32, 64, 65536},
                              Long{128, 256, 65536}}) {
      Candidates candidates;
      for (const Spread spread : {Spread::kNormal, Spread::kCancelling}) {
        const Factor a =
            Factor::Random(format_a, shape.rows_a, shape.inner, spread, Side::kLeft, random_);
        const Factor b =
            Factor::Random(format_b, shape.rows_b, shape.inner, spread, Side::kRight, random_);
        const std::vector<uint32_t> got = Outputs(a, b, Options(rule, LibraryResult::kFloat32));
        if (got.empty()) continue;
        candidates.Judge(rule.name, got, ResultBits(Sums(a, b, rule)));
      }
      if (candidates.Empty()) {
        // Long sums of few results that are promoted: never without cutting the inner dimension.
        fmt::print(
            "{} {} x {} x {}: no algorithm\n", rule.name, shape.rows_a, shape.rows_b, shape.inner);
        EXPECT_TRUE(!rule.Fast() && shape.inner > 4096) << rule.name;
        continue;
      }
      const std::string title =
          fmt::format("{} x {} x {} ({})", shape.rows_a, shape.rows_b, shape.inner, algorithm_);
      EXPECT_TRUE(candidates.Report(title)) << rule.name;
    }
  }
}

}  // namespace
}  // namespace numsim
