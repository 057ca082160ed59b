// Operands at which a step may be rounded wrongly, and the check of RoundStepSerial on them against
// exact arithmetic.
#pragma once

#include <vector>

#include "tests/reference/oracle.h"

namespace numsim {

// Steps that share a factor, as one call takes them.
struct StepCases {
  float factor = 0;
  std::vector<float> base, direction;

  void Add(float b, float d) {
    base.push_back(b);
    direction.push_back(d);
  }
  size_t Size() const { return base.size(); }
};

// Any three of zeros, infinities, NaN, the smallest and largest numbers of both signs and 1.
std::vector<StepCases> SpecialSteps();

// `count` steps for each of some factors: half of them values of the format with a direction of
// their size or far from it, half any float32 patterns.
std::vector<StepCases> RandomSteps(const oracle::Grid& grid, size_t count, uint64_t seed);

// Exact sums at the values of a format and at the ties between them, and beside these by as little
// as float32 operands allow: far below the last bit of a float32 or float64 sum. Reached with a
// small addend, by cancellation, and with products that float32 cannot hold. `positions` places of
// the format, among them its smallest and largest, of either sign.
std::vector<StepCases> TieSteps(const oracle::Grid& grid, size_t positions, uint64_t seed);

// Sums within the range of the format of which base or product are beyond float32's.
std::vector<StepCases> WideProductSteps();

// Every mode and policy; stochastic: each variant with 1, 7, 16 and 32 bits, and variant A with
// saturation with five numbers of bits.
std::vector<oracle::Setting> StepSettings();

// Checks RoundStepSerial on every backend under those settings. Any NaN will do for a NaN.
void CheckSteps(const oracle::Grid& grid,
                const std::vector<StepCases>& steps,
                const std::vector<oracle::Setting>& settings);

}  // namespace numsim
