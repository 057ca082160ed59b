// The evidence of a run about the claims of [Fishman] about the formats of Adam's moments.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/moment_formats/moment_formats.h"
#include "experiments/runner/model_size.h"
#include "experiments/shared/special_values.h"
#include "experiments/study/outcomes.h"
#include "experiments/study/study_rates.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::moment_formats {
namespace {

constexpr double kPapersEpsilon = 1e-5;

// Returns why fp32 at an epsilon is no baseline; "" if it is one.
std::string WhyNoBaseline(const Frame& final_table, const std::string& epsilon) {
  const Frame fp32 = BaselineRows(final_table.Where("epsilon", epsilon));
  const bool learned = fp32.Where("status", "finished").Size() == fp32.Size() &&
                       fp32.Mean("valid_loss") < fp32.Mean("start_loss");
  return learned ? "" : "fp32 itself diverged or learned nothing";
}

// Returns the arm of a pair, at its one learning rate, which no name of an arm has.
Arm ArmOfPair(const MomentPair& pair, const std::string& epsilon, const std::string& update) {
  return {pair.m, pair.v, epsilon, update, ""};
}

// Returns the value of the baseline's column update_from: the first of --update-from.
std::string BaselineUpdate(const Results& results) {
  return BaselineRows(results.Of("final")).Text("update_from");
}

// Returns evidence about contrasts by the losses of rows of `final`. The best of several rates would be
// chosen on the seeds that judge it.
Evidence CompareAtOneRate(const Results& results,
                          const Frame& rows,
                          const std::vector<study::ArmContrast>& contrasts) {
  if (rows.Distinct("lr").size() > 1) {
    return NotTestedBecause(
        "arms have several learning rates (--lr): the one of each is to be chosen on other seeds "
        "(numsim tune)");
  }
  std::vector<Arm> arms;
  for (const study::ArmContrast& contrast : contrasts) {
    for (const auto& [arm, weight] : contrast) arms.push_back(arm);
  }
  const std::string untuned = RateObstacle(results.study, results.settings, arms);
  if (!untuned.empty()) return NotTestedBecause(untuned);
  Evidence evidence = CompareArms(results, rows, contrasts, study::LossOrStart);
  evidence.parameters = ParametersOf(results);
  return evidence;
}

}  // namespace

double ParametersOf(const Results& results) {
  const Settings& settings = results.settings;
  const Arm arm = ArmsOf(results.study, settings).front();
  return CountParameters(ConfigOf(results.study, settings, arm, settings.seed)).all;
}

Evidence Compare(const Results& results,
                 const study::ClaimRow&,
                 const std::vector<study::ArmContrast>& contrasts) {
  const Frame all = results.Of("final");
  const std::string epsilon = ShownEpsilon(all), update = ShownUpdate(all);
  const std::string why = WhyNoBaseline(all, epsilon);
  if (!why.empty()) return NotTestedBecause(why);
  std::vector<study::ArmContrast> here = contrasts;
  for (study::ArmContrast& contrast : here) {
    for (auto& [arm, weight] : contrast) {
      const MomentPair pair{arm[kM], arm[kV]};
      arm = ArmOfPair(pair, epsilon, pair == kBaseline ? BaselineUpdate(results) : update);
    }
  }
  return CompareAtOneRate(results, OfRegime(all, epsilon, update), here);
}

Evidence EpsilonEvidence(const Results& results, const std::string& update) {
  const Frame all = results.Of("final");
  std::map<double, std::string> epsilons;
  for (const std::string& text : all.Distinct("epsilon")) {
    epsilons[all.Where("epsilon", text).Number("epsilon")] = text;
  }
  if (epsilons.size() < 2) return NotTestedBecause("there is one epsilon (--epsilon)");
  const MomentPair pair{"fp32", "e4m3fn"};
  if (all.Where("m", pair.m).Where("v", pair.v).Where("update_from", update).Empty()) {
    return NotTestedBecause(fmt::format(
        "fp32 / e4m3fn was not trained from {} moments (--m, --v, --update-from)", update));
  }
  const std::string small = epsilons.begin()->second, large = epsilons.rbegin()->second;
  for (const std::string& epsilon : {small, large}) {
    const std::string why = WhyNoBaseline(all, epsilon);
    if (!why.empty()) return NotTestedBecause(why);
  }
  const Frame rows = all.Where([&](const Frame& row) {
    const std::string epsilon = row.Text("epsilon");
    const bool arm = PairOf(row) == pair && row.Text("update_from") == update;
    return (epsilon == small || epsilon == large) && (arm || PairOf(row) == kBaseline);
  });
  const std::string baseline = BaselineUpdate(results);
  return CompareAtOneRate(results,
                          rows,
                          {{{ArmOfPair(pair, small, update), 1},
                            {ArmOfPair(kBaseline, small, baseline), -1},
                            {ArmOfPair(pair, large, update), -1},
                            {ArmOfPair(kBaseline, large, baseline), 1}}});
}

// The paper measured whole devices. Stored bytes alone are no evidence for or against that, but they
// say how much of it the moments and master weights explain.
Evidence MemoryEvidence(const Results& results) {
  const Frame rows =
      results.Of("memory").Where("m", "e4m3fn").Where("v", "e5m2").Where("master", "fp16");
  if (rows.Empty()) return NotTestedBecause("e4m3fn / e5m2 is not among the pairs");
  Evidence evidence;
  rows.ForEach([&](const Frame& row) {
    evidence.measured += fmt::format("\n  {} device{}: {:.1f} GB per device, {:.1f} % less",
                                     row.Text("devices"),
                                     row.Text("devices") == "1" ? "" : "s",
                                     row.Number("gigabytes"),
                                     100 * row.Number("saving"));
  });
  evidence.not_tested = fmt::format(
      "out of reach: the paper measured the memory of devices, whose other contents it does not "
      "state; moments, master weights, bf16 weights and bf16 gradients alone take {:.1f} % less",
      100 * rows.Where("devices", 8).Number("saving"));
  return evidence;
}

std::string ShownEpsilon(const Frame& final_table) {
  std::string nearest;
  double distance = kInfinity;
  for (const std::string& text : final_table.Distinct("epsilon")) {
    const double here =
        std::abs(Log(final_table.Where("epsilon", text).Number("epsilon") / kPapersEpsilon));
    if (nearest.empty() || here < distance) nearest = text;
    distance = std::min(distance, here);
  }
  return nearest;
}

std::string ShownUpdate(const Frame& final_table) {
  const std::vector<std::string> updates = final_table.Distinct("update_from");
  const bool fresh = std::find(updates.begin(), updates.end(), "fresh") != updates.end();
  return fresh ? "fresh" : updates.front();
}

std::string Notes(const Results& results) {
  std::string text;
  const double bound = results.Of("final").Number("entropy_bound");
  if (!std::isnan(bound)) {
    text += fmt::format(
        "No model's expected loss is below {:.4f} nats per token on this generated text.\n", bound);
  }
  text +=
      "Updates from fresh moments are computed before the moments are stored, as in the authors' "
      "code: (1 - beta2) g^2 then takes the place of a v that was flushed. Updates from stored "
      "moments are computed from what is read back from storage, where nothing does.";
  return text;
}

}  // namespace numsim::experiments::moment_formats
