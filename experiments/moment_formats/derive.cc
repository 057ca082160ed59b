// The derived tables of `moment-formats`: results of pairs over seeds, and memory.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "experiments/claims/frame.h"
#include "experiments/moment_formats/moment_formats.h"
#include "numsim/moments/moment_store.h"

namespace numsim::experiments::moment_formats {
namespace {

// Returns the rows of `frame` that belong to the arm of a row of another table.
Frame SameArm(const Frame& frame, const Frame& arm) {
  Frame rows = frame;
  for (const char* const key : {"m", "v", "epsilon", "update_from", "lr"}) {
    rows = rows.Where(key, arm.Text(key));
  }
  return rows;
}

size_t Diverged(const Frame& arm) { return arm.Size() - arm.Where("status", "finished").Size(); }

// Returns the row of a pair at one epsilon and update_from, from its rows at the best rate.
Row PairRow(const Frame& pair, const Tables& tables) {
  const Estimate loss = MeanOf(pair.OverSeeds("valid_loss"));
  const MomentPair formats = PairOf(pair);
  const std::string epsilon = pair.Text("epsilon");
  const Frame regime =
      OfRegime(tables.at(std::string(kFinalTable)), epsilon, pair.Text("update_from"));
  const Estimate gap = GapOf(Losses(regime),
                             ArmName(formats, epsilon, pair.Text("update_from")),
                             ArmName(kBaseline, epsilon, BaselineUpdate(tables)));
  SeedValues v_flushed;
  if (tables.contains(std::string(kFlushedTable))) {
    const Frame flushed = SameArm(tables.at(std::string(kFlushedTable)), pair);
    for (const Frame& seed : flushed.By({"seed"})) {
      v_flushed[seed.Text("seed")] = seed.Mean("v_flushed");
    }
  }
  return {formats.m,
          formats.v,
          epsilon,
          pair.Text("update_from"),
          pair.Text("lr"),
          pair.Size(),
          Diverged(pair),
          loss.value,
          loss.low,
          loss.high,
          gap.value,
          gap.low,
          gap.high,
          MeanOf(v_flushed).value,
          pair.Number("m_bytes") + pair.Number("v_bytes")};
}

std::string PhaseName(const Frame& arm) {
  return ArmName(PairOf(arm), arm.Text("epsilon"), arm.Text("update_from")) + " / " +
         arm.Text("lr");
}

// Adds the gap of every arm to fp32 at the same epsilon and rate, beside the predicted epsilon.
void AddPhases(const Tables& tables, double beta1, Table& phases) {
  const Frame all = tables.at(std::string(kFinalTable));
  const Frame spread = tables.at(std::string(kSpreadTable));
  for (const Frame& arm : all.By({"m", "v", "epsilon", "update_from", "lr"})) {
    const std::string epsilon = arm.Text("epsilon"), lr = arm.Text("lr");
    const Frame regime = OfRegime(all, epsilon, arm.Text("update_from")).Where("lr", lr);
    const OutcomeTable losses =
        OutcomesOf(regime, {"m", "v", "epsilon", "update_from", "lr"}, LossOf);
    const Estimate gap = GapOf(losses, PhaseName(arm), PhaseName(BaselineRows(regime)));
    const double predicted = PredictedEpsilon(spread.Where("epsilon", epsilon).Where("lr", lr),
                                              arm.Text("v"),
                                              arm.Text("update_from"),
                                              beta1);
    phases.rows.push_back({arm.Text("m"),
                           arm.Text("v"),
                           epsilon,
                           arm.Text("update_from"),
                           lr,
                           arm.Size(),
                           Diverged(arm),
                           gap.value,
                           gap.low,
                           gap.high,
                           predicted});
  }
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

void AddMemory(const MomentPair& pair, double billions, Table& table) {
  const double m = BytesOf(pair.m), v = BytesOf(pair.v);
  for (const auto& [master, master_bytes] :
       {std::pair{"fp32", kMasterFp32}, std::pair{"fp16", kMasterFp16}}) {
    for (const int devices : {1, 2, 4, 8}) {
      const double bytes = kWeightBytes + (m + v + master_bytes) / devices;
      const double fp32 = kWeightBytes + (4 + 4 + kMasterFp32) / devices;
      table.rows.push_back({pair.m,
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

std::string ArmName(const MomentPair& pair,
                    std::string_view epsilon,
                    std::string_view update_from) {
  return fmt::format("{} / {} / {}", pair.Text(), epsilon, update_from);
}

std::string BaselineUpdate(const Tables& tables) {
  return BaselineRows(tables.at(std::string(kFinalTable))).Text("update_from");
}

double LossOf(const Frame& row) {
  return row.Text("status") == "finished" ? row.Number("valid_loss") : row.Number("start_loss");
}

Frame BestRates(const Frame& final_table) {
  std::map<std::vector<std::string>, std::pair<double, std::string>> best;  // loss and rate
  const auto key_of = [](const Frame& row) {
    return std::vector{row.Text("m"), row.Text("v"), row.Text("epsilon"), row.Text("update_from")};
  };
  for (const Frame& arm : final_table.By({"m", "v", "epsilon", "update_from", "lr"})) {
    double sum = 0;
    arm.ForEach([&](const Frame& row) { sum += LossOf(row); });
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

OutcomeTable Losses(const Frame& final_table) {
  return OutcomesOf(BestRates(final_table), {"m", "v", "epsilon", "update_from"}, LossOf);
}

void Derive(const Settings& settings, Tables& tables) {
  const double billions = settings.GetDouble("billions", 1e-6, 1e6);
  const Frame all = tables.at(std::string(kFinalTable));
  for (const Frame& pair : BestRates(all).By({"m", "v", "epsilon", "update_from"})) {
    tables.at(std::string(kPairsTable)).rows.push_back(PairRow(pair, tables));
  }
  for (const Frame& pair : all.By({"m", "v"})) {
    AddMemory(PairOf(pair), billions, tables.at(std::string(kMemoryTable)));
  }
  const double beta1 = settings.GetDouble("beta1", 0, 1);
  if (!tables.contains(std::string(kSpreadTable))) return;  // results from before it was recorded
  AddPhases(tables, beta1, tables.at(std::string(kPhasesTable)));
}

}  // namespace numsim::experiments::moment_formats
