// The matched step as numsim/updates/internal/matched_step.h defines it, in brute force: sums over
// all weights for any alpha, alpha* by halving the whole range of float32, the tie set one by one.
// Of the library only the types that go in and out, and the random words.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "numsim/updates/internal/matched_step.h"
#include "tests/reference/oracle.h"

namespace numsim {

// The required result of a step.
struct MatchedResult {
  MatchedStep step;  // passes are left out
  std::vector<float> weights;
  double matched_below = 0;  // as step.matched, of the float32 below alpha*
  double matched_at = 0;     // ... and of alpha* itself
  double greatest_jump = 0;  // the largest |d| or fl64(d u) by which one of the group changes
  size_t group = 0;          // weights in the tie set
  size_t changed = 0;        // of these, those that changed
};

class MatchedDefinition {
 public:
  // All of Q(w_i + alpha u_i).
  using RoundAll = std::function<std::vector<float>(float alpha)>;

  // Keeps a copy of `problem`, whose arrays must outlive this.
  MatchedDefinition(const MatchedProblem& problem, RoundAll round_all);

  // Whether S(alpha) >= T.
  bool Reaches(float alpha) const;
  // The least float32 that reaches T; 0 where none does.
  float LeastAlpha() const;
  // The step at alpha*. Requires that alpha reaches T and the float32 below does not.
  MatchedResult StepAt(float alpha) const;
  MatchedResult OutOfReach() const;
  // LeastAlpha and what follows.
  MatchedResult Step() const;

 private:
  double TermOf(size_t i, float new_weight) const;
  double UnitsOf(size_t i, float new_weight) const;
  double SumOf(const std::vector<float>& new_weights) const;
  double MatchedOf(double units) const;
  bool MovesTheLast(double term) const;
  std::vector<size_t> Group(const std::vector<float>& below, const std::vector<float>& at) const;
  double Jump(size_t i, float from, float to) const;

  MatchedProblem problem_;
  RoundAll round_all_;
  double target_;      // T
  int unit_exponent_;  // sums count multiples of 2^unit_exponent_
};

// By exact arithmetic.
MatchedDefinition::RoundAll RoundAllByOracle(const MatchedProblem& problem,
                                             const oracle::Grid& grid);

}  // namespace numsim
