// Claims of papers as data, the evidence of a run about them, and the verdicts. docs/verdicts.md
// explains the standard to readers of a summary.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/claims/frame.h"
#include "experiments/claims/scale.h"
#include "experiments/claims/verdict.h"

namespace numsim::experiments {

struct Settings;

// The tables of a run by name. A table that results lack is not the same as one without rows.
class Tables : public std::map<std::string, Table> {
 public:
  using std::map<std::string, Table>::map;

  // Return the table of that name. Throw Error that names its file if it is missing.
  Table& at(const std::string& name);
  const Table& at(const std::string& name) const;

  std::string directory = {};  // where they were read from; empty: not from files
  // Tables of an experiment whose rows come from --rows, which does not give these; they have no rows.
  std::set<std::string> not_given = {};
};

// The smallest difference that counts, fixed before the run.
struct Margin {
  double value = 0;
  std::string unit;           // of the outcome: "nats per token", "slope", "% of the time"
  std::string justification;  // what a difference of that size means, or the noise of the baseline
  // Margins of larger models, ascending: from that number of parameters on, that margin.
  std::vector<std::pair<double, double>> from_parameters = {};

  double At(double parameters) const;
  // Returns "0.02 nats per token (0.01 from 10^6 parameters on)".
  std::string Text() const;
};

// Returns the margin of a final loss: 0.02 below a million parameters, 0.01 up to 80 million and
// 0.005 from there on.
Margin LossMargin(std::string unit);

// The evidence of a run about one claim.
struct Evidence {
  // Why the run does not test the claim: "out of reach: …" or which option leaves the arms out.
  // Empty if it does.
  std::string not_tested = {};
  // The runs and the contrasts between their arms; empty for claims of kind kExact.
  OutcomeTable outcomes = {};
  std::vector<Contrast> contrasts = {};
  // Of an equivalence: the contrast that is known to fail (ClaimSpec::control), whose runs are among
  // the outcomes; or, if this run has none, why.
  Contrast control = {};
  std::string no_control = {};
  // Not tested because of what the outcomes are or which tables are given, and not of what was
  // trained: it stays in Holm's family.
  bool left_out = false;
  std::optional<bool> exact = {};  // kExact: whether it holds
  double diverged_value = 0;       // outcome of a diverged run, for Diverged::kAsValue
  // Not 0: the contrasts are bounds, because something that was looked for lies beyond what was
  // tried. The true contrasts are at them or above (+1), or at them or below (-1). A verdict that a
  // bound cannot carry becomes "not tested" for this reason.
  int bound = 0;
  std::string bound_reason = {};
  double parameters = 0;  // of the largest model, for the margin
  // The largest effect that the baseline of this run allows, in the unit of the margin: a model that has
  // learnt little has little to lose. A margin above half of it tests nothing. 0: not known.
  double possible = 0;
  std::string measured = {};  // further numbers in words; may be empty
};

// Beginnings of reasons for `not tested` when the run has the claim's arms.
inline constexpr std::string_view kOutOfReach =
    "out of reach: ";  // of this scale, or of these runs
inline constexpr std::string_view kNoEvidence =
    "no evidence: ";  // a stress that harms bf16 itself, a control that does not fail

// Returns evidence that the run does not test the claim.
Evidence NotTestedBecause(std::string reason);
// Returns the same if a look at the outcomes says so: "out of reach: " and the reason.
Evidence LeftOutBecause(const std::string& reason);

// Returns the outcomes of a table's rows. Each combination of the key columns is an arm, named by
// their values: "e4m3fn / e5m2"; the column `seed` numbers the runs. `outcome` returns NaN for a
// row without an outcome and infinity for a run that diverged. Throws Error if an arm has two rows
// for a seed.
OutcomeTable OutcomesOf(const Frame& frame,
                        std::initializer_list<std::string_view> keys,
                        const std::function<double(const Frame& row)>& outcome);
// Returns the same where `arm_of` names the arm of a row.
OutcomeTable OutcomesOf(const Frame& frame,
                        const std::function<std::string(const Frame& row)>& arm_of,
                        const std::function<double(const Frame& row)>& outcome);
// Returns the difference of two arms with its 95 % interval (paired.h); runs that diverged are
// missing. 0 for an arm minus itself.
Estimate GapOf(const OutcomeTable& outcomes, std::string_view arm, std::string_view baseline);
// Returns evidence about one value per seed, compared with a fixed reference: a table of two arms,
// `arm` and "reference", and their contrast.
Evidence AgainstReference(std::string arm, const SeedValues& values, double reference);

// A number that may be known only to lie between two ends; low == high if it is known. Example: a
// threshold below the least value that was tried lies in [0, least]. Both NaN: there is no such number.
struct Range {
  double low = 0, high = 0;
};
// Returns evidence about one number per seed. If all are known, it is about them. Otherwise it is about
// the high ends, if these are finite for every seed, or else about the low ends, and is marked as a
// bound. If neither are finite, the run does not test the claim, for `reason`.
Evidence AgainstReference(std::string arm,
                          const std::map<std::string, Range>& of_seed,
                          double reference,
                          std::string reason);

// Makes the first contrast of other evidence, over the same seeds, the control of `evidence`: its arms
// join the outcomes. Where `control` is not tested, its reason is why there is none.
void AddControl(const Evidence& control, Evidence& evidence);

// A claim of a paper. A claim with parts is several claims.
struct ClaimSpec {
  std::string id;                  // "moment-formats/v-e4m3", EXPERIMENT/NAME
  std::vector<std::string> items;  // what it stands in: ids of catalogue.h
  std::string statement;           // what the paper says, with its numbers
  ClaimKind kind = ClaimKind::kDifference;
  std::string contrast;  // arms and outcome: "valid_loss of llm-int8 minus that of bf16"
  // Of kEquivalence: a contrast of the same outcome that is known to lie beyond the margin, in words,
  // or why there is none. "X matches Y" is supported only by a run in which the control is seen to
  // fail: nothing is learnt where nothing could have failed.
  std::string control = {};
  std::string no_control = {};
  // Of kDifference: the sign of the contrast that the paper claims. Of kRatio: 1 if it claims more, -1 if
  // fewer.
  int side = 1;
  Margin margin = {};
  Diverged diverged = Diverged::kMissing;  // what a diverged run counts as
  // The effect that the paper states, in the unit of the margin; 0 if it states none. At least twice the
  // margin (CheckMargin).
  double papers_effect = 0;
  std::string scale;    // where the paper states it, and from which scale on a run tests it
  bool primary = true;  // false: exploratory, not corrected for the number of claims
  std::function<Evidence(const Settings&, const Tables&)> evidence;
  // Returns the scale of the largest training that the claim compares, in a run that tests it; empty:
  // that of the run's largest.
  std::function<TrainedScale(const Settings&)> trained = {};
};

// A setting of the paper. A run whose option differs prints the deviation with its reason.
struct PaperSetting {
  std::string option;  // name of the option; "" for a deviation that no option can undo
  std::string paper;   // its value in the paper
  std::string source;  // where the paper says so
  std::string reason;  // why a preset may differ, or what is done instead
};

struct JudgedClaim {
  const ClaimSpec* spec = nullptr;  // one of the claims that were judged, which must outlive this
  Evidence evidence;
  double margin = 0;
  ClaimResult result;
  std::optional<TrainedScale> trained = {};  // of what it compares, where the claim says so
};

// Returns "llm-int8 - bf16", or with other weights "1 a - 0.5 b - 0.5 c".
std::string NameOf(const Contrast& contrast);
// Returns "[0.1, 0.2] at 95 %", or "no interval".
std::string IntervalText(const ContrastResult& contrast, double confidence);
// Returns the control of a claim and what was seen: "te-max - bf16 is seen to fail: 0.3 nats, [0.2, 0.4]
// at 90 %, margin 0.02". Requires JudgedClaim::result to have one.
std::string ControlText(const JudgedClaim& claim);

// Throws Error unless the margin is at most half of the effect that the paper states.
void CheckMargin(const ClaimSpec& claim);

// Returns the verdicts of all claims. One whose evidence is in a table of Tables::not_given is not
// tested. The primary ones that the run tests are corrected by Holm for
// their number, and alpha is split over Settings::looks.
std::vector<JudgedClaim> Judge(const std::vector<ClaimSpec>& claims,
                               const Settings& settings,
                               const Tables& tables);

// Returns the scale of a claim's evidence in a run. Exact arithmetic trains nothing: it holds at every
// size.
TrainedScale ScaleOf(const JudgedClaim& claim, const RunScale& run);

// Returns true unless a primary claim is inconclusive.
bool AllDecided(const std::vector<JudgedClaim>& claims);

}  // namespace numsim::experiments
