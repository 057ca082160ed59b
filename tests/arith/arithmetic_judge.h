// Compares the library's arithmetic with the oracle, case by case: code and
// flags.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/arith/arith.h"
#include "tests/reference/arithmetic.h"

namespace numsim {

// Codes of up to three operands; the rest is not read.
using OperandCodes = std::array<uint32_t, 3>;

// The function of arith.h for that operation.
Rounded Calculate(oracle::Operation operation,
                  const std::array<Operand, 3>& operands,
                  const EncodePlan& to,
                  uint32_t random);

// Both tininess rules, or that of the hardware alone.
enum class TininessRules { kBoth, kAfterRounding };

// Operand formats and a target, under several settings. Reports the first
// disagreements in full and then the number of all of them. One thread at a
// time.
class ArithmeticJudge {
 public:
  ArithmeticJudge(const std::array<std::string_view, 3>& operands,
                  std::string_view target,
                  const std::vector<oracle::Setting>& settings,
                  TininessRules rules = TininessRules::kBoth);
  // All in one format.
  ArithmeticJudge(std::string_view format,
                  const std::vector<oracle::Setting>& settings,
                  TininessRules rules = TininessRules::kBoth);
  ~ArithmeticJudge();
  ArithmeticJudge(const ArithmeticJudge&) = delete;
  ArithmeticJudge& operator=(const ArithmeticJudge&) = delete;

  // Under every setting. Stochastic ones take a word that depends on the codes.
  void Check(oracle::Operation operation, const OperandCodes& codes);
  void CheckScaled(uint32_t code, int64_t n);
  // Stochastic settings: the number of words that round away, found by halving
  // the words of the library, and the results on both sides of the limit.
  void CheckWordCount(oracle::Operation operation, const OperandCodes& codes);

  // Every `stride`-th of all pairs (triples, codes) of codes, from number
  // `first` on.
  void CheckAll(oracle::Operation operation, uint64_t stride = 1, uint64_t first = 0);
  // Every operation on `count` triples of random codes, many of them near 1 or near each other.
  // Requires operands in the format of the target.
  void CheckRandom(uint64_t seed, int count);

  // One more than the largest code of operand i.
  uint64_t Count(int i) const { return uint64_t{1} << operands_[i].format.Bits(); }
  uint64_t checked() const { return checked_; }

 private:
  struct Case {
    oracle::Setting setting;
    oracle::Tininess tininess;
    EncodePlan plan;
  };

  // Decodes into decoded_ and sets the codes of operands_.
  void SetOperands(int count, const OperandCodes& codes);
  void Compare(const Case& c,
               std::string_view operation,
               int arity,
               uint32_t random,
               Rounded got,
               oracle::Outcome expected);

  std::array<oracle::Grid, 3> grids_;
  std::array<Operand, 3> operands_;
  std::array<std::string, 3> names_;
  std::array<std::vector<oracle::ExactNumber>, 3> tables_;  // of formats of up to 8 bits
  std::array<oracle::ExactNumber, 3> decoded_;
  oracle::Grid target_;
  std::vector<Case> cases_;
  oracle::Modes modes_ = oracle::Modes::kDeterministic;
  uint64_t checked_ = 0;
  uint64_t disagreements_ = 0;
};

}  // namespace numsim
