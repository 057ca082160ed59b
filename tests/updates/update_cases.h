// Inputs and comparisons for the tests of update rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/updates/update_rule.h"
#include "tests/reference/updates/update_reference.h"

namespace update_cases {

// Formats of every kind that can hold negative weights: with and without infinities, NaNs, -0,
// subnormals in reach of float32's, a subnormal gap, from 3 to 32 bits. Known to the table or the
// parser and to the oracle.
const std::vector<std::string>& SignedFormats();

struct Arrays {
  std::vector<float> weights, update;
};

// Any finite codes as weights, -0 among them; updates for that learning rate (> 0) from far below
// the gaps to far beyond the range: ties, quarters, zeros, steps back through zero.
Arrays DrawHard(std::string_view format, float learning_rate, size_t n, uint64_t seed);
// Weights with the spread of a normal distribution, rounded to the format, and normal updates.
Arrays DrawNormal(std::string_view format, size_t n, uint64_t seed);

// A format, rule and numbers for ApplyUpdate, with rows * cols numbers.
struct Case {
  std::string format;
  numsim::UpdateRule rule;
  Arrays arrays;
  size_t rows = 1, cols = 0;
  float learning_rate = 0, weight_decay = 0;
  update_reference::State state;

  numsim::MatrixShape Shape() const { return {rows, cols}; }
  numsim::RandomStream random = {5, 77};
};

// One row; a state from StartUpdates that goes with the weights.
Case MakeCase(std::string_view format, std::string_view rule, Arrays arrays, float learning_rate);
Case MakeCase(std::string_view format,
              const numsim::UpdateRule& rule,
              Arrays arrays,
              float learning_rate);

// Gives it the state of StartUpdates for the weights, rows and columns that it has now.
void Restart(Case& c);
// Of bf16, with a state that some steps have left behind.
Case WithHistory(std::string_view rule, size_t n);

numsim::WeightUpdate StepOf(const Case& c);
// A state as numsim's for a matrix of that shape at that place, and back from any place.
numsim::UpdateState ToUpdateState(const update_reference::State& state,
                                  numsim::MatrixShape shape,
                                  numsim::Place place = {});
update_reference::State FromUpdateState(const numsim::UpdateState& state);
// StartUpdates of vectors.
update_reference::State Start(const numsim::UpdateRule& rule,
                              const numsim::FormatSpec& format,
                              numsim::MatrixShape shape,
                              const std::vector<float>& initial,
                              std::vector<float>& weights);
// By numsim, on a copy of the state.
update_reference::Result Apply(const Case& c);
update_reference::Result ApplyInPlace(const Case& c);
// By the reference.
update_reference::Result Expected(const Case& c);

// The same bits; NaN equals NaN.
void ExpectSameBits(const std::vector<float>& actual, const std::vector<float>& expected);
void ExpectSameState(const update_reference::State& actual,
                     const update_reference::State& expected);
// Counts, status and alpha to the bit; sums up to the rounding of float64 sums.
void ExpectSameOutcome(const numsim::UpdateOutcome& actual, const numsim::UpdateOutcome& expected);
// Every field to the bit, NaN being equal to NaN.
void ExpectIdenticalOutcome(const numsim::UpdateOutcome& a, const numsim::UpdateOutcome& b);
// All of the above, groups included.
void ExpectSameResult(const update_reference::Result& actual,
                      const update_reference::Result& expected);
// Apply against Expected, on every backend, in place and not.
void ExpectAsDefined(const Case& c);
// The same over several steps with updates of ever new kinds and a state that has a history.
void ExpectStepsAsDefined(Case c, int steps);

}  // namespace update_cases
