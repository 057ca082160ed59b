// Compares elementary functions of the library with MPFR's, code by code.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "numsim/arith/elementary.h"
#include "tests/reference/arithmetic.h"
#include "tests/reference/elementary.h"

namespace numsim {

oracle::Function ToReference(ElementaryFunction function);

// A source format and targets, each under every given setting and both rules of tininess. Reports
// the first disagreements in full and then the number of all of them.
class ElementaryJudge {
 public:
  ElementaryJudge(std::string_view source,
                  const std::vector<std::string_view>& targets,
                  const std::vector<oracle::Setting>& settings);
  ~ElementaryJudge();
  ElementaryJudge(const ElementaryJudge&) = delete;
  ElementaryJudge& operator=(const ElementaryJudge&) = delete;

  // Results and flags under every setting, all of them deterministic.
  void Check(ElementaryFunction function, uint32_t code);
  // The results of the last random word that rounds toward zero and of the first that rounds away,
  // which the exact number of such words tells, under every setting, all of them stochastic.
  void CheckWords(ElementaryFunction function, uint32_t code);
  // Check of every `stride`-th code.
  void CheckAll(ElementaryFunction function, uint32_t stride = 1);

  uint64_t Codes() const { return uint64_t{source_.format.CodeMask()} + 1; }

 private:
  struct Case {
    oracle::Setting setting;
    oracle::Tininess tininess;
    EncodePlan plan;
  };
  struct Target {
    oracle::Grid grid;
    std::vector<Case> cases;
  };

  void Compare(const Case& c,
               ElementaryFunction function,
               uint32_t code,
               Rounded got,
               oracle::Outcome expected);

  oracle::Grid grid_;
  Operand source_;
  std::vector<Target> targets_;
  uint64_t checked_ = 0;
  uint64_t disagreements_ = 0;
};

}  // namespace numsim
