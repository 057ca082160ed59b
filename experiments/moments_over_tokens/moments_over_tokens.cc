// Definition of the experiment `moments-over-tokens`: what study.toml does not say.
#include "experiments/moments_over_tokens/moments_over_tokens.h"

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/claims/frame.h"
#include "experiments/study/outcomes.h"
#include "experiments/study/study_file.h"
#include "numsim/base/error.h"
#include "numsim/moments/moment_format.h"

namespace numsim::experiments {
namespace moments_over_tokens {
namespace {

using namespace study;

constexpr std::string_view kBaseline = "fp32", kBlocks = "-blocks", kStored = "-stored";

// Removes an ending. Returns whether it was there.
bool TakeEnding(std::string_view ending, std::string_view& text) {
  if (!text.ends_with(ending)) return false;
  text.remove_suffix(ending.size());
  return true;
}

// ---- outcomes

// A training that had diverged by then counts as no better than at its start.
double Early(const Frame& run) {
  const double loss = run.Number("early_loss");
  return std::isfinite(loss) ? loss : run.Number("start_loss");
}
double Later(const Frame& run) { return LossOrStart(run) - Early(run); }

// ---- tables

// Returns the row of an arm after some tokens: number of seeds, mean loss, gap to fp32.
Row GapRow(const Frame& arm, const Frame& baseline) {
  const SeedValues losses =
      ForBoth(arm, baseline, [](const Frame& a, const Frame&) { return a.Number("valid_loss"); });
  Row row = {arm.Text("moments"), arm.Number("epsilon"), arm.Number("tokens"), losses.size()};
  row.emplace_back(MeanOf(losses).value);
  Append({PairedGap(losses, baseline.OverSeeds("valid_loss"))}, row);
  return row;
}

std::vector<Row> GapRows(const Results& results) {
  if (!results.tables.contains("validations")) return {};
  const Frame all = results.Of("validations");
  std::vector<Row> rows;
  for (const Frame& arm : all.By({"moments", "epsilon", "tokens"})) {
    const Frame baseline = all.Where("moments", std::string(kBaseline))
                               .Where("epsilon", arm.Text("epsilon"))
                               .Where("tokens", arm.Text("tokens"));
    rows.push_back(GapRow(arm, baseline));
  }
  return rows;
}

// ---- figures

// Returns the gap of an arm against the tokens, as long as all seeds are there: those that are left
// after others have diverged are no fair sample.
Series GapsOf(const Frame& arm, int style) {
  const double seeds = arm.Numbers("seeds").front();
  const Frame whole = arm.Where([seeds](const Frame& row) { return row.Number("seeds") == seeds; });
  Series series{.label = arm.Text("moments"), .style = style};
  for (const double tokens : whole.Numbers("tokens")) series.x.push_back(tokens / 1e6);
  series.y = whole.Numbers("gap");
  series.low = whole.Numbers("gap_low");
  series.high = whole.Numbers("gap_high");
  return series;
}

// A panel per epsilon: the gap of each arm against the tokens, with its interval. An arm looks the same
// in all panels.
Figure DrawGaps(const Results& results) {
  Figure figure{.name = "moments-over-tokens",
                .title = "Validation loss minus that of fp32 moments",
                .columns = 2,
                .source_csv = "gaps.csv"};
  const Frame gaps = results.Of("gaps").Where([](const Frame& row) {
    return row.Text("moments") != kBaseline && row.Number("tokens") > 0;
  });
  if (gaps.Empty()) return figure;
  for (const Frame& of_epsilon : gaps.By({"epsilon"})) {
    Panel& panel = figure.panels.emplace_back();
    panel.title = "epsilon " + of_epsilon.Text("epsilon");
    panel.x = {.label = "million tokens seen", .log10 = true};
    panel.y = {.label = "gap, nats per token"};
    int style = 0;
    for (const Frame& of_arm : gaps.By({"moments"})) {
      const Frame arm = of_arm.Where("epsilon", of_epsilon.Text("epsilon"));
      if (!arm.Empty()) panel.series.push_back(GapsOf(arm, style));
      ++style;
    }
  }
  return figure;
}

Functions OwnFunctions() {
  return {.choices = {{"moments", StorageChoice}},
          .outcomes = {{"late", LossOrStart}, {"early", Early}, {"later", Later}},
          .tables = {{"gaps", GapRows}},
          .figures = {{"gaps-over-tokens", DrawGaps}}};
}

}  // namespace

Choice StorageChoice(const std::string& text) {
  std::string_view formats = text;
  const bool stored = TakeEnding(kStored, formats), blocks = TakeEnding(kBlocks, formats);
  const size_t slash = formats.find('/');
  if (slash == formats.npos) throw Error("is not M/V, M/V-blocks, M/V-stored or M/V-blocks-stored");
  const std::string m = ToString(ParseMomentFormat(formats.substr(0, slash)));
  const std::string v = ToString(ParseMomentFormat(formats.substr(slash + 1)));
  Choice choice{m + "/" + v, {"optimizer.m=" + m, "optimizer.v=" + v}};
  if (blocks) {
    choice.name += kBlocks;
    choice.keys.emplace_back("optimizer.moment_tensors=blocks.*");
  }
  if (stored) {
    choice.name += kStored;
    choice.keys.emplace_back("optimizer.update_from_stored=true");
  }
  return choice;
}

}  // namespace moments_over_tokens

study::Study MomentsOverTokensStudy() {
  using namespace moments_over_tokens;
  return ReadStudy(
      StudyText("moments_over_tokens"), "moments_over_tokens/study.toml", OwnFunctions());
}

Experiment MomentsOverTokens() { return study::MakeExperiment(MomentsOverTokensStudy()); }

}  // namespace numsim::experiments
