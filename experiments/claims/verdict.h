// Verdicts on claims about the arms of an experiment, tested on their outcomes over seeds.
//
// A claim states on which side of a margin contrasts of arms lie. It is supported if the data show
// that it is true, contradicted if they show that it is false, and otherwise inconclusive. A
// verdict is wrong if it is "supported" and the claim is false, or "contradicted" and it is true.
// For every truth one of the two is wrong, so each kind of claim bounds each of them by itself:
//
//   kind         claim              "supported" is wrong   "contradicted" is wrong
//   difference   each s d > m       at most alpha / 2      at most alpha / 2
//   order        each d > m         at most alpha / 2      at most alpha / 2
//   equivalence  each |d| < m       at most alpha          at most alpha
//   ratio        each s (r - m) > 0 at most alpha / 2      at most alpha / 2
//   divergence   P(diverges) >= m   at most alpha / 2      at most alpha / 2
//
// d is a contrast, r a ratio of rates, m the margin and s the claimed side. Bounds hold if a contrast
// is normal over seeds (paired.h), for a number of seeds fixed beforehand and for a claim that is
// judged alone; family.h has the corrections for several claims and several looks.
//
// Differences use the two-sided 1 - alpha interval of each contrast, as a reader expects of a 95 %
// interval: supported if all of it lies beyond the margin on the claimed side, contradicted if all
// of it lies on the other side of the same margin. An effect of the claimed size is then excluded;
// a smaller one need not be. An order is the same test of the differences of successive arms, so an
// order of two arms and a difference have the same verdict.
//
// Equivalence uses two one-sided tests at level alpha (D. J. Schuirmann, Journal of
// Pharmacokinetics and Biopharmaceutics 15, 1987): supported if the 1 - 2 alpha interval of each
// contrast lies within the margins. It is contradicted if the 1 - alpha interval of a contrast lies
// beyond one of them.
//
// A ratio of rates compares counts, such as the loss spikes of a run: ratio_statistics.h.
//
// That something matches says little where nothing could have failed: an equivalence has a control,
// a contrast that is known not to match. It is tested beside the claim (ControlResult), and
// claim.h makes a verdict of both.
//
// A claim on several contrasts is true if all hold. To support it every contrast is tested at the
// full level: if the claim is false, one contrast is on the wrong side, and its test alone has to
// fail (intersection-union test). To contradict it one contrast suffices, and since any of k may
// show it by chance, each is tested at 1 / k of the level (Bonferroni).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace numsim::experiments {

enum class Verdict : uint8_t {
  kSupported,
  kContradicted,
  kInconclusive,
  kNotTested,
  kExactHolds,
  kExactRefuted,
};

// Names of verdicts: "supported", "contradicted", "inconclusive", "not tested", "exact: holds",
// "exact: refuted". ParseVerdict throws Error that lists them if `text` is none of them.
std::string_view ToString(Verdict verdict);
Verdict ParseVerdict(std::string_view text);

enum class ClaimKind : uint8_t {
  kDifference,   // each contrast is above the margin (side +1) or below minus the margin (side -1)
  kEquivalence,  // the magnitude of each contrast is below the margin
  kOrder,        // as kDifference with side +1, for contrasts made by Successive
  kRatio,  // the rate of one arm over that of another is above (side +1) or below (-1) the margin
  kDivergence,  // at least the share `margin` of the runs of one arm diverges
  kExact,       // decided without statistics (ExactResult)
};

// Names of kinds: difference, equivalence, order, ratio, divergence, exact. ParseClaimKind throws Error
// that lists them if `text` is none of them.
std::string_view ToString(ClaimKind kind);
ClaimKind ParseClaimKind(std::string_view text);

// Rules for diverged runs in tests of contrasts.
enum class Diverged : uint8_t {
  // A missing run. The runs that remain are a biased choice, so a claim on an arm with diverged
  // runs is at most inconclusive.
  kMissing,
  // A run with a stated outcome, such as the loss of a uniform guess.
  kAsValue,
};

struct ContrastTerm {
  std::string arm;
  double weight = 1;
};
using Contrast = std::vector<ContrastTerm>;

// Returns the contrast `arm` - `reference`.
Contrast Gap(std::string arm, std::string reference);
// Returns the contrasts of each arm with the one before it: the claim of an order, from the arm
// with the least outcome to the one with the largest.
std::vector<Contrast> Successive(const std::vector<std::string>& arms);

struct ClaimTest {
  ClaimKind kind = ClaimKind::kDifference;
  // Weights of a contrast sum to 0. For kDivergence: one contrast of one arm. For kRatio: two arms
  // with weights 1 and -1, whose outcomes are counts.
  std::vector<Contrast> contrasts = {};
  int side = 1;  // +1 or -1; of kDifference and kRatio
  // In the unit of the outcome; positive for kEquivalence and at least 0 for kOrder. A difference with a
  // margin below 0 claims "not worse by more than that" (non-inferiority). For kDivergence: a
  // share of runs between 0 and 1. For kRatio: a factor, from 1 on for side +1. For side -1 it is
  // 0.5 to 1, which is at most half of the possible effect: no rate is below 0.
  double margin = 0;
  // Of kEquivalence: a contrast that is known to lie beyond the margin. Empty: there is none.
  Contrast control = {};
  Diverged diverged = Diverged::kMissing;
  double diverged_value = 0;  // of kAsValue
};

// Outcomes of runs, one row per arm and one column per seed.
struct OutcomeTable {
  std::vector<std::string> arms;
  int seeds = 0;
  // arms.size() x seeds, the seeds of the first arm first. NaN: there is no such run. Infinity of
  // either sign: the run diverged.
  std::vector<double> values;
};

// How strictly claims of a run are tested.
struct TestLevel {
  double alpha = 0.05;  // of the whole run
  int looks = 1;        // times at which the run is judged; each has the level alpha / looks
  int primary = 1;      // number of primary claims of the run, for ClaimResult::seeds_to_decide
  bool plan = true;     // whether seeds_to_decide is computed, which takes most of the time
};

struct ContrastResult {
  double value = 0;
  double low = 0, high = 0;  // the interval; both NaN if there is no standard error
  double standard_error = 0;
  int freedom = 0;  // degrees of freedom of the standard error
};

// The control of an equivalence in a run.
struct ControlResult {
  ContrastResult contrast;  // its interval has the confidence of the claim's
  // Whether it is seen to fail: its interval lies beyond the margin, or all of at least two runs of
  // an arm of it diverged.
  bool fails = false;
  bool open = false;         // neither that nor within the margin: more seeds may tell
  std::string arm_diverged;  // the arm of which all runs diverged, or ""
};

struct ClaimResult {
  Verdict verdict = Verdict::kNotTested;
  // One per contrast. For kDivergence: the share of diverged runs, with the interval of Clopper and
  // Pearson and without a standard error. For kRatio: the ratio, infinite if the second arm has no
  // events, NaN if neither has; without a standard error.
  std::vector<ContrastResult> contrasts;
  std::optional<ControlResult> control = {};  // if the test has one whose arms have runs
  // Confidence of each interval: 1 - alpha / looks, for kEquivalence 1 - 2 alpha / looks. It is not
  // corrected for other contrasts or other claims.
  double confidence = 0;
  // The least levels at which the claim would be supported or contradicted; 1 if neither can be.
  double p_supported = 1, p_contradicted = 1;
  double p = 1;      // the smaller of the two; after JudgeTogether: adjusted by Holm's method
  double alpha = 0;  // the level that p is compared with
  int seeds = 0;     // runs of that arm of the claim that has the fewest, diverged ones included
  // The smallest number of seeds at which the claim would be decided with probability 0.8 if the
  // estimates and their scatter were true and no run of the experiment's arms missing. At
  // the level of one look divided by the number of primary claims, the strictest step of Holm's
  // method. For several contrasts by Bonferroni's lower bound of the probability. kMostSeeds + 1 =
  // 10001 if there is none up to 10000, and 0 if the variance is unknown or TestLevel::plan is
  // false.
  int seeds_to_decide = 0;
  std::string reason;  // why the claim is inconclusive or not tested; otherwise empty
};

// Returns the test of one claim, judged alone. The verdict is kNotTested if an arm of the claim has
// no runs; it is kInconclusive, with a reason, if there is a single seed or if diverged runs forbid
// a verdict. Arms outside the claim do not matter. If a contrast does not scatter, its standard error
// is 0: outcomes without randomness are judged by their values. Throws Error if the test is not valid
// (its kind is kExact, weights do not sum to 0, the margin or the side is out of range), if the
// table's sizes do not match, or if the level is not possible.
ClaimResult TestClaim(const ClaimTest& test,
                      const OutcomeTable& table,
                      const TestLevel& level = {});

// Returns the result of a claim that no run has tested.
ClaimResult NotTested(std::string reason);
// Returns the result of a claim that is proved or refuted by exact arithmetic.
ClaimResult ExactResult(bool holds);

// Returns "12", "more than 10000" or "unknown" for a number of ClaimResult::seeds_to_decide.
std::string SeedsText(int seeds_to_decide);

}  // namespace numsim::experiments
