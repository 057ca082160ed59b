// The precision-aware update: the factor alpha at which a step that the format can hold has the
// size that was wanted.
//
// With Q rounding to nearest even, saturating, and D_i(alpha) = Q(w_i + alpha u_i) - w_i, each
// rounded once from the exact sum, |D_i| and D_i u_i never decrease as alpha grows. So the sums
//   norm        S(alpha) = sum D_i^2       against T = (lr ||u||)^2
//   projection  S(alpha) = sum D_i u_i     against T = lr ||u||^2
// are ascending staircases (docs/updates.md has the proof). Let alpha* be the least float32 with
// S(alpha*) >= T. The weights that change from the float32 below alpha* to alpha* are its *critical
// group*, all others have one value on both sides. They change one after another, in ascending
// order of their random words (then of index). Let k >= 1 be the least number of them with S >= T:
// k of them change, or k - 1 where that leaves sqrt S (norm) or S (projection) at least as close to
// sqrt T or T.
// Where S is 0 with k - 1 of them and above T with k, the target is below the least step:
// SmallStep. k - 1 change (what they add rounds to nothing, see below), and the k-th if (R + 1/2)
// 2^-32 < p, with R the word of SmallStep and p = sqrt T / |d| (norm) or T / fl64(d u)
// (projection), or never.
//
// Sums for the comparison S >= T: with d = fl64(w' - w), each term fl64(d d) or fl64(d u) is
// rounded to nearest even to a multiple of 2^(e - 50), 2^e <= T < 2^(e + 1). That makes float64
// sums of them exact up to 2^(e + 3), four times T at least, and sums beyond are above T in any
// order: the comparison depends on none.
// T = fl64(lr^2 update_square) or fl64(lr update_square).
#pragma once

#include <span>

#include "numsim/rounding/encode_plan.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

enum class MatchedQuantity : uint8_t { kNorm, kProjection };

// Finite weights and update of equal length, not all updates zero; learning_rate > 0.
struct MatchedProblem {
  const EncodePlan* plan = nullptr;  // nearest even, saturating
  std::span<const float> weights;
  std::span<const float> update;
  float learning_rate = 0;
  double update_square = 0;  // SquaredSum(update), > 0
  MatchedQuantity quantity = MatchedQuantity::kNorm;
  SmallStep small_step = SmallStep::kOneAtRandom;
  RandomStream random;       // element i draws RandomWord(random, first_index + i)
  uint64_t first_index = 0;  // SmallStep: RandomWord({seed, stream + 2^63}, first_index)
};

struct MatchedStep {
  UpdateStatus status = UpdateStatus::kOk;  // ok, below_min_step, or saturated: out of reach
  float alpha = 0;                          // alpha*; 0 where the target is out of reach
  double matched = 0;                       // what S came to, as sqrt for the norm
  double target = 0;                        // T, as sqrt for the norm
  int passes = 0;                           // over all weights, the one that writes included
};

// Writes the new weights. new_weights may be problem.weights.
// kBisection: doubles or halves alpha from the learning rate until S passes T, then halves the
// bracket down to two neighbouring float32, a pass over all weights each time.
// kSelection: guesses a bracket from a sample, checks it by one pass that keeps the weights which
// change within it, and goes on with these alone.
MatchedStep TakeMatchedStep(const MatchedProblem& problem,
                            MatchSolver solver,
                            std::span<float> new_weights);

}  // namespace numsim
