// The derived table of `fp8-interventions`: outcomes over seeds.
#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/fp8_interventions/fp8_interventions.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"

namespace numsim::experiments::fp8_interventions {
namespace {

// The results of an intervention in a format, over seeds.
struct Outcome {
  std::string intervention, format;
  SeedValues losses, zero_shot;  // zero_shot only has the seeds with a finite value
  size_t diverged = 0, collapsed = 0;

  bool Is(std::string_view of_intervention, std::string_view of_format) const {
    return intervention == of_intervention && format == of_format;
  }
};

// Returns the outcomes in the order of the table.
std::vector<Outcome> OutcomesIn(const Table& table) {
  std::vector<Outcome> outcomes;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const std::string& intervention = table.Text(r, "intervention");
    const std::string& format = table.Text(r, "format");
    const auto same = [&](const Outcome& o) { return o.Is(intervention, format); };
    auto found = std::find_if(outcomes.begin(), outcomes.end(), same);
    if (found == outcomes.end()) {
      found = outcomes.insert(outcomes.end(), {intervention, format, {}, {}, 0, 0});
    }
    const std::string& seed = table.Text(r, "seed");
    const double loss = table.Number(r, "valid_loss");
    found->losses[seed] = loss;
    if (table.Text(r, "status") != "finished") {
      ++found->diverged;
    } else if (!(loss <= (1 - kCollapsed) * table.Number(r, "chance_loss"))) {
      ++found->collapsed;
    }
    const double zero_shot = table.Number(r, "zero_shot");
    if (std::isfinite(zero_shot)) found->zero_shot[seed] = zero_shot;
  }
  return outcomes;
}

const Outcome& Find(const std::vector<Outcome>& outcomes,
                    std::string_view intervention,
                    std::string_view format) {
  const auto found = std::find_if(outcomes.begin(), outcomes.end(), [&](const Outcome& o) {
    return o.Is(intervention, format);
  });
  NUMSIM_CHECK(found != outcomes.end(), "no {} {}", format, intervention);
  return *found;
}

std::string_view VerdictOf(const Outcome& outcome, const Estimate& gap) {
  if (outcome.diverged > 0) return kDiverged;
  if (2 * outcome.collapsed >= outcome.losses.size()) return kCollapsedVerdict;
  if (outcome.collapsed > 0) return kUnsteady;
  return gap.low > 0 ? kBehind : kStable;
}

// Returns the gap to a baseline, paired by seed; NaN if the baseline diverged.
Estimate GapTo(const Outcome& baseline, const Outcome& outcome) {
  if (baseline.diverged > 0) return {std::nan(""), std::nan(""), std::nan("")};
  return GapOverSeeds(outcome.losses, baseline.losses);
}

std::vector<std::string> RowOf(const std::vector<Outcome>& outcomes, const Outcome& outcome) {
  const std::string bf16 = kBaseline.Text();
  const Estimate loss = OverSeeds(outcome.losses);
  const Estimate gap = GapTo(Find(outcomes, outcome.intervention, bf16), outcome);
  const Estimate gap_none = GapTo(Find(outcomes, Intervention{}.Text(), bf16), outcome);
  return {outcome.intervention,
          outcome.format,
          FormatCell(outcome.losses.size()),
          FormatCell(outcome.diverged),
          FormatCell(outcome.collapsed),
          FormatCell(loss.value),
          FormatCell(loss.low),
          FormatCell(loss.high),
          FormatCell(gap.value),
          FormatCell(gap.low),
          FormatCell(gap.high),
          FormatCell(gap_none.value),
          FormatCell(gap_none.low),
          FormatCell(gap_none.high),
          FormatCell(outcome.zero_shot.empty() ? std::nan("") : OverSeeds(outcome.zero_shot).value),
          FormatCell(VerdictOf(outcome, gap))};
}

}  // namespace

void Derive(const Settings&, Tables& tables) {
  const std::vector<Outcome> outcomes = OutcomesIn(tables.at(std::string(kFinalTable)));
  Table& table = tables.at(std::string(kOutcomesTable));
  for (const Outcome& outcome : outcomes) table.rows.push_back(RowOf(outcomes, outcome));
}

}  // namespace numsim::experiments::fp8_interventions
