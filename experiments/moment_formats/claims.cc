// The claims of [Fishman] about the formats of Adam's moments, and the evidence of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/moment_formats/moment_formats.h"
#include "experiments/shared/special_values.h"
#include "experiments/shared/training.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::moment_formats {
namespace {

// The pairs m / v whose arms a claim needs.
std::string LossContrast(const std::vector<MomentPair>& pairs) {
  std::string names;
  for (const MomentPair& pair : pairs) names += (names.empty() ? "" : " and of ") + pair.Text();
  return fmt::format(
      "valid_loss of m / v = {} (--m, --v or --pairs has {}) minus that of fp32 / fp32, each at its "
      "best learning rate, at the epsilon nearest to Llama 2's 1e-5, from fresh moments if they are "
      "trained; a training that diverged counts as no better than at its start",
      names,
      pairs.size() == 1 ? "it" : "each");
}
constexpr const char* kLossScale =
    "The paper: Llama2 with 100 million parameters. A run states its own size.";

constexpr const char* kUnit = "nats per token";
constexpr double kPapersEpsilon = 1e-5;

// Returns why fp32 at an epsilon is no baseline; "" if it is one.
std::string WhyNoBaseline(const Frame& final_table, const std::string& epsilon) {
  const Frame fp32 = BestRates(BaselineRows(final_table.Where("epsilon", epsilon)));
  const bool learned = fp32.Where("status", "finished").Size() == fp32.Size() &&
                       fp32.Mean("valid_loss") < fp32.Mean("start_loss");
  return learned ? "" : "fp32 itself diverged or learned nothing";
}

double ParametersOf(const Settings& settings) {
  return ApproximateParameters(ConfigOf(settings, ArmsOf(settings).front(), settings.seed));
}

// Compares pairs with fp32 at the paper's epsilon.
Evidence AgainstFp32(const Settings& settings,
                     const Tables& tables,
                     const std::vector<MomentPair>& pairs) {
  const Frame all = tables.at(std::string(kFinalTable));
  const std::string epsilon = ShownEpsilon(all), update = ShownUpdate(all);
  const std::string why = WhyNoBaseline(all, epsilon);
  if (!why.empty()) return NotTestedBecause(why);
  Evidence evidence;
  evidence.outcomes = Losses(OfRegime(all, epsilon, update));
  evidence.parameters = ParametersOf(settings);
  for (const MomentPair& pair : pairs) {
    evidence.contrasts.push_back(
        Gap(ArmName(pair, epsilon, update), ArmName(kBaseline, epsilon, BaselineUpdate(tables))));
  }
  return evidence;
}

ClaimSpec LossClaim(const std::string& name, ClaimKind kind, std::vector<MomentPair> pairs) {
  ClaimSpec claim;
  claim.id = "moment-formats/" + name;
  claim.items = {"fishman/figure-5"};
  claim.kind = kind;
  claim.contrast = LossContrast(pairs);
  claim.margin = LossMargin(kUnit);
  claim.scale = kLossScale;
  claim.evidence = [pairs = std::move(pairs)](const Settings& settings, const Tables& tables) {
    return AgainstFp32(settings, tables, pairs);
  };
  return claim;
}

ClaimSpec SecondMoment() {
  ClaimSpec claim =
      LossClaim("v-e4m3-fails", ClaimKind::kDifference, {{"e4m3fn", "e4m3fn"}, {"e5m2", "e4m3fn"}});
  claim.items.push_back("fishman/section-5.2");
  claim.statement =
      "The second moment \"is able to converge only with E5M2 format\": with v in E4M3 and one "
      "scale per tensor, training does not converge to the baseline.";
  return claim;
}

ClaimSpec PapersPair() {
  ClaimSpec claim =
      LossClaim("m-e4m3-v-e5m2-matches", ClaimKind::kEquivalence, {{"e4m3fn", "e5m2"}});
  claim.statement = "m in E4M3 with v in E5M2 converges to the baseline.";
  return claim;
}

ClaimSpec OnlyPair() {
  ClaimSpec claim = LossClaim("both-e5m2-fails", ClaimKind::kDifference, {{"e5m2", "e5m2"}});
  claim.statement =
      "m in E4M3 with v in E5M2 is \"the only combination that is able to converge to baseline\": "
      "both moments in E5M2 do not.";
  return claim;
}

// Compares the gap of v in E4M3 at the smallest epsilon of a run with that at the largest.
Evidence EpsilonEvidence(const Settings& settings, const Tables& tables, const char* update) {
  const Frame all = tables.at(std::string(kFinalTable));
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
  Evidence evidence;
  evidence.outcomes = Losses(all.Where([&](const Frame& row) {
    const std::string epsilon = row.Text("epsilon");
    const bool arm = PairOf(row) == pair && row.Text("update_from") == update;
    return (epsilon == small || epsilon == large) && (arm || PairOf(row) == kBaseline);
  }));
  evidence.parameters = ParametersOf(settings);
  const std::string baseline = BaselineUpdate(tables);
  evidence.contrasts = {{{ArmName(pair, small, update), 1},
                         {ArmName(kBaseline, small, baseline), -1},
                         {ArmName(pair, large, update), -1},
                         {ArmName(kBaseline, large, baseline), 1}}};
  return evidence;
}

ClaimSpec EpsilonDecides(const char* update) {
  ClaimSpec claim = LossClaim(
      fmt::format("epsilon-decides-{}", update), ClaimKind::kDifference, std::vector<MomentPair>());
  claim.statement = fmt::format(
      "Whether a second moment in E4M3 fails is an effect of epsilon (numsim's analysis): with "
      "updates from {} moments its loss against fp32 is larger at a small epsilon than at Llama 2's "
      "1e-5.",
      update);
  claim.contrast =
      "gap of fp32 / e4m3fn to fp32 / fp32 at the smallest epsilon of the run minus that at the "
      "largest, each arm at its best learning rate; a training that diverged counts as no better "
      "than at its start";
  claim.evidence = [update](const Settings& settings, const Tables& tables) {
    return EpsilonEvidence(settings, tables, update);
  };
  return claim;
}

// The paper measured whole devices. Stored bytes alone are no evidence for or against that, but they
// say how much of it the moments and master weights explain.
Evidence MemoryEvidence(const Settings& /*settings*/, const Tables& tables) {
  const Frame rows = Frame(tables.at(std::string(kMemoryTable)))
                         .Where("m", "e4m3fn")
                         .Where("v", "e5m2")
                         .Where("master", "fp16");
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

ClaimSpec Memory() {
  ClaimSpec claim;
  claim.id = "moment-formats/memory";
  claim.items = {"fishman/table-4"};
  claim.statement =
      "FP8 moments with fp16 master weights take about 30 % less memory on 8 devices with ZeRO-1.";
  claim.kind = ClaimKind::kExact;
  claim.contrast =
      "memory of each of 8 devices; computed here: bytes of m, v, master weights, bf16 weights and "
      "bf16 gradients as they are stored";
  claim.scale = "The paper: Llama2 7B on 8 Gaudi 2. A run computes it for --billions.";
  claim.evidence = MemoryEvidence;
  return claim;
}

}  // namespace

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

double LossMarginOf(const Settings& settings) {
  return LossMargin(kUnit).At(ParametersOf(settings));
}

std::vector<ClaimSpec> Claims() {
  return {SecondMoment(),
          PapersPair(),
          OnlyPair(),
          EpsilonDecides("fresh"),
          EpsilonDecides("stored"),
          Memory()};
}

std::string Notes(const Settings& /*settings*/, const Tables& tables) {
  const Table& final_table = tables.at(std::string(kFinalTable));
  std::string text;
  const double bound = final_table.Number(0, "entropy_bound");
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
