// The four verdicts on a claim, and the one rule by which measured numbers lead to them.
// docs/verdicts.md explains it to readers of a summary.
//
// A claim is judged in cases: one per format, pair, training or length. The interval of a case's
// number answers the claim, or is too wide to answer it. The answers of all cases give the verdict.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "numsim/stats/moments.h"

namespace numsim::experiments {

inline constexpr std::string_view kHolds = "holds";
inline constexpr std::string_view kDoesNotHold = "does not hold";
inline constexpr std::string_view kHoldsInPart = "holds in part";
inline constexpr std::string_view kNotMeasured = "not measured";

// The answer of one case. kPartly: the claim is confirmed in a weaker form that its text names.
// kUndecided: the number is NaN, has no interval, or its interval contains both what the claim says
// and what would contradict it.
enum class Answer { kYes, kPartly, kNo, kUndecided };

// Answers "is it above `limit`?": kYes if the whole interval is above the limit, kNo if none of it
// is, kUndecided otherwise. An end that is NaN leaves it undecided; an infinite estimate
// (a training that diverged) is above every limit.
Answer IsAbove(const Estimate& estimate, double limit);

// Answers "is it below `limit`?": as IsAbove with the sides exchanged.
Answer IsBelow(const Estimate& estimate, double limit);

// Answers "is it at most `limit`?" where values from `contradicting` >= `limit` on contradict it:
// kYes if the value is at most the limit and the whole interval below `contradicting`; kNo if the
// whole interval is above the limit; kUndecided otherwise. IsAtLeast exchanges the sides.
Answer IsAtMost(const Estimate& estimate, double limit, double contradicting);
Answer IsAtLeast(const Estimate& estimate, double limit, double contradicting);

// Answers "is it `claimed`?": kYes if the interval contains the claimed value and lies between
// `low` and `high`, the nearest values that contradict the claim; kNo if it does not contain the
// claimed value; kUndecided if it contains both, or if an end is NaN.
Answer IsEqual(const Estimate& estimate, double claimed, double low, double high);

// Answers "is it within `tolerance` of `claimed`?": kYes if the whole interval is, kNo if none of
// it is, kUndecided otherwise.
Answer IsNear(const Estimate& estimate, double claimed, double tolerance);

// Returns kYes for true and kNo for false: for facts, which have no interval.
Answer AnswerOf(bool yes);

// Exchanges kYes and kNo.
Answer Opposite(Answer answer);

// The answers of all cases of a claim.
class Tally {
 public:
  void Add(Answer answer);
  void Add(const Tally& other);

  size_t Yes() const { return yes_; }
  size_t Partly() const { return partly_; }
  size_t Undecided() const { return undecided_; }
  size_t Cases() const { return yes_ + partly_ + no_ + undecided_; }
  // Returns the verdict:
  //   not measured   no case is decided
  //   holds          every case is a yes
  //   does not hold  some case is a no, and none a yes or a partly
  //   holds in part  otherwise
  std::string Verdict() const;
  // As Verdict, but one case in ten may be a no or undecided in a claim that holds: for claims that
  // intervals contain a value, which one true interval in 20 does not.
  std::string VerdictOfMost() const;
  // Returns "2 of 3 undecided", or "" if every case is decided.
  std::string UndecidedText() const;

 private:
  size_t yes_ = 0, partly_ = 0, no_ = 0, undecided_ = 0;
};

}  // namespace numsim::experiments
