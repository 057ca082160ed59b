// The derived tables of `switchback-accuracy`, and access to the rows that comparisons read.
#include <algorithm>
#include <cmath>

#include "experiments/switchback_accuracy/switchback_accuracy.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

std::vector<std::string> KeysOf(const Group& group, const Variant& variant) {
  return {
      group.model, group.size, group.tokens, variant.kind, variant.format, variant.gradient_format};
}

bool IsOf(const Table& table, size_t row, const Group& group, const Variant& variant) {
  return GroupOf(table, row) == group && VariantOf(table, row) == variant;
}

// Returns the first cell of a column for that group and variant.
const std::string& TextOf(const Table& table,
                          const Group& group,
                          const Variant& variant,
                          const char* column) {
  size_t row = 0;
  while (!IsOf(table, row, group, variant)) ++row;
  return table.Text(row, column);
}

size_t DivergedSeeds(const Table& table, const Group& group, const Variant& variant) {
  size_t count = 0;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    count += IsOf(table, r, group, variant) && table.Text(r, "status") != "finished" ? 1 : 0;
  }
  return count;
}

// Returns the loss that the baseline gained since the start; -infinity if it diverged.
double Gained(const Table& table, const Group& group) {
  return GapOverSeeds(ValuesOf(table, group, kBaseline, "start_loss"),
                      ValuesOf(table, group, kBaseline, "valid_loss"))
      .value;
}

std::string_view VerdictOf(const Estimate& gap, bool diverged, double gained) {
  if (!(gained > 0)) return kNoVerdict;
  if (diverged) return kDiverged;
  if (std::isnan(gap.low)) return kNoVerdict;
  return gap.low > 0 ? kBehind : kWithinNoise;
}

std::vector<std::string> GapRow(const Table& table, const Group& group, const Variant& variant) {
  const SeedValues losses = ValuesOf(table, group, variant, "valid_loss");
  const SeedValues hits = ValuesOf(table, group, variant, "zero_shot");
  const Estimate loss = OverSeeds(losses);
  const Estimate gap = GapOverSeeds(losses, ValuesOf(table, group, kBaseline, "valid_loss"));
  const Estimate hit = OverSeeds(hits);
  const Estimate hit_gap = GapOverSeeds(hits, ValuesOf(table, group, kBaseline, "zero_shot"));
  const double gained = Gained(table, group);
  const size_t diverged = DivergedSeeds(table, group, variant);
  std::vector<std::string> row = KeysOf(group, variant);
  for (std::string cell : {TextOf(table, group, variant, "parameters"),
                           FormatCell(losses.size()),
                           FormatCell(diverged),
                           FormatCell(loss.value),
                           FormatCell(loss.low),
                           FormatCell(loss.high),
                           FormatCell(gap.value),
                           FormatCell(gap.low),
                           FormatCell(gap.high),
                           FormatCell(gap.value / gained),
                           FormatCell(hit.value),
                           FormatCell(hit_gap.value),
                           FormatCell(hit_gap.low),
                           FormatCell(hit_gap.high),
                           FormatCell(VerdictOf(gap, diverged > 0, gained))}) {
    row.push_back(std::move(cell));
  }
  return row;
}

std::vector<std::string> ErrorRow(const Table& table, const Group& group, const Variant& variant) {
  double error = 0, own_error = 0, cosine = 0;
  size_t n = 0;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (!IsOf(table, r, group, variant)) continue;
    const double whole = table.Number(r, "error"), own = table.Number(r, "own_error");
    const double angle = table.Number(r, "cosine");  // NaN for a gradient of zeros
    if (!std::isfinite(whole) || !std::isfinite(own) || !std::isfinite(angle)) continue;
    error += whole;
    own_error += own;
    cosine += angle;
    ++n;
  }
  const double count = static_cast<double>(n);  // 0: the means are NaN
  std::vector<std::string> row = KeysOf(group, variant);
  for (std::string cell : {FormatCell(n),
                           FormatCell(error / count),
                           FormatCell(own_error / count),
                           FormatCell(cosine / count)}) {
    row.push_back(std::move(cell));
  }
  return row;
}

}  // namespace

Group GroupOf(const Table& table, size_t row) {
  return {table.Text(row, "model"), table.Text(row, "size"), table.Text(row, "tokens")};
}

Variant VariantOf(const Table& table, size_t row) {
  return {table.Text(row, "kind"), table.Text(row, "format"), table.Text(row, "gradient_format")};
}

std::vector<Group> GroupsIn(const Table& table) {
  std::vector<Group> groups;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const Group group = GroupOf(table, r);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

std::vector<Variant> VariantsIn(const Table& table, const Group& group) {
  std::vector<Variant> variants;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    if (GroupOf(table, r) != group) continue;
    const Variant variant = VariantOf(table, r);
    if (std::find(variants.begin(), variants.end(), variant) == variants.end()) {
      variants.push_back(variant);
    }
  }
  return variants;
}

SeedValues ValuesOf(const Table& final_table,
                    const Group& group,
                    const Variant& variant,
                    const char* column) {
  SeedValues values;
  for (size_t r = 0; r < final_table.rows.size(); ++r) {
    if (!IsOf(final_table, r, group, variant)) continue;
    values[final_table.Text(r, "seed")] = final_table.Number(r, column);
  }
  return values;
}

bool Diverged(const Table& final_table, const Group& group, const Variant& variant) {
  return DivergedSeeds(final_table, group, variant) > 0;
}

void Derive(const Settings&, Tables& tables) {
  const Table& final_table = tables.at(std::string(kFinalTable));
  const Table& gradients = tables.at(std::string(kGradientsTable));
  Table& gaps = tables.at(std::string(kGapsTable));
  Table& errors = tables.at(std::string(kErrorsTable));
  for (const Group& group : GroupsIn(final_table)) {
    for (const Variant& variant : VariantsIn(final_table, group)) {
      gaps.rows.push_back(GapRow(final_table, group, variant));
    }
  }
  for (const Group& group : GroupsIn(gradients)) {
    for (const Variant& variant : VariantsIn(gradients, group)) {
      errors.rows.push_back(ErrorRow(gradients, group, variant));
    }
  }
}

}  // namespace numsim::experiments::switchback_accuracy
