// The derived tables of `switchback-accuracy`, and the frames of groups and variants.
#include <cmath>

#include "experiments/switchback_accuracy/switchback_accuracy.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

// Returns the cells that identify the variant of the rows and its group.
Row KeysOf(const Frame& rows) {
  Row keys;
  for (const char* const key :
       {"model", "size", "tokens", "kind", "format", "gradient_format", "layers"}) {
    keys.emplace_back(rows.Text(key));
  }
  return keys;
}

Row GapRow(const Frame& rows, const Frame& baseline) {
  const Estimate loss = MeanOf(rows.OverSeeds("valid_loss"));
  const Estimate gap = PairedGap(rows.OverSeeds("valid_loss"), baseline.OverSeeds("valid_loss"));
  const Estimate hit_gap = PairedGap(rows.OverSeeds("zero_shot"), baseline.OverSeeds("zero_shot"));
  const double gained = baseline.Mean("start_loss") - baseline.Mean("valid_loss");
  Row row = KeysOf(rows);
  row.insert(row.end(),
             {rows.Text("parameters"),
              rows.Size(),
              rows.Size() - rows.Where("status", "finished").Size(),
              loss.value,
              loss.low,
              loss.high,
              gap.value,
              gap.low,
              gap.high,
              gap.value / gained,
              rows.Mean("zero_shot"),
              hit_gap.value,
              hit_gap.low,
              hit_gap.high});
  return row;
}

Row ErrorRow(const Frame& rows) {
  const Frame usable = UsableGradients(rows);
  Row row = KeysOf(rows);
  row.insert(
      row.end(),
      {usable.Size(), usable.Mean("error"), usable.Mean("own_error"), usable.Mean("cosine")});
  return row;
}

}  // namespace

std::vector<Frame> GroupsIn(const Frame& frame) { return frame.By({"model", "size", "tokens"}); }

std::vector<Frame> VariantsIn(const Frame& group) {
  return group.By({"kind", "format", "gradient_format", "layers"});
}

Frame RowsOf(const Frame& frame, const std::string& variant) {
  const Variant parsed = ParseVariant(variant);
  return frame.Where("kind", parsed.kind)
      .Where("format", parsed.format)
      .Where("gradient_format", parsed.gradient_format)
      .Where("layers", parsed.layers);
}

std::string GroupText(const Frame& group) {
  return group.Text("model") + " " + group.Text("size") + ", " + group.Text("tokens") + " tokens";
}

Frame UsableGradients(const Frame& gradients) {
  return gradients.Where([](const Frame& row) {
    return std::isfinite(row.Number("error")) && std::isfinite(row.Number("own_error")) &&
           std::isfinite(row.Number("cosine"));
  });
}

std::vector<Row> Gaps(const Results& results) {
  std::vector<Row> rows;
  for (const Frame& group : GroupsIn(results.Of("final"))) {
    const Frame baseline = RowsOf(group, kBaseline.Text());
    for (const Frame& variant : VariantsIn(group)) rows.push_back(GapRow(variant, baseline));
  }
  return rows;
}

std::vector<Row> GradientErrors(const Results& results) {
  std::vector<Row> rows;
  for (const Frame& group : GroupsIn(results.Of("gradients"))) {
    for (const Frame& variant : VariantsIn(group)) rows.push_back(ErrorRow(variant));
  }
  return rows;
}

}  // namespace numsim::experiments::switchback_accuracy
