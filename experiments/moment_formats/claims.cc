// The claims of [Fishman] about the formats of Adam's moments, and the evidence of a run.
#include <fmt/format.h>

#include <cmath>

#include "experiments/moment_formats/moment_formats.h"
#include "experiments/shared/training.h"

namespace numsim::experiments::moment_formats {
namespace {

constexpr std::string_view kLossContrast =
    "valid_loss of the pair minus that of fp32 / fp32; a training that diverged counts as no better "
    "than at its start";
constexpr const char* kLossScale =
    "The paper: Llama2 with 100 million parameters. A run states its own size.";

// Compares pairs with fp32; `pairs` are texts "M / V".
Evidence AgainstFp32(const Settings& settings,
                     const Tables& tables,
                     const std::vector<std::string>& pairs) {
  const Frame fp32 =
      Frame(tables.at(std::string(kFinalTable))).Where("m", kBaseline.m).Where("v", kBaseline.v);
  const bool learned = fp32.Where("status", "finished").Size() == fp32.Size() &&
                       fp32.Mean("valid_loss") < fp32.Mean("start_loss");
  if (!learned) return NotTestedBecause("fp32 itself diverged or learned nothing");
  Evidence evidence;
  evidence.outcomes = Losses(tables);
  evidence.parameters = ApproximateParameters(ConfigOf(settings, kBaseline, settings.seed).model);
  for (const std::string& pair : pairs) evidence.contrasts.push_back(Gap(pair, kBaseline.Text()));
  return evidence;
}

ClaimSpec LossClaim(const std::string& name, ClaimKind kind, std::vector<std::string> pairs) {
  ClaimSpec claim;
  claim.id = "moment-formats/" + name;
  claim.items = {"fishman/figure-5"};
  claim.kind = kind;
  claim.contrast = kLossContrast;
  claim.margin = LossMargin("nats per byte");
  claim.scale = kLossScale;
  claim.evidence = [pairs = std::move(pairs)](const Settings& settings, const Tables& tables) {
    return AgainstFp32(settings, tables, pairs);
  };
  return claim;
}

ClaimSpec SecondMoment() {
  ClaimSpec claim =
      LossClaim("v-e4m3-fails", ClaimKind::kDifference, {"e4m3fn / e4m3fn", "e5m2 / e4m3fn"});
  claim.items.push_back("fishman/section-5.2");
  claim.statement =
      "The second moment \"is able to converge only with E5M2 format\": with v in E4M3 and one "
      "scale per tensor, training does not converge to the baseline.";
  return claim;
}

ClaimSpec PapersPair() {
  ClaimSpec claim = LossClaim("m-e4m3-v-e5m2-matches", ClaimKind::kEquivalence, {"e4m3fn / e5m2"});
  claim.statement = "m in E4M3 with v in E5M2 converges to the baseline.";
  return claim;
}

ClaimSpec OnlyPair() {
  ClaimSpec claim = LossClaim("both-e5m2-fails", ClaimKind::kDifference, {"e5m2 / e5m2"});
  claim.statement =
      "m in E4M3 with v in E5M2 is \"the only combination that is able to converge to baseline\": "
      "both moments in E5M2 do not.";
  return claim;
}

constexpr double kLeastSaving = 0.25, kMostSaving = 0.35;

// From the bytes that are stored, not measured on devices.
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
  const double saving = rows.Where("devices", 8).Number("saving");
  evidence.exact = saving >= kLeastSaving && saving <= kMostSaving;
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
      "bytes per device of m, v, master weights, bf16 weights and gradients, computed from what is "
      "stored; activations are not counted. It holds if 25 to 35 % are saved on 8 devices";
  claim.scale = "The paper: Llama2 7B on 8 Gaudi 2. A run computes it for --billions.";
  claim.evidence = MemoryEvidence;
  return claim;
}

}  // namespace

OutcomeTable Losses(const Tables& tables) {
  const auto loss = [](const Frame& row) {
    return row.Text("status") == "finished" ? row.Number("valid_loss") : row.Number("start_loss");
  };
  return OutcomesOf(tables.at(std::string(kFinalTable)), {"m", "v"}, loss);
}

std::vector<ClaimSpec> Claims() { return {SecondMoment(), PapersPair(), OnlyPair(), Memory()}; }

std::string Notes(const Settings& settings, const Tables& tables) {
  const Table& final_table = tables.at(std::string(kFinalTable));
  std::string text;
  const double bound = final_table.Number(0, "entropy_bound");
  if (!std::isnan(bound)) {
    text += fmt::format(
        "No model's expected loss is below {:.4f} nats per byte on this generated text.\n", bound);
  }
  const auto from = settings.options.find("update-from");
  if (from == settings.options.end()) return text;
  text += from->second == "fresh"
              ? "Updates are computed from the fresh moments, before they are stored, as in the "
                "authors' code: (1 - beta2) g^2 then takes the place of a v that was flushed. With "
                "--update-from stored they are computed from the moments as read back from "
                "storage, where nothing does."
              : "Updates are computed from the moments as read back from storage, where a flushed "
                "v leaves only epsilon. The authors' code computes them from the fresh moments "
                "(--update-from fresh).";
  return text;
}

}  // namespace numsim::experiments::moment_formats
