// Array computations for the tests of cast/arithmetic.h: operands, formats and settings, the
// results by the scalar functions and by the array function.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/cast/arithmetic.h"
#include "tests/support/codes.h"
#include "tests/support/error_of.h"

namespace numsim {

inline constexpr RandomStream kStream = {.seed = 0x1234567890ABCDEF, .stream = 0x0F0E0D0C0B0A0908};
inline constexpr size_t kLarge = 40009;  // several threads' worth, and no multiple of anything

inline constexpr ArithmeticOp kOps[] = {ArithmeticOp::kAdd,
                                        ArithmeticOp::kSubtract,
                                        ArithmeticOp::kMultiply,
                                        ArithmeticOp::kDivide,
                                        ArithmeticOp::kFma,
                                        ArithmeticOp::kSquareRoot};

inline const char* OpName(ArithmeticOp op) {
  constexpr const char* kNames[] = {"add", "subtract", "multiply", "divide", "fma", "square root"};
  return kNames[static_cast<int>(op)];
}

// Codes in 1, 2 or 4 bytes each, between two strips that nobody may write to.
class Stored {
 public:
  Stored(int bytes, const std::vector<uint32_t>& words, size_t offset)
      : bytes_(bytes), begin_(kStrip + offset), n_(words.size()) {
    all_.assign(begin_ + n_ + kStrip, kCanary);
    std::copy(words.begin(), words.end(), all_.begin() + static_cast<ptrdiff_t>(begin_));
    bytes1_.assign(bytes == 1 ? all_.begin() : all_.end(), all_.end());
    bytes2_.assign(bytes == 2 ? all_.begin() : all_.end(), all_.end());
  }
  ConstCodes Get() const {
    if (bytes_ == 1) return std::span<const uint8_t>(bytes1_).subspan(begin_, n_);
    if (bytes_ == 2) return std::span<const uint16_t>(bytes2_).subspan(begin_, n_);
    return std::span<const uint32_t>(all_).subspan(begin_, n_);
  }
  Codes Out() {
    if (bytes_ == 1) return std::span<uint8_t>(bytes1_).subspan(begin_, n_);
    if (bytes_ == 2) return std::span<uint16_t>(bytes2_).subspan(begin_, n_);
    return std::span<uint32_t>(all_).subspan(begin_, n_);
  }
  // The elements. Fails the test when a strip was written to.
  std::vector<uint32_t> Words() const {
    std::vector<uint32_t> all = all_;
    if (bytes_ == 1) all.assign(bytes1_.begin(), bytes1_.end());
    if (bytes_ == 2) all.assign(bytes2_.begin(), bytes2_.end());
    const auto begin = all.begin() + static_cast<ptrdiff_t>(begin_);
    const auto end = begin + static_cast<ptrdiff_t>(n_);
    const auto untouched =
        std::count(all.begin(), begin, kCanary) + std::count(end, all.end(), kCanary);
    EXPECT_EQ(static_cast<size_t>(untouched), begin_ + kStrip) << "of " << n_ << " elements";
    return {begin, end};
  }

 private:
  static constexpr size_t kStrip = 80;
  static constexpr uint32_t kCanary = 165;
  int bytes_;
  size_t begin_, n_;
  std::vector<uint8_t> bytes1_;
  std::vector<uint16_t> bytes2_;
  std::vector<uint32_t> all_;
};

// Operands with their codes, and the target.
struct Problem {
  ArithmeticOp op = ArithmeticOp::kAdd;
  FormatSpec format[3];
  std::vector<uint32_t> codes[3];  // as many as the operation has operands
  EncodePlan to;
  ArrayRandom random = {kStream, 0};
  int bytes[3] = {1, 1, 1};

  size_t Size() const { return codes[0].size(); }
  bool Uses(int operand) const { return operand < Arity(op); }
};

struct Results {
  std::vector<uint32_t> codes;
  std::vector<uint8_t> flags;
  Flags all = 0;
};

inline Rounded Scalar(const Problem& p, size_t i) {
  Operand x[3];
  for (int k = 0; k < 3; ++k) {
    if (p.Uses(k)) x[k] = {p.format[k], p.codes[k][i] & p.format[k].CodeMask()};
  }
  uint32_t r = 0;
  if (p.to.rounding.mode == RoundingMode::kStochastic) {
    r = RandomBits(kStream, p.random.first_index + i, p.to.rounding.random_bits);
  }
  switch (p.op) {
    case ArithmeticOp::kAdd:
      return Add(x[0], x[1], p.to, r);
    case ArithmeticOp::kSubtract:
      return Subtract(x[0], x[1], p.to, r);
    case ArithmeticOp::kMultiply:
      return Multiply(x[0], x[1], p.to, r);
    case ArithmeticOp::kDivide:
      return Divide(x[0], x[1], p.to, r);
    case ArithmeticOp::kFma:
      return FusedMultiplyAdd(x[0], x[1], x[2], p.to, r);
    case ArithmeticOp::kSquareRoot:
      break;
  }
  return SquareRoot(x[0], p.to, r);
}

inline Results ScalarResults(const Problem& p) {
  Results results;
  for (size_t i = 0; i < p.Size(); ++i) {
    const Rounded r = Scalar(p, i);
    results.codes.push_back(r.code);
    results.flags.push_back(r.flags);
    results.all |= r.flags;
  }
  return results;
}

enum class Want { kFlagsOfElements, kFlagsOfAll, kNothing };
inline constexpr int kApart = -1;  // else the operand whose memory the output is

// Elements [begin, begin + n) of the problem by the array function.
inline Results ArrayResults(
    const Problem& p, Want want, int in_place = kApart, size_t offset = 0, size_t n = SIZE_MAX) {
  n = std::min(n, p.Size());
  std::vector<Stored> stored;
  ArrayOperand operand[3];
  for (int k = 0; k < 3; ++k) {
    std::vector<uint32_t> part;
    if (p.Uses(k)) part.assign(p.codes[k].begin(), p.codes[k].begin() + static_cast<ptrdiff_t>(n));
    stored.emplace_back(p.bytes[k], part, offset + static_cast<size_t>(k));
  }
  stored.emplace_back(p.to.format.StorageBytes(), std::vector<uint32_t>(n, 7), offset);
  for (size_t k = 0; k < 3; ++k) operand[k] = {p.format[k], stored[k].Get()};
  Stored& out = stored[in_place == kApart ? 3 : static_cast<size_t>(in_place)];
  Results results;
  results.flags.assign(want == Want::kFlagsOfElements ? n : 0, 0x80);
  results.all = Arithmetic(p.op,
                           operand[0],
                           operand[1],
                           operand[2],
                           p.to,
                           out.Out(),
                           p.random,
                           want == Want::kFlagsOfAll,
                           results.flags);
  results.codes = out.Words();
  return results;
}

inline std::string Describe(const Problem& p) {
  const auto& [mode, variant, bits] = p.to.rounding;
  return fmt::format("{} {} {} {} to {} {}{}, {} bits",
                     OpName(p.op),
                     ToString(p.format[0]),
                     ToString(p.format[1]),
                     ToString(p.format[2]),
                     Text(p.to),
                     ToString(variant),
                     p.to.tininess == Tininess::kAfterRounding ? "" : " before",
                     bits);
}

// The first `n` results are those of the scalar function.
inline testing::AssertionResult Same(const Problem& p,
                                     const Results& got,
                                     const Results& want,
                                     size_t n = SIZE_MAX) {
  n = std::min(n, p.Size());
  if (got.codes.size() != n) return testing::AssertionFailure() << "lengths differ";
  for (size_t i = 0; i < n; ++i) {
    const bool same_flags = got.flags.empty() || got.flags[i] == want.flags[i];
    if (got.codes[i] == want.codes[i] && same_flags) continue;
    return testing::AssertionFailure() << fmt::format(
               "{}: element {} of {} ({:#x}, {:#x}, {:#x}): {:#x}, flags {:#x}, not {:#x}, {:#x}",
               Describe(p),
               i,
               n,
               p.codes[0][i],
               p.Uses(1) ? p.codes[1][i] : 0,
               p.Uses(2) ? p.codes[2][i] : 0,
               got.codes[i],
               got.flags.empty() ? 0 : got.flags[i],
               want.codes[i],
               want.flags[i]);
  }
  return testing::AssertionSuccess();
}

// Formats of the operands and of the result.
struct Mixture {
  const char* a;
  const char* b;
  const char* c;
  const char* to;
};
inline constexpr Mixture Of(const char* name) { return {name, name, name, name}; }

inline constexpr Mixture kMixtures[] = {
    Of("e4m3fn"),
    Of("e5m2"),
    Of("e4m3"),
    Of("e3m4"),
    Of("e4m3fnuz"),
    Of("e5m2fnuz"),
    Of("e8m0fnu"),
    Of("e2m1fn"),
    Of("e2m3fn"),
    Of("int8"),
    Of("binary8p1se"),
    Of("binary8p4se"),
    Of("binary8p3sf"),
    Of("binary8p8ue"),
    Of("binary8p1uf"),
    Of("bnb-e4m3"),
    Of("bnb-e5m2"),
    Of("qpytorch-e5m2"),
    Of("fp16"),
    Of("bf16"),
    Of("tf32"),
    Of("fp32"),
    {"e4m3fn", "e5m2", "fp32", "bf16"},
    {"e4m3fn", "e4m3fn", "fp32", "fp32"},
    {"e4m3fn", "e4m3fn", "fp16", "fp16"},
    {"bf16", "bf16", "fp32", "fp32"},
    {"fp16", "fp16", "fp32", "fp32"},
    {"fp16", "bf16", "fp32", "e4m3fn"},
    {"e8m0fnu", "e4m3fn", "fp32", "fp16"},
    {"int8", "int8", "fp32", "fp32"},
    {"int8", "e8m0fnu", "int8", "bf16"},
    {"fp32", "fp32", "fp32", "e5m2"},
    {"fp32", "fp32", "fp32", "int8"},
    {"fp32", "fp32", "fp32", "e8m0fnu"},
    {"fp32", "fp32", "fp32", "binary8p4ue"},
    {"bnb-e4m3", "fp16", "bnb-e5m2", "bnb-e5m2"},
    {"e5m2", "e5m2", "e5m2", "e2m1fn"},
    {"e3m2fn", "fp32", "fp16", "tf32"},
    // The smallest product is 2^-150, half of float32's smallest number.
    Of("e4m3:bias=73"),
    // Quotients are normal in float32, and what they leave over is below its smallest number.
    {"e3m18:bias=129,inf=none,nan=none",
     "e2m19:bias=24,inf=none,nan=none",
     "e3m18:bias=103,inf=none,nan=none",
     "e3m18:bias=103,inf=none,nan=none"}};

// Every mode and policy, every stochastic variant with narrow and wide draws; both tininess rules.
inline std::vector<EncodePlan> Plans(const FormatSpec& format) {
  std::vector<EncodePlan> plans;
  for (Overflow policy : kPolicies) {
    for (RoundingMode mode : kDeterministicModes) {
      plans.push_back(MakeEncodePlan(format, {.mode = mode}, policy));
    }
  }
  for (int bits : {4, 8, 13, 16, 32}) {
    for (int v = 0; v < 3; ++v) {
      const Rounding rounding = {
          RoundingMode::kStochastic, static_cast<StochasticVariant>(v), bits};
      plans.push_back(MakeEncodePlan(format, rounding, kPolicies[(bits + v) % 3]));
    }
  }
  for (size_t i = 0; i < plans.size(); i += 2) plans[i].tininess = Tininess::kBeforeRounding;
  return plans;
}

// Gives each operand `n` codes: all triples of the smallest and largest, then random ones, most
// with random bits above the format's.
inline void FillWithRandomCodes(Problem& p, size_t n) {
  oracle::TestRandom random(41);
  for (int k = 0; k < 3; ++k) {
    p.bytes[k] = p.format[k].StorageBytes();
    p.codes[k].clear();
    if (!p.Uses(k)) continue;
    const uint32_t storage = p.bytes[k] == 4 ? ~0u : (1u << (8 * p.bytes[k])) - 1;
    for (const Operand& a : RandomCodes(p.format[k], n, 50 + static_cast<uint64_t>(k))) {
      p.codes[k].push_back(a.code | (random.Next32() & storage & ~p.format[k].CodeMask()));
    }
    const uint32_t ends[] = {1, 3 & p.format[k].CodeMask(), p.format[k].MaxFiniteCode()};
    constexpr size_t kPeriod[] = {1, 3, 9};
    for (size_t i = 0; i < std::min<size_t>(n, 27); ++i) p.codes[k][i] = ends[i / kPeriod[k] % 3];
  }
}

inline Problem MakeProblem(ArithmeticOp op,
                           const Mixture& mixture,
                           const EncodePlan& to,
                           size_t n) {
  Problem p;
  p.op = op;
  p.to = to;
  p.random.first_index = 1000003;
  const char* names[] = {mixture.a, mixture.b, mixture.c};
  for (int k = 0; k < 3; ++k) p.format[k] = Spec(names[k]);
  FillWithRandomCodes(p, n);
  return p;
}

// Any format that ValidateFormat accepts, without a subnormal gap.
inline FormatSpec RandomFormat(oracle::TestRandom& random) {
  const auto below = [&random](uint64_t n) { return static_cast<int>(random.Below(n)); };
  constexpr Infinity kInfinities[] = {Infinity::kNone, Infinity::kIeee, Infinity::kTopCode};
  constexpr Nan kNans[] = {Nan::kNone, Nan::kIeee, Nan::kAllOnes, Nan::kNegativeZero};
  for (;;) {
    FormatSpec format;
    format.exponent_bits = static_cast<int8_t>(1 + below(8));
    format.mantissa_bits = static_cast<int8_t>(below(24));
    const int middle = (1 << (format.exponent_bits - 1)) - 1;
    format.bias = static_cast<int16_t>(middle + (below(2) == 0 ? 0 : below(240) - 120));
    format.sign = below(4) == 0 ? Sign::kUnsigned : Sign::kSignMagnitude;
    format.infinity = kInfinities[below(3)];
    format.nan = kNans[below(4)];
    if (format.nan == Nan::kNegativeZero) format.zero = Zero::kUnsigned;
    format.overflow_to = format.HasInfinity() ? OverflowTo::kInfinity
                         : format.HasNan()    ? OverflowTo::kNan
                                              : OverflowTo::kMax;
    if (ErrorOf([&] { ValidateFormat(format, "random"); }) == kNoError) return format;
  }
}

inline EncodePlan Nearest(const char* name) { return MakeEncodePlan(Spec(name)); }

// A computation for each path through the vector code.
inline std::vector<Problem> ProblemsOfEveryPath(size_t n) {
  std::vector<Problem> problems;
  const Mixture mixtures[] = {Of("e4m3fn"),
                              Of("fp16"),
                              Of("bf16"),
                              Of("fp32"),
                              Of("int8"),
                              {"e4m3fn", "e5m2", "fp32", "bf16"},
                              {"bf16", "bf16", "fp32", "fp32"},
                              Of("bnb-e4m3")};
  for (const Mixture& mixture : mixtures) {
    for (ArithmeticOp op : kOps)
      problems.push_back(MakeProblem(op, mixture, Nearest(mixture.to), n));
    for (int bits : {4, 13, 32}) {
      const Rounding rounding = {RoundingMode::kStochastic, StochasticVariant::kA, bits};
      const EncodePlan to = MakeEncodePlan(Spec(mixture.to), rounding);
      problems.push_back(MakeProblem(kOps[bits % 6], mixture, to, n));
    }
  }
  return problems;
}

}  // namespace numsim
