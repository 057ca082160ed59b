// The terms of matched_step.h's sums, in units of their quantum.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "numsim/base/host_device.h"
#include "numsim/updates/internal/matched_step.h"

namespace numsim {

// Candidates for alpha are numbered by the bits of the float32, which ascend with it.
using AlphaKey = uint32_t;
inline constexpr AlphaKey kGreatestAlpha = 0x7F7FFFFF;

NUMSIM_HOST_DEVICE inline float AlphaOf(AlphaKey key) { return std::bit_cast<float>(key); }
inline AlphaKey KeyOf(float alpha) { return std::bit_cast<AlphaKey>(alpha); }

// S and T in units of 2^(e - 50): T lies in [2^50, 2^51), and sums of terms are exact up to 2^53.
struct MatchedTerms {
  MatchedQuantity quantity;
  double quantum;          // what a unit is worth
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

  // Of a weight `w` with update `u` that becomes `v`.
  NUMSIM_HOST_DEVICE double operator()(float w, float u, float v) const {
    const double d = static_cast<double>(v) - static_cast<double>(w);
    const double other = quantity == MatchedQuantity::kNorm ? d : static_cast<double>(u);
    return Rounded(d * other * inverse_quantum);
  }

  // What is compared, in its own unit: sqrt S or S.
  double Size(double sum) const {
    return quantity == MatchedQuantity::kNorm ? std::sqrt(sum * quantum) : sum * quantum;
  }

 private:
  // To nearest even; x >= 0. From 2^52 on a float64 has no fraction.
  NUMSIM_HOST_DEVICE static double Rounded(double x) {
    constexpr double kShift = 0x1p52;
    return x < kShift ? (x + kShift) - kShift : x;
  }
};

// Sum of terms(weights[i], update[i], values[i]). Equal lengths.
double SumTerms(const MatchedTerms& terms,
                std::span<const float> weights,
                std::span<const float> update,
                std::span<const float> values);

// Writes the ascending i with a[i] != b[i], which a NaN always is, and returns how many. Requires
// equal lengths below 2^32 and room for all in `places`.
size_t FindDifferent(std::span<const float> a,
                     std::span<const float> b,
                     std::span<uint32_t> places);

}  // namespace numsim
