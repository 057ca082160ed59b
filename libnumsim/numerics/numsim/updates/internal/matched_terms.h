// The terms of the sums that matched_step.h defines, in units of their quantum.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "numsim/base/host_device.h"
#include "numsim/updates/internal/matched_step.h"

namespace numsim {

// A candidate for alpha, given by the bits of the float32: keys ascend with alpha.
using AlphaKey = uint32_t;
inline constexpr AlphaKey kGreatestAlpha = 0x7F7FFFFF;

NUMSIM_HOST_DEVICE inline float AlphaOf(AlphaKey key) { return std::bit_cast<float>(key); }
inline AlphaKey KeyOf(float alpha) { return std::bit_cast<AlphaKey>(alpha); }

// Computes the terms of S, and T, in units (quanta) of 2^(e - 50): T is in [2^50, 2^51), and sums
// of terms are exact up to 2^53.
struct MatchedTerms {
  MatchedQuantity quantity;
  double quantum;          // the value of a unit
  double inverse_quantum;  // both powers of two
  double target = 0;       // T

  explicit MatchedTerms(const MatchedProblem& problem) : quantity(problem.quantity) {
    const double lr = static_cast<double>(problem.learning_rate);
    const double factor = quantity == MatchedQuantity::kNorm ? lr * lr : lr;
    const double exact_target = factor * problem.update_square;
    quantum = std::ldexp(1.0, std::ilogb(exact_target) - 50);
    inverse_quantum = 1 / quantum;
    target = exact_target * inverse_quantum;
  }

  // Returns the term of a weight `w` with update `u` that becomes `v`, in quanta.
  NUMSIM_HOST_DEVICE double operator()(float w, float u, float v) const {
    const double d = static_cast<double>(v) - static_cast<double>(w);
    const double other = quantity == MatchedQuantity::kNorm ? d : static_cast<double>(u);
    return Rounded(d * other * inverse_quantum);
  }

  // Returns the quantity that is compared, sqrt S (norm) or S (projection), for a sum in quanta.
  double Size(double sum) const {
    return quantity == MatchedQuantity::kNorm ? std::sqrt(sum * quantum) : sum * quantum;
  }

 private:
  // Rounds to the nearest even integer. Requires x >= 0. From 2^52 on a float64 has no fraction.
  NUMSIM_HOST_DEVICE static double Rounded(double x) {
    constexpr double kShift = 0x1p52;
    return x < kShift ? (x + kShift) - kShift : x;
  }
};

// Returns the sum of terms(weights[i], update[i], values[i]). Requires equal lengths.
double SumTerms(const MatchedTerms& terms,
                std::span<const float> weights,
                std::span<const float> update,
                std::span<const float> values);

// Weights, update and values at both ends of a bracket, of `count` weights.
struct BracketValues {
  const float* weights;
  const float* update;
  const float* at_low;
  const float* at_high;
  size_t count;
};
struct BracketValuesOut {
  float* weights;
  float* update;
  float* at_low;
  float* at_high;
  uint64_t* index;
};

// Copies, in ascending order, every weight i whose values at both ends have different bits, with
// first + i as its index, and returns their number. Requires `to` to have room for all.
size_t CopyDifferent(const BracketValues& from, uint64_t first, const BracketValuesOut& to);

// Writes to `places`, in ascending order, every i for which a[i] and b[i] have different bits, and
// returns their number. Requires equal lengths below 2^32, and `places` at least as long.
size_t FindDifferent(std::span<const float> a,
                     std::span<const float> b,
                     std::span<uint32_t> places);

}  // namespace numsim
