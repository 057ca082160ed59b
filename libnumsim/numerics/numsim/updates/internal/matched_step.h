// The precision-aware update: it finds the factor alpha at which the step, rounded to the format of
// the weights, has the size that the learning rate asks for.
//
// With Q rounding to nearest even, saturating, and D_i(alpha) = Q(w_i + alpha u_i) - w_i, each
// rounded once from the exact sum, |D_i| and D_i u_i never decrease as alpha grows. So the sums
//   norm        S(alpha) = sum D_i^2       against T = (lr ||u||)^2
//   projection  S(alpha) = sum D_i u_i     against T = lr ||u||^2
// are ascending staircases (docs/updates.md has the proof). Let alpha* be the least float32 with
// S(alpha*) >= T. The weights that change between the float32 below alpha* and alpha* are the *tie
// set*; all other weights have the same value on both sides. The members change one after another,
// in ascending order of their random words (then of index). Let k >= 1 be the least number of
// changed members with S >= T. Then k members change, or k - 1 if that leaves sqrt S (norm) or S
// (projection) at least as close to sqrt T or T.
//
// If S is 0 with k - 1 changed members and above T with k, the target is below the least step, and
// SmallStep decides. The first k - 1 members change (their terms round to zero, see below). Under
// kNone the k-th never changes; under kOneAtRandom it changes if (R + 1/2) 2^-32 < p, with R the
// random word of SmallStep and p = sqrt T / |d| (norm) or T / fl64(d u) (projection).
//
// For the comparison S >= T, with d = fl64(w' - w), each term fl64(d d) or fl64(d u) is rounded to
// nearest even to a multiple of 2^(e - 50), where 2^e <= T < 2^(e + 1). So float64 sums of terms
// are exact up to 2^(e + 3), at least four times T, and greater sums are above T in any order of
// addition: the comparison does not depend on the order.
// T = fl64(lr^2 update_square) or fl64(lr update_square).
#pragma once

#include <span>

#include "numsim/rounding/encode_plan.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

enum class MatchedQuantity : uint8_t { kNorm, kProjection };

// The input of a matched step. Requires finite weights and update of equal length, an update that
// is not all zero, and learning_rate > 0.
struct MatchedProblem {
  const EncodePlan* plan = nullptr;  // nearest even, saturating
  std::span<const float> weights;
  std::span<const float> update;
  float learning_rate = 0;
  double update_square = 0;  // SquaredSum(update), > 0
  MatchedQuantity quantity = MatchedQuantity::kNorm;
  SmallStep small_step = SmallStep::kOneAtRandom;
  RandomStream random;       // element i uses RandomWord(random, first_index + i)
  uint64_t first_index = 0;  // SmallStep: RandomWord({seed, stream + 2^63}, first_index)
};

struct UpdateJob;
// Returns the problem of a job without its arrays, for weights with that SquaredSum of the update.
MatchedProblem MatchedProblemOf(const UpdateJob& job, double update_square);

struct MatchedStep {
  UpdateStatus status = UpdateStatus::kOk;  // kOk, kBelowMinStep, or kSaturated: out of reach
  float alpha = 0;                          // alpha*; 0 if the target is out of reach
  double matched = 0;                       // the S reached: sqrt S for the norm
  double target = 0;                        // T: sqrt T for the norm
  int passes = 0;                           // over all weights
};

// Takes a matched step and writes the new weights. Requires new_weights that overlap neither array of
// the problem.
// kBisection: doubles or halves alpha from the learning rate until S passes T, then halves the
// bracket down to two neighbouring float32, with a pass over all weights each time.
// kSelection: guesses a bracket from a sample, verifies it by one pass that keeps the weights that
// change within it, and continues with those weights only.
MatchedStep TakeMatchedStep(const MatchedProblem& problem,
                            MatchSolver solver,
                            std::span<float> new_weights);

}  // namespace numsim
