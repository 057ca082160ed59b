// Shared by the tests of `loss-spikes`: small settings, made-up runs and events.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiments/loss_spikes/loss_spikes.h"
#include "experiments/runner/settings.h"
#include "tests/experiments/result_tables.h"
#include "tests/experiments/tiny_runs.h"

namespace numsim::experiments::loss_spikes {

using Steps = std::vector<uint64_t>;

// Models that train in milliseconds. The thresholds are so low that there are spikes.
inline const Overrides kTiny = TinyRun("loss-spikes");

// Returns kTiny with these changes.
inline Settings TinySettings(const Overrides& changes = {}, int seeds = 1, uint64_t seed = 0) {
  Overrides all = kTiny;
  for (const auto& [option, value] : changes) all[option] = value;
  return MakeSettings(LossSpikes(), "quick", seed, seeds, all);
}

// The centre of kTiny, and its student.
inline Arm TinyArm(const std::string& beta2 = "0.99", const std::string& optimizer = "adamw") {
  return {"clip", "1x32", "4", "1e-2", "3", "steady", beta2, optimizer};
}
inline Arm TinyStudent(const std::string& optimizer = "adamw", const std::string& lr = "1e-2") {
  return {"mlp", "1x32", "8", lr, "3", "steady", "0.99", optimizer};
}

inline std::string TextOf(const Arm& arm) {
  static const study::Study spikes = LossSpikesStudy();
  return ArmText(spikes, arm, spikes.label);
}

inline TrainConfig ConfigOf(const Settings& settings, const Arm& arm, uint64_t seed) {
  return study::ConfigOf(LossSpikesStudy(), settings, arm, seed);
}

// Returns the cells that name an arm, by column.
inline std::map<std::string, std::string> NamesOf(const Arm& arm) {
  return {{"model", arm[kModel]},
          {"size", arm[kSize]},
          {"batch", arm[kBatch]},
          {"lr", arm[kLr]},
          {"warmup", arm[kWarmup]},
          {"data", arm[kData]},
          {"beta2", arm[kBeta2]},
          {"optimizer", arm[kOptimizer]}};
}

inline Trial TrialOf(const Arm& arm, uint64_t seed = 0) {
  return {.label = TextOf(arm), .seed = seed, .parameters = NamesOf(arm)};
}

// The tables that derive and claims read, from made-up runs.
class SpikeTables : public ::testing::Test {
 protected:
  using Cells = std::map<std::string, Cell>;

  // An arm of these options: the centre of --preset quick.
  static Arm CentreArm(const std::string& beta2, const std::string& optimizer = "adamw") {
    return {"clip", "2x32", "32", "4e-3", "150", "steady", beta2, optimizer};
  }

  void SetOptions(const Overrides& options, int seeds = 10) {
    results_ = ResultTables(LossSpikes(), options, seeds);
  }

  // Adds a row to a table. Cells that are not named are nan.
  void AddRow(const std::string& table, const Arm& arm, int seed, Cells cells) {
    for (const auto& [column, name] : NamesOf(arm)) cells.emplace(column, name);
    cells.emplace("seed", seed);
    results_.Add(table, cells);
  }
  // Adds a run that finished after 1000 steps, unless the cells say otherwise.
  void AddRun(const Arm& arm, int seed, Cells cells = {}) {
    cells.insert({{"parameters", 1000},
                  {"status", "finished"},
                  {"steps", 1000},
                  {"chance_loss", 3.5},
                  {"collapsed", 0}});
    AddRow("runs", arm, seed, std::move(cells));
  }
  void AddLossSpikes(const Arm& arm, int seed, const Steps& at, const Steps& lost) {
    AddEvents(arm, seed, "loss", "", at, Joined(lost));
  }
  void AddRmsSpikes(const Arm& arm, int seed, const std::string& parameter, const Steps& at) {
    AddEvents(arm, seed, "rms", parameter, at, "");
  }
  void AddCurvature(const Arm& arm, int seed, const Steps& at) {
    AddEvents(arm, seed, "curvature", "", at, "");
  }

  ResultTables results_{LossSpikes(), {}, 10};

 private:
  static std::string Joined(const Steps& steps) {
    std::string text;
    for (const uint64_t step : steps) text += (text.empty() ? "" : " ") + std::to_string(step);
    return text;
  }
  void AddEvents(const Arm& arm,
                 int seed,
                 const char* event,
                 const std::string& parameter,
                 const Steps& at,
                 const std::string& lost) {
    AddRow("events",
           arm,
           seed,
           {{"event", event},
            {"tensor", parameter},
            {"count", at.size()},
            {"at", Joined(at)},
            {"lost", lost}});
  }
};

inline const std::string kPatches = "image.patches.weight";

}  // namespace numsim::experiments::loss_spikes
