// The derived tables of `moment-formats`: results of pairs over seeds, and memory.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <utility>

#include "experiments/claims/frame.h"
#include "experiments/moment_formats/moment_formats.h"
#include "experiments/shared/special_values.h"
#include "experiments/study/outcomes.h"
#include "numsim/base/error.h"
#include "numsim/moments/moment_store.h"

namespace numsim::experiments::moment_formats {
namespace {

using KeyColumns = std::initializer_list<std::string_view>;

const KeyColumns kPairKeys = {"m", "v", "epsilon", "update_from"};
const KeyColumns kArmKeys = {"m", "v", "epsilon", "update_from", "lr"};

// Returns the name of the arm of a row, as OutcomesOf makes it.
std::string NameOf(const Frame& row, KeyColumns keys) {
  std::vector<std::string> names;
  for (const std::string_view key : keys) names.push_back(row.Text(key));
  return fmt::format("{}", fmt::join(names, " / "));
}

// Returns the gap of an arm to fp32, both of `pool`; NaN if fp32 is not there.
Estimate GapToFp32(const Frame& pool, const Frame& arm, KeyColumns keys) {
  const Frame fp32 = BaselineRows(pool);
  if (fp32.Empty()) return {kNaN, kNaN, kNaN};
  return GapOf(OutcomesOf(pool, keys, study::LossOrStart), NameOf(arm, keys), NameOf(fp32, keys));
}

// Returns the rows of `frame` that belong to the arm of a row of another table.
Frame SameArm(const Frame& frame, const Frame& arm) {
  Frame rows = frame;
  for (const std::string_view key : kArmKeys) rows = rows.Where(key, arm.Text(key));
  return rows;
}

size_t Diverged(const Frame& arm) { return arm.Size() - arm.Where("status", "finished").Size(); }

// Returns the row of a pair at one epsilon and update_from, from its rows at the best rate.
Row PairRow(const Frame& pair, const Tables& tables) {
  const Frame regime = OfRegime(tables.at("final"), pair.Text("epsilon"), pair.Text("update_from"));
  if (BaselineRows(regime).Empty()) {
    throw Error::Format(
        "there is no run of {} at epsilon {}", kBaseline.Text(), pair.Text("epsilon"));
  }
  SeedValues v_flushed;
  if (tables.contains("flushed")) {
    for (const Frame& seed : SameArm(tables.at("flushed"), pair).By({"seed"})) {
      v_flushed[seed.Text("seed")] = seed.Mean("v_flushed");
    }
  }
  Row row;
  for (const std::string_view key : kArmKeys) row.emplace_back(pair.Text(key));
  row.insert(row.end(), {pair.Size(), Diverged(pair)});
  Append({MeanOf(pair.OverSeeds("valid_loss")), GapToFp32(BestRates(regime), pair, kPairKeys)},
         row);
  row.insert(row.end(), {MeanOf(v_flushed).value, pair.Number("m_bytes") + pair.Number("v_bytes")});
  return row;
}

// Returns the row of an arm: its gap to fp32 at the same epsilon and rate, and the predicted epsilon.
Row PhaseRow(const Frame& arm, const Frame& all, const Frame& spread, double beta1) {
  const std::string epsilon = arm.Text("epsilon"), update = arm.Text("update_from"),
                    lr = arm.Text("lr");
  Row row;
  for (const std::string_view key : kArmKeys) row.emplace_back(arm.Text(key));
  row.insert(row.end(), {arm.Size(), Diverged(arm)});
  Append({GapToFp32(OfRegime(all, epsilon, update).Where("lr", lr), arm, kArmKeys)}, row);
  row.emplace_back(PredictedEpsilon(
      spread.Where("epsilon", epsilon).Where("lr", lr), arm.Text("v"), update, beta1));
  return row;
}

// Returns the bytes per parameter of a large tensor, from the bytes that one more block takes, so
// that data stored once per tensor do not count.
double BytesOf(const std::string& storage) {
  const MomentFormat format = ParseMomentFormat(storage);
  const size_t block = format.HasBlocks() ? format.block : 2;  // a byte holds two 4-bit codes
  return (MomentBytes(format, 2 * block) - MomentBytes(format, block)) / static_cast<double>(block);
}

constexpr double kWeightBytes = 4;  // weights and gradients in bf16
constexpr double kMasterFp32 = 4, kMasterFp16 = 2;

void AddMemory(const MomentPair& pair, double billions, std::vector<Row>& rows) {
  const double m = BytesOf(pair.m), v = BytesOf(pair.v);
  for (const auto& [master, master_bytes] :
       {std::pair{"fp32", kMasterFp32}, std::pair{"fp16", kMasterFp16}}) {
    for (const int devices : {1, 2, 4, 8}) {
      const double bytes = kWeightBytes + (m + v + master_bytes) / devices;
      const double fp32 = kWeightBytes + (4 + 4 + kMasterFp32) / devices;
      rows.push_back({pair.m,
                      pair.v,
                      master,
                      m,
                      v,
                      master_bytes,
                      devices,
                      bytes * billions,
                      1 - bytes / fp32});
    }
  }
}

}  // namespace

MomentPair PairOf(const Frame& row) { return {row.Text("m"), row.Text("v")}; }

Frame BaselineRows(const Frame& frame) {
  return frame.Where("m", kBaseline.m).Where("v", kBaseline.v);
}

Frame BestRates(const Frame& final_table) {
  std::map<std::vector<std::string>, std::pair<double, std::string>> best;  // loss and rate
  const auto key_of = [](const Frame& row) {
    return std::vector{row.Text("m"), row.Text("v"), row.Text("epsilon"), row.Text("update_from")};
  };
  for (const Frame& arm : final_table.By({"m", "v", "epsilon", "update_from", "lr"})) {
    double sum = 0;
    arm.ForEach([&](const Frame& row) { sum += study::LossOrStart(row); });
    const std::pair candidate{sum / static_cast<double>(arm.Size()), arm.Text("lr")};
    const auto [found, added] = best.emplace(key_of(arm), candidate);
    if (!added && candidate.first < found->second.first) found->second = candidate;
  }
  return final_table.Where(
      [&](const Frame& row) { return best.at(key_of(row)).second == row.Text("lr"); });
}

Frame OfRegime(const Frame& frame, std::string_view epsilon, std::string_view update_from) {
  return frame.Where("epsilon", epsilon).Where([&](const Frame& row) {
    return PairOf(row) == kBaseline || row.Text("update_from") == update_from;
  });
}

std::vector<Row> PairRows(const Results& results) {
  std::vector<Row> rows;
  for (const Frame& pair : BestRates(results.Of("final")).By(kPairKeys)) {
    rows.push_back(PairRow(pair, results.tables));
  }
  return rows;
}

std::vector<Row> PhaseRows(const Results& results) {
  if (!results.tables.contains("spread")) return {};  // results from before it was recorded
  const double beta1 = results.settings.GetDouble("beta1", 0, 1);
  const Frame all = results.Of("final"), spread = results.Of("spread");
  std::vector<Row> rows;
  for (const Frame& arm : all.By(kArmKeys)) rows.push_back(PhaseRow(arm, all, spread, beta1));
  return rows;
}

std::vector<Row> MemoryRows(const Results& results) {
  const double billions = results.settings.GetDouble("billions", 1e-6, 1e6);
  std::vector<Row> rows;
  for (const Frame& pair : results.Of("final").By({"m", "v"})) {
    AddMemory(PairOf(pair), billions, rows);
  }
  return rows;
}

}  // namespace numsim::experiments::moment_formats
