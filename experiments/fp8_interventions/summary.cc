// The summary of `fp8-interventions`: verdicts on the claims of [SwitchBack], from the tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "experiments/core/verdict.h"
#include "experiments/fp8_interventions/fp8_interventions.h"
#include "experiments/shared/distinct.h"
#include "experiments/shared/training.h"

namespace numsim::experiments::fp8_interventions {
namespace {

const std::string kNone = Intervention{}.Text();
const std::string kLayerScale = Intervention{false, false, true}.Text();

// A row of outcomes.csv.
struct Row {
  std::string intervention, format, verdict;
  double seeds, diverged, collapsed, loss, gap, gap_low, gap_high;
  double gap_none, gap_none_low, gap_none_high;

  bool IsBaseline() const { return format == kBaseline.Text(); }
  bool Failed() const { return verdict == kDiverged || verdict == kCollapsedVerdict; }
  // Returns true if at least one seed diverged or collapsed.
  bool FailedInPart() const { return diverged + collapsed > 0; }
};

std::vector<Row> RowsOf(const Table& outcomes) {
  std::vector<Row> rows;
  for (size_t r = 0; r < outcomes.rows.size(); ++r) {
    const auto number = [&](const char* column) { return outcomes.Number(r, column); };
    rows.push_back({outcomes.Text(r, "intervention"),
                    outcomes.Text(r, "format"),
                    outcomes.Text(r, "verdict"),
                    number("seeds"),
                    number("diverged"),
                    number("collapsed"),
                    number("valid_loss"),
                    number("gap"),
                    number("gap_low"),
                    number("gap_high"),
                    number("gap_none"),
                    number("gap_none_low"),
                    number("gap_none_high")});
  }
  return rows;
}

const Row* Find(const std::vector<Row>& rows,
                std::string_view intervention,
                std::string_view format) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) {
    return row.intervention == intervention && row.format == format;
  });
  return found == rows.end() ? nullptr : &*found;
}

// Returns true if bf16 learnt with that intervention.
bool Learns(const std::vector<Row>& rows, std::string_view intervention) {
  const Row* const row = Find(rows, intervention, kBaseline.Text());
  return row != nullptr && !row->FailedInPart();
}

std::string Gap(double gap, double low, double high) {
  const std::string interval =
      std::isnan(low) ? " (one seed)" : fmt::format(" [{:.3f}, {:.3f}]", low, high);
  return fmt::format("{:+.3f}", gap) + interval;
}

std::string Text(const Row& row) {
  std::string text = row.format + ": ";
  if (row.diverged > 0)
    text += fmt::format("{:g} of {:g} seeds diverged, ", row.diverged, row.seeds);
  if (row.collapsed > 0) {
    text += fmt::format("{:g} of {:g} seeds collapsed, ", row.collapsed, row.seeds);
  }
  if (row.diverged == 0) text += fmt::format("loss {:.3f}, ", row.loss);
  if (row.diverged == 0 && !row.IsBaseline()) {
    text += "gap " + Gap(row.gap, row.gap_low, row.gap_high) + ", ";
  }
  return text + row.verdict;
}

std::string Lines(const std::vector<const Row*>& rows) {
  std::string text;
  for (const Row* row : rows) text += "\n  " + Text(*row);
  return text;
}

// Returns the rows of an intervention in all formats except bf16.
std::vector<const Row*> LowRows(const std::vector<Row>& rows, std::string_view intervention) {
  std::vector<const Row*> found;
  for (const Row& row : rows) {
    if (row.intervention == intervention && !row.IsBaseline()) found.push_back(&row);
  }
  return found;
}

size_t CountFailed(const std::vector<const Row*>& rows) {
  return static_cast<size_t>(
      std::count_if(rows.begin(), rows.end(), [](const Row* row) { return row->Failed(); }));
}

// Judges that training fails with an intervention: "holds" if it fails in the paper's fp8, "holds
// in part" if it only fails in poorer formats.
Claim FailureClaim(const Settings& settings,
                   const std::vector<Row>& rows,
                   const std::string& intervention,
                   const std::string& text) {
  Claim claim{text, "", std::string(kNotMeasured)};
  const std::vector<const Row*> found = LowRows(rows, intervention);
  if (found.empty()) {
    claim.measured = fmt::format("No format was trained with {}.", intervention);
    return claim;
  }
  if (!Learns(rows, intervention)) {
    claim.measured =
        fmt::format("bf16 itself fails at these settings with the intervention {}.", intervention);
    return claim;
  }
  const bool papers = std::any_of(found.begin(), found.end(), [](const Row* row) {
    return IsPapers(ParsePrecision(row->format)) && row->Failed();
  });
  const size_t failed = CountFailed(found);
  claim.measured =
      fmt::format("With {}, {} of {} formats fail where bf16 learns (loss {:.3f}){}.{}",
                  intervention == kNone ? "no intervention" : intervention,
                  failed,
                  found.size(),
                  Find(rows, intervention, kBaseline.Text())->loss,
                  failed > 0 && !papers ? "; the paper's E4M3 with E5M2 is not among them" : "",
                  Lines(found));
  claim.verdict = papers ? kHolds : failed > 0 ? kHoldsInPart : kDoesNotHold;
  claim.basis = TrainingScaleText(settings);
  return claim;
}

Claim LayerScaleClaim(const Settings& settings, const std::vector<Row>& rows) {
  Claim claim{
      "Zero-init layer-scale \"trains without diverging\" where everything else diverges (Section "
      "2.3, Figure 2, left).",
      "",
      std::string(kNotMeasured)};
  const std::vector<const Row*> found = LowRows(rows, kLayerScale);
  if (found.empty() || !Learns(rows, kLayerScale) || !Learns(rows, kNone)) {
    claim.measured = found.empty() ? "Layer-scale was not trained in any of these formats."
                                   : "bf16 itself fails at these settings.";
    return claim;
  }
  std::vector<const Row*> endangered;  // formats that fail without layer-scale
  for (const Row* row : found) {
    const Row* const without = Find(rows, kNone, row->format);
    if (without != nullptr && without->Failed()) endangered.push_back(row);
  }
  const size_t failed = static_cast<size_t>(std::count_if(
      found.begin(), found.end(), [](const Row* row) { return row->FailedInPart(); }));
  const size_t lost = CountFailed(endangered);
  claim.measured = fmt::format(
      "{} of {} formats fail in at least one seed with layer-scale; of the {} that fail without "
      "it, {} also fail with it.{}",
      failed,
      found.size(),
      endangered.size(),
      lost,
      Lines(found));
  const bool saves = lost < endangered.size();
  claim.verdict = failed == 0 && saves   ? kHolds
                  : failed == 0 || saves ? kHoldsInPart
                                         : kDoesNotHold;
  claim.basis = TrainingScaleText(settings);
  return claim;
}

// Mean magnitudes after the first and the last block at the end of training in bf16, over seeds.
struct Magnitudes {
  double first = 0, last = 0;
};

std::optional<Magnitudes> MagnitudesOf(const Table& features,
                                       const std::string& intervention,
                                       const std::string& tower) {
  Magnitudes sums;
  double last_block = 0, firsts = 0, lasts = 0;
  const auto is_of = [&](size_t r) {
    return features.Text(r, "intervention") == intervention &&
           features.Text(r, "format") == kBaseline.Text() && features.Text(r, "when") == kEnd &&
           features.Text(r, "tower") == tower;
  };
  for (size_t r = 0; r < features.rows.size(); ++r) {
    if (is_of(r)) last_block = std::max(last_block, features.Number(r, "block"));
  }
  for (size_t r = 0; r < features.rows.size(); ++r) {
    if (!is_of(r)) continue;
    const double block = features.Number(r, "block"), mean = features.Number(r, "mean_abs_rest");
    if (block == 0) sums.first += mean, ++firsts;
    if (block == last_block) sums.last += mean, ++lasts;
  }
  if (firsts == 0) return std::nullopt;
  return Magnitudes{sums.first / firsts, sums.last / lasts};
}

Claim FeatureClaim(const Settings& settings, const Table& features) {
  constexpr double kLarge = 2;
  Claim claim{
      "Layer-scale keeps the magnitude E|x_k| of features small; \"without the "
      "intervention, the average feature magnitude becomes large for later blocks\" (Figure "
      "2, right).",
      "",
      std::string(kNotMeasured)};
  Tally tally;
  for (const std::string& tower : Distinct(features, "tower")) {
    const auto without = MagnitudesOf(features, kNone, tower);
    const auto with = MagnitudesOf(features, kLayerScale, tower);
    if (!without || !with) continue;
    const bool large = without->last >= kLarge * with->last && without->last > without->first;
    const bool known =
        std::isfinite(without->first) && std::isfinite(without->last) && std::isfinite(with->last);
    tally.Add(known ? AnswerOf(large) : Answer::kUndecided);
    claim.measured += fmt::format(
        "\n  {}: {:.3g} after the first block, {:.3g} after the last; with layer-scale {:.3g} and "
        "{:.3g}",
        tower,
        without->first,
        without->last,
        with->first,
        with->last);
  }
  if (tally.Cases() == 0) {
    claim.measured = "Layer-scale is not among the interventions.";
    return claim;
  }
  claim.measured = fmt::format(
      "In bf16 at the end, without the planted channel. Criterion: E|x_k| grows with depth, and "
      "after the last block it is at least {:g} times that with layer-scale.{}",
      kLarge,
      claim.measured);
  claim.verdict = tally.Verdict();
  claim.basis = TrainingScaleText(settings);
  return claim;
}

// Judges how much of the gap of fp8 with layer-scale to bf16 is also the gap of bf16 with
// layer-scale.
Claim RemainderClaim(const Settings& settings, const std::vector<Row>& rows) {
  Claim claim{
      "The difference that remains between fp8 with layer-scale and bf16 \"is primarily "
      "because of layerscale\" (Section 2.3).",
      "",
      std::string(kNotMeasured)};
  const Row* const own = Find(rows, kLayerScale, kBaseline.Text());
  if (own == nullptr || !Learns(rows, kLayerScale) || !Learns(rows, kNone)) {
    claim.measured = "bf16 does not learn, or was not trained, both with and without layer-scale.";
    return claim;
  }
  Tally primarily;
  std::string lines;
  for (const Row* row : LowRows(rows, kLayerScale)) {
    if (row->Failed()) continue;
    lines += fmt::format("\n  {}: {} to bf16 without layer-scale, of which {} by the format",
                         row->format,
                         Gap(row->gap_none, row->gap_none_low, row->gap_none_high),
                         Gap(row->gap, row->gap_low, row->gap_high));
    if (!(row->gap_none_low > 0)) continue;
    primarily.Add(
        IsAbove({own->gap_none, own->gap_none_low, own->gap_none_high}, row->gap_none / 2));
  }
  claim.measured = fmt::format(
      "Layer-scale alone changes the loss of bf16 by {}. In {} of {} formats whose interval is "
      "above 0, its interval is above half of the gap.{}",
      Gap(own->gap_none, own->gap_none_low, own->gap_none_high),
      primarily.Yes(),
      primarily.Cases(),
      lines);
  claim.verdict = primarily.Verdict();
  claim.basis = TrainingScaleText(settings);
  if (primarily.Undecided() > 0) claim.basis += "; " + primarily.UndecidedText();
  if (settings.seeds < 2) claim.basis += "; one seed gives no interval, use --seeds 3";
  return claim;
}

// Describes the settings that make small models fail.
std::string Stress(const Settings& settings) {
  const auto option = [&](const char* name) { return settings.Get(name); };
  std::string text = fmt::format(
      "Made to fail by: {} of {} blocks of width {}, learning rate {} after {} steps of warm-up, "
      "{} steps, formats below E4M3",
      option("model"),
      option("layers"),
      option("width"),
      option("lr"),
      option("warmup"),
      option("steps"));
  if (!option("plant-point").empty()) {
    text += fmt::format(", {} added to channel {} at {}",
                        option("plant-value"),
                        option("plant-channel"),
                        option("plant-point"));
  }
  if (option("input-tail") != "0") text += ", pixels stretched by " + option("input-tail");
  if (option("scaled-branches") == "no") text += ", branches initialised without scaling";
  return text + ". The paper's ViT-Large fails in fp8 by its size alone.";
}

// Describes in which way trainings failed.
std::string Failures(const std::vector<Row>& rows) {
  double diverged = 0, collapsed = 0;
  for (const Row& row : rows) diverged += row.diverged, collapsed += row.collapsed;
  return fmt::format(
      "{:g} trainings diverged and {:g} collapsed, over all formats and interventions. The paper's "
      "trainings diverge slowly.",
      diverged,
      collapsed);
}

std::string Notes(const Settings& settings, const std::vector<Row>& rows) {
  std::string text = Stress(settings) + "\n" + Failures(rows) + "\nBaselines:";
  for (const Row& row : rows) {
    if (!row.IsBaseline()) continue;
    text += fmt::format("\n  bf16, {}: loss {:.3f}, {} to bf16 without intervention, {}",
                        row.intervention,
                        row.loss,
                        Gap(row.gap_none, row.gap_none_low, row.gap_none_high),
                        row.verdict);
  }
  std::string others;
  for (const Row& row : rows) {
    const Intervention intervention = ParseIntervention(row.intervention);
    if (intervention.clip + intervention.qk_norm + intervention.layer_scale < 2) continue;
    if (!row.IsBaseline()) others += "\n  " + row.intervention + ", " + Text(row);
  }
  if (!others.empty()) text += "\nCombined interventions:" + others;
  if (settings.seeds < 3) {
    text += fmt::format("\n{} seed{}: gaps cannot be told from noise (use --seeds 3 or more).",
                        settings.seeds,
                        settings.seeds == 1 ? "" : "s");
  }
  return text +
         fmt::format(
             "\ndiverged: at least one seed diverged; collapsed: at least half of the seeds have a "
             "validation loss less than {:g} % below that of a model that guesses at random; "
             "unsteady: fewer seeds do; behind: the 95 % interval of the gap to bf16 with the same "
             "intervention is above 0; stable: none of these. A format fails if it diverged or "
             "collapsed.",
             100 * kCollapsed);
}

// Limits a verdict to "holds in part", because a planted activation causes failure and features.
Claim UnderStress(Claim claim) {
  if (claim.verdict != kHolds) return claim;
  claim.verdict = kHoldsInPart;
  claim.measured +=
      "\nOnly in part, because a massive activation is planted (--plant-point \"\" disables it). "
      "Where it is planted before layer-scale, as by default, layer-scale by its nature can scale "
      "it away; clipping and norms cannot.";
  return claim;
}

}  // namespace

Summary Summarise(const Settings& settings, const Tables& tables) {
  const std::vector<Row> rows = RowsOf(tables.at(std::string(kOutcomesTable)));
  Summary summary;
  summary.claims = {
      FailureClaim(settings,
                   rows,
                   kNone,
                   "fp8 with tensor-wise quantisation \"and no further modifications\" "
                   "\"slowly diverges\" (Section 2.3, Figure 2, left)."),
      FailureClaim(settings,
                   rows,
                   Intervention{true, false, false}.Text(),
                   "Adding gradient clipping \"also diverges\" (Section 2.3, Figure 2, left)."),
      FailureClaim(settings,
                   rows,
                   Intervention{false, true, false}.Text(),
                   "Adding KQ layernorm \"also diverges\" (Section 2.3, Figure 2, left)."),
      LayerScaleClaim(settings, rows),
      FeatureClaim(settings, tables.at(std::string(kFeaturesTable)))};
  if (!settings.Get("plant-point").empty()) {
    for (Claim& claim : summary.claims) claim = UnderStress(std::move(claim));
  }
  summary.claims.push_back(RemainderClaim(settings, rows));
  summary.notes = Notes(settings, rows);
  return summary;
}

}  // namespace numsim::experiments::fp8_interventions
