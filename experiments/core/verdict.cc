#include "experiments/core/verdict.h"

#include <fmt/format.h>

#include <cmath>

namespace numsim::experiments {
namespace {

Estimate Negated(const Estimate& estimate) {
  return {-estimate.value, -estimate.high, -estimate.low};
}

bool HasInterval(const Estimate& estimate) {
  return !std::isnan(estimate.value) && !std::isnan(estimate.low) && !std::isnan(estimate.high);
}

}  // namespace

Answer IsAbove(const Estimate& estimate, double limit) {
  if (!HasInterval(estimate)) return Answer::kUndecided;
  if (estimate.low > limit) return Answer::kYes;
  return estimate.high <= limit ? Answer::kNo : Answer::kUndecided;
}

Answer IsBelow(const Estimate& estimate, double limit) {
  return IsAbove(Negated(estimate), -limit);
}

Answer IsAtMost(const Estimate& estimate, double limit, double contradicting) {
  if (!HasInterval(estimate)) return Answer::kUndecided;
  if (estimate.low > limit) return Answer::kNo;
  return estimate.value <= limit && estimate.high < contradicting ? Answer::kYes
                                                                  : Answer::kUndecided;
}

Answer IsAtLeast(const Estimate& estimate, double limit, double contradicting) {
  return IsAtMost(Negated(estimate), -limit, -contradicting);
}

Answer IsEqual(const Estimate& estimate, double claimed, double low, double high) {
  if (!HasInterval(estimate)) return Answer::kUndecided;
  if (claimed < estimate.low || estimate.high < claimed) return Answer::kNo;
  return low < estimate.low && estimate.high < high ? Answer::kYes : Answer::kUndecided;
}

Answer IsNear(const Estimate& estimate, double claimed, double tolerance) {
  if (!HasInterval(estimate)) return Answer::kUndecided;
  const double low = claimed - tolerance, high = claimed + tolerance;
  if (estimate.high < low || high < estimate.low) return Answer::kNo;
  return low <= estimate.low && estimate.high <= high ? Answer::kYes : Answer::kUndecided;
}

Answer AnswerOf(bool yes) { return yes ? Answer::kYes : Answer::kNo; }

Answer Opposite(Answer answer) {
  return answer == Answer::kYes ? Answer::kNo : answer == Answer::kNo ? Answer::kYes : answer;
}

void Tally::Add(Answer answer) {
  yes_ += answer == Answer::kYes;
  partly_ += answer == Answer::kPartly;
  no_ += answer == Answer::kNo;
  undecided_ += answer == Answer::kUndecided;
}

void Tally::Add(const Tally& other) {
  yes_ += other.yes_;
  partly_ += other.partly_;
  no_ += other.no_;
  undecided_ += other.undecided_;
}

std::string Tally::Verdict() const {
  if (yes_ + partly_ + no_ == 0) return std::string(kNotMeasured);
  if (yes_ == Cases()) return std::string(kHolds);
  return std::string(yes_ + partly_ == 0 ? kDoesNotHold : kHoldsInPart);
}

std::string Tally::VerdictOfMost() const {
  const bool most = yes_ > 0 && partly_ == 0 && 10 * yes_ >= 9 * Cases();
  return most ? std::string(kHolds) : Verdict();
}

std::string Tally::UndecidedText() const {
  if (undecided_ == 0) return "";
  return fmt::format("{} of {} undecided", undecided_, Cases());
}

}  // namespace numsim::experiments
