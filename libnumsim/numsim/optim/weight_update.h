// Rules that add an update to parameters kept in a small format: params + learning_rate * update,
// which rounding to the format may lose. They differ in what they try to preserve.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "numsim/formats/format_spec.h"
#include "numsim/kernels/cast.h"
#include "numsim/rounding/rounding.h"

namespace numsim {

// Q rounds to the format: to nearest even, and an overflow becomes what the format says
// (Overflow::kNonsaturate), as a cast in JAX or PyTorch does. fl32 rounds to float32.
enum class UpdateRule : uint8_t {
  // new = Q(fl32(params + fl32(fl32(learning_rate) update))).
  kNaive,
  // new = SR(params + learning_rate update): the sum in float64, rounded once, stochastically, to
  // the format. Not from a float32 sum, which would lose what is below 2^-24 |params|.
  // A word of N random bits knows probabilities in steps of 2^-N: variant A cuts off what is
  // finer, always toward a smaller magnitude.
  kStochastic,
  // The search of [Seed003] as it is printed there, its target included. alpha is float32,
  //   new(alpha) = Q(fl32(params + fl32(alpha update)))
  //   actual     = sum of squares of Q(fl32(new - params)): the difference is taken in the format,
  //                exact where new is within a factor 2 of params
  //   target     = learning_rate * sum of squares of update
  // and [low, high] = [0, 1] is halved until |actual - target| / target < tolerance, at most
  // `iterations` times: actual < target moves low to alpha, all else, NaN included, moves high.
  // The result is the last candidate, whether or not it is the closest.
  // Target and sums are float64, summed in blocks (see SquaredSum), where the source has float32
  // in an order that JAX leaves open.
  // Both sides being squares, a search that succeeds takes a step of norm sqrt(learning_rate) ||u||
  // and not of learning_rate ||u||.
  kBinarySearch,
};

enum class UpdateStatus : uint8_t {
  kOk,
  kUnchanged,     // no parameter moved, though learning_rate * update is not zero
  kNotConverged,  // the search ran out of iterations
  kZeroUpdate,    // learning_rate * update is zero everywhere
  kNonfinite,     // a NaN or infinity in params, update or the new parameters
};

// naive stochastic binary-search; ok unchanged not-converged zero-update nonfinite.
std::string_view Name(UpdateRule rule);
std::string_view Name(UpdateStatus status);
// Throws Error listing the rules.
UpdateRule ParseUpdateRule(std::string_view text);

// What a rule is given. `params` are values of the format, `update` any float32 numbers; equal
// lengths. learning_rate is finite and >= 0.
struct WeightUpdate {
  FormatSpec format;
  std::span<const float> params;
  std::span<const float> update;
  double learning_rate = 0;
};

// What else a rule reads; each rule reads its own.
struct UpdateSettings {
  ArrayRandom random;       // stochastic
  int random_bits = 32;     // stochastic, 1..32, variant A
  double tolerance = 1e-2;  // binary search: relative; 0 never ends the search early
  int iterations = 32;      // binary search, >= 1
};

struct UpdateOutcome {
  UpdateStatus status = UpdateStatus::kOk;  // the last in the order of the enum that applies
  // Binary search; 0 otherwise.
  float alpha = 0;      // of the candidate that was returned
  int iterations = 0;   // candidates that were tried
  double achieved = 0;  // `actual` of that candidate
  double target = 0;
};

// Writes the new parameters, values of the format. NaN and infinity follow from the arithmetic of
// the rule. new_params has the length of params and overlaps neither input.
// The bits depend neither on backend nor on thread count. One pass over the arrays for naive and
// stochastic, up to `iterations` passes for the search.
UpdateOutcome ApplyUpdate(UpdateRule rule,
                          const WeightUpdate& weights,
                          const UpdateSettings& settings,
                          std::span<float> new_params);

// Sum of x^2 in float64. Blocks of 4096 elements; in a block, element i is added to partial sum
// i mod 8 in ascending order, then the eight are added in order; then the blocks in order.
double SquaredSum(std::span<const float> x);

}  // namespace numsim
