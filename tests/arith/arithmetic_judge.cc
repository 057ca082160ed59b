#include "tests/arith/arithmetic_judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "numsim/formats/format_table.h"
#include "tests/arith/operand_codes.h"
#include "tests/reference/inputs.h"
#include "tests/support/sampling.h"
#include "tests/support/vocabulary.h"

namespace numsim {
namespace {

using oracle::Operation;

constexpr uint64_t kReportedInFull = 4;

Tininess ToLibrary(oracle::Tininess tininess) {
  return tininess == oracle::Tininess::kAfterRounding ? Tininess::kAfterRounding
                                                      : Tininess::kBeforeRounding;
}

oracle::Grid GridOf(std::string_view name) { return oracle::Grid(oracle::FindFormat(name)); }

// The random word of a case: any fixed function of its codes will do.
uint32_t WordFor(const OperandCodes& codes, int64_t n) {
  const uint64_t seed = codes[0] + (uint64_t{codes[1]} << 20) + (uint64_t{codes[2]} << 40);
  return oracle::TestRandom(seed + 977 * static_cast<uint64_t>(n)).Next32();
}

// "inexact underflow", or "none".
std::string DescribeFlags(Flags flags) {
  constexpr const char* kNames[] = {
      "inexact", "underflow", "overflow", "divide-by-zero", "invalid"};
  std::string text;
  for (int i = 0; i < 5; ++i) {
    if (flags >> i & 1) text += std::string(text.empty() ? "" : " ") + kNames[i];
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Rounded Calculate(Operation operation,
                  const std::array<Operand, 3>& x,
                  const EncodePlan& to,
                  uint32_t random) {
  switch (operation) {
    case Operation::kAdd:
      return Add(x[0], x[1], to, random);
    case Operation::kSubtract:
      return Subtract(x[0], x[1], to, random);
    case Operation::kMultiply:
      return Multiply(x[0], x[1], to, random);
    case Operation::kDivide:
      return Divide(x[0], x[1], to, random);
    case Operation::kFusedMultiplyAdd:
      return FusedMultiplyAdd(x[0], x[1], x[2], to, random);
    case Operation::kFusedAddAdd:
      return FusedAddAdd(x[0], x[1], x[2], to, random);
    case Operation::kSquareRoot:
      return SquareRoot(x[0], to, random);
    case Operation::kReciprocal:
      return Reciprocal(x[0], to, random);
    case Operation::kRemainder:
      return Remainder(x[0], x[1], to, random);
    case Operation::kConvert:
      break;
  }
  return Convert(x[0], to, random);
}

ArithmeticJudge::ArithmeticJudge(const std::array<std::string_view, 3>& operands,
                                 std::string_view target,
                                 const std::vector<oracle::Setting>& settings,
                                 TininessRules rules)
    : grids_{GridOf(operands[0]), GridOf(operands[1]), GridOf(operands[2])},
      target_(GridOf(target)) {
  for (int i = 0; i < 3; ++i) {
    names_[i] = operands[i];
    operands_[i].format = ParseFormat(operands[i]).spec;
    if (operands_[i].format.Bits() <= 8) tables_[i] = oracle::AllExact(grids_[i]);
  }
  const FormatSpec spec = ParseFormat(target).spec;
  for (const oracle::Setting& setting : settings) {
    for (oracle::Tininess tininess :
         {oracle::Tininess::kAfterRounding, oracle::Tininess::kBeforeRounding}) {
      if (rules == TininessRules::kAfterRounding && tininess != oracle::Tininess::kAfterRounding) {
        continue;
      }
      EncodePlan plan = MakeEncodePlan(spec, RoundingOf(setting), ToLibrary(setting.policy));
      plan.tininess = ToLibrary(tininess);
      cases_.push_back({setting, tininess, plan});
    }
    if (setting.mode == oracle::Mode::kStochastic) modes_ = oracle::Modes::kAll;
  }
}

ArithmeticJudge::ArithmeticJudge(std::string_view format,
                                 const std::vector<oracle::Setting>& settings,
                                 TininessRules rules)
    : ArithmeticJudge({format, format, format}, format, settings, rules) {}

ArithmeticJudge::~ArithmeticJudge() {
  if (disagreements_ > kReportedInFull) {
    ADD_FAILURE() << target_.format().name << ": " << disagreements_ << " disagreements in all";
  }
}

void ArithmeticJudge::SetOperands(int count, const OperandCodes& codes) {
  for (int i = 0; i < count; ++i) {
    operands_[i].code = codes[i];
    decoded_[i] = tables_[i].empty() ? oracle::ExactOf(grids_[i], codes[i]) : tables_[i][codes[i]];
  }
}

void ArithmeticJudge::Compare(const Case& c,
                              std::string_view operation,
                              int arity,
                              uint32_t random,
                              Rounded got,
                              oracle::Outcome expected) {
  ++checked_;
  if (got.code == expected.code && got.flags == expected.flags) return;
  if (++disagreements_ > kReportedInFull) return;
  std::string operands;
  for (int i = 0; i < arity; ++i) {
    operands += fmt::format(" {} 0x{:x}", names_[i], operands_[i].code);
  }
  ADD_FAILURE() << fmt::format(
      "{}{} -> {} {}, tiny {} rounding, word 0x{:08x}: library 0x{:x} {}, "
      "oracle 0x{:x} {}",
      operation,
      operands,
      target_.format().name,
      Describe(c.setting),
      c.tininess == oracle::Tininess::kAfterRounding ? "after" : "before",
      random,
      got.code,
      DescribeFlags(got.flags),
      expected.code,
      DescribeFlags(expected.flags));
}

void ArithmeticJudge::Check(Operation operation, const OperandCodes& codes) {
  const int arity = oracle::Arity(operation);
  SetOperands(arity, codes);
  const oracle::Placement placement(target_, oracle::Exact(operation, decoded_), modes_);
  const uint32_t random = modes_ == oracle::Modes::kAll ? WordFor(codes, 0) : 0;
  for (const Case& c : cases_) {
    Compare(c,
            oracle::ToString(operation),
            arity,
            random,
            Calculate(operation, operands_, c.plan, random),
            placement.Round(c.setting, c.tininess, random));
  }
}

void ArithmeticJudge::CheckScaled(uint32_t code, int64_t n) {
  SetOperands(1, {code});
  const oracle::Placement placement(target_, oracle::ExactScaled(decoded_[0], n), modes_);
  const uint32_t random = WordFor({code}, n);
  for (const Case& c : cases_) {
    Compare(c,
            fmt::format("ScaleByPowerOfTwo {}", n),
            1,
            random,
            ScaleByPowerOfTwo(operands_[0], n, c.plan, random),
            placement.Round(c.setting, c.tininess, random));
  }
}

void ArithmeticJudge::CheckWordCount(Operation operation, const OperandCodes& codes) {
  const int arity = oracle::Arity(operation);
  SetOperands(arity, codes);
  const oracle::Placement placement(target_, oracle::Exact(operation, decoded_), modes_);
  for (const Case& c : cases_) {
    if (c.setting.mode != oracle::Mode::kStochastic) continue;
    const int bits = c.setting.random_bits;
    const uint64_t words = uint64_t{1} << bits;
    const uint64_t stay = words - placement.WordsAway(c.setting.variant, bits);
    const auto library = [&](uint64_t word) {
      return Calculate(operation, operands_, c.plan, static_cast<uint32_t>(word));
    };
    // Words from the returned one on do not give the code of word 0. Monotone
    // in the word.
    const uint32_t first_code = library(0).code;
    uint64_t low = 0;
    uint64_t high = words;
    while (low + 1 < high) {
      const uint64_t middle = (low + high) / 2;
      (library(middle).code == first_code ? low : high) = middle;
    }
    const bool visible = library(words - 1).code != placement.Round(c.setting, c.tininess, 0).code;
    ++checked_;
    if (visible && high != stay && ++disagreements_ <= kReportedInFull) {
      ADD_FAILURE() << oracle::ToString(operation) << " to " << target_.format().name << " "
                    << Describe(c.setting)
                    << fmt::format(": codes {:x} {:x} {:x}: ", codes[0], codes[1], codes[2])
                    << words - high << " words round away, of the oracle " << words - stay;
    }
    for (uint64_t word : {uint64_t{0}, stay - 1, stay, words - 1}) {
      if (word >= words) continue;
      const auto random = static_cast<uint32_t>(word);
      Compare(c,
              oracle::ToString(operation),
              arity,
              random,
              library(word),
              placement.Round(c.setting, c.tininess, random));
    }
  }
}

void ArithmeticJudge::CheckAll(Operation operation, uint64_t stride, uint64_t first) {
  uint64_t count = 1;
  for (int i = 0; i < oracle::Arity(operation); ++i) count *= Count(i);
  for (uint64_t number = first; number < count; number += stride * SampleEvery(11)) {
    OperandCodes codes{};
    uint64_t rest = number;
    for (int i = 0; i < oracle::Arity(operation); ++i) {
      codes[i] = static_cast<uint32_t>(rest % Count(i));
      rest /= Count(i);
    }
    Check(operation, codes);
  }
}

void ArithmeticJudge::CheckRandom(uint64_t seed, int count) {
  const oracle::Format& f = target_.format();
  oracle::TestRandom random(seed);
  const uint32_t one = static_cast<uint32_t>(f.bias) << f.mantissa_bits;
  for (unsigned i = 0; i < static_cast<unsigned>(count); i += SampleEvery(11)) {
    const uint32_t a = RandomCode(random, f, one);
    const uint32_t b = RandomCode(random, f, a);
    const OperandCodes codes = {a, b, RandomCode(random, f, i % 2 ? a : one)};
    for (Operation operation : oracle::kOperations) Check(operation, codes);
  }
}

}  // namespace numsim
