// Steps of update rules on the device with 2^28 weights. Weights are normally distributed numbers
// rounded to the format; updates are normally distributed. The time is the device's, measured by
// events around each call; it includes work of the host in between. Columns:
//   GB/s      rate of the bytes that a step must move: it reads weights, update and state, and
//             writes weights and state, each once
//   of_copy   ratio to the rate of a copy of the same arrays in this process
//   of_naive  ratio to the time of the rule naive
// Rows:
//   copy          copies device to device
//   round-step/P  RoundStep() alone, nearest or stochastic
//   apply/RULE    ApplyUpdate() on the device with all its checks and measurements
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/device_clock.h"
#include "bench/report.h"
#include "numsim/backend/device_context.h"
#include "numsim/cast/cast.h"
#include "numsim/cast/shared/round_step.h"
#include "numsim/formats/format_table.h"
#include "numsim/random/distributions.h"
#include "numsim/updates/update_rule.h"

namespace numsim::bench {
namespace {

constexpr size_t kWeights = size_t{1} << 28;
constexpr float kRate = 1e-3f;

// Returns kWeights numbers: `tile`, repeated with rotation.
Buffer<float> Spread(const std::vector<float>& tile) {
  const Buffer<float> small = CopyAt(tile, ThreadPlace());
  Buffer<float> out(ThreadPlace(), kWeights);
  size_t offset = 0;
  for (size_t begin = 0; begin < kWeights;) {
    const size_t piece = std::min(kWeights - begin, tile.size() - offset);
    CopyMatrix<float>(small.View().Columns(offset, piece), out.View().Columns(begin, piece));
    begin += piece;
    offset = (offset + piece + 999983) % tile.size();
  }
  return out;
}

// Data shared by all rows of a format.
struct Arrays {
  FormatSpec format;
  Buffer<float> weights, update, out;
  UpdateState state;  // master-fp32, kahan: the weights or zeros; split-master: zeros
};

std::shared_ptr<Arrays> ArraysOf(const std::string& format) {
  static std::pair<std::string, std::shared_ptr<Arrays>> last;
  if (last.second != nullptr && last.first == format) return last.second;
  last.second.reset();  // frees the large arrays before the new ones are allocated
  auto arrays = std::make_shared<Arrays>();
  arrays->format = ParseFormat(format).spec;
  std::vector<float> draws(size_t{1} << 22);
  FillNormal({1, 0}, 0, draws);
  FakeQuantize(MakeEncodePlan(arrays->format, {}, Overflow::kSaturate), draws, draws);
  arrays->weights = Spread(draws);
  FillNormal({1, 1}, 0, draws);
  arrays->update = Spread(draws);
  arrays->out = Buffer<float>(ThreadPlace(), kWeights);
  last = {format, arrays};
  return arrays;
}

// Creates the initial state of a rule for the weights.
void StartState(const UpdateRule& rule, Arrays& arrays) {
  arrays.state = {};
  const auto clear = [](auto view) {
    device_memory::FillBytes(view.data, 0, view.Bytes(), ThreadStream());
  };
  if (rule.kind == UpdateKind::kMasterFp32) arrays.state.values = arrays.weights;
  if (rule.kind == UpdateKind::kKahan) {
    arrays.state.values.EnsureAt(ThreadPlace());
    clear(arrays.state.values.Renew(kWeights));
  }
  if (rule.kind == UpdateKind::kSplitMaster) {
    arrays.state.words.EnsureAt(ThreadPlace());
    clear(arrays.state.words.Renew(kWeights));
  }
}

double BytesOf(const UpdateRule& rule) {
  switch (rule.kind) {
    case UpdateKind::kMasterFp32:
    case UpdateKind::kKahan:
      return 12 + 8;
    case UpdateKind::kSplitMaster:
      return 12 + 4;
    default:
      return 12;
  }
}

DeviceLaunch CopyOf(const std::string& format) {
  return [arrays = ArraysOf(format)](int i) {
    const Buffer<float>& from = i % 2 == 0 ? arrays->weights : arrays->update;
    CopyMatrix<float>(from.View(), arrays->out.View());
  };
}

DeviceLaunch RoundStepOf(const std::string& format, const Rounding& rounding) {
  auto arrays = ArraysOf(format);
  const EncodePlan plan = MakeEncodePlan(arrays->format, rounding, Overflow::kSaturate);
  return [arrays, plan](int) {
    Arrays& on = *arrays;
    RoundStep(plan, on.weights.View(), on.update.View(), kRate, on.out.View(), {{1, 2}, 0});
  };
}

// Returns the launch of ApplyUpdate(). Sets `outcome` to the outcome of the last launch.
DeviceLaunch ApplyOf(const std::string& format,
                     const UpdateRule& rule,
                     std::shared_ptr<UpdateOutcome> outcome) {
  auto arrays = ArraysOf(format);
  StartState(rule, *arrays);
  return [arrays, rule, outcome](int i) {
    Arrays& on = *arrays;
    const WeightUpdate step{on.format, on.weights.View(), on.update.View(), kRate, 0};
    const RandomStream random{1, static_cast<uint64_t>(i)};
    *outcome = ApplyUpdate(rule, step, random, on.state, on.out.View());
  };
}

// Bytes per second of the copy and seconds of the naive step, for one format.
struct Limits {
  double copy_rate = 0, naive_seconds = 0;
};

const Limits& LimitsOf(const std::string& format) {
  static std::pair<std::string, Limits> last;
  if (last.first == format) return last.second;
  last.second.copy_rate = 2.0 * kWeights * sizeof(float) / MedianSeconds(CopyOf(format));
  last.second.naive_seconds =
      MedianSeconds(ApplyOf(format, ParseUpdateRule("naive"), std::make_shared<UpdateOutcome>()));
  last.first = format;
  return last.second;
}

void Add(const std::string& name,
         const std::string& format,
         double bytes,
         const std::function<DeviceLaunch()>& prepare,
         const std::shared_ptr<UpdateOutcome>& outcome = nullptr) {
  const auto run = [=](benchmark::State& state) {
    const Limits& limits = LimitsOf(format);
    const DeviceLaunch launch = prepare();
    for (auto _ : state) {
      const double seconds = MedianSeconds(launch);
      const double rate = bytes * kWeights / seconds;
      state.SetIterationTime(seconds);
      state.counters["GB/s"] = rate * 1e-9;
      state.counters["of_copy"] = rate / limits.copy_rate;
      state.counters["of_naive"] = seconds / limits.naive_seconds;
    }
    if (outcome != nullptr) {
      state.SetLabel(fmt::format("{}, {} moved, {} passes",
                                 numsim::ToString(outcome->status),
                                 outcome->moved,
                                 outcome->passes));
    }
  };
  benchmark::RegisterBenchmark((name + "/" + format).c_str(), run)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(1);
}

void AddAll(const std::string& format) {
  Add("copy", format, 8, [=] { return CopyOf(format); });
  Add("round-step/nearest", format, 12, [=] { return RoundStepOf(format, {}); });
  Add("round-step/stochastic", format, 12, [=] {
    return RoundStepOf(format, {RoundingMode::kStochastic, StochasticVariant::kA, 32});
  });
  for (const char* const text : {"naive",
                                 "stochastic",
                                 "master-fp32",
                                 "split-master",
                                 "kahan",
                                 "norm-matched",
                                 "projection-matched"}) {
    const UpdateRule rule = ParseUpdateRule(text);
    if (!Serves(rule, ParseFormat(format))) continue;
    const auto outcome = std::make_shared<UpdateOutcome>();
    Add(
        fmt::format("apply/{}", text),
        format,
        BytesOf(rule),
        [=] { return ApplyOf(format, rule, outcome); },
        outcome);
  }
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  return numsim::bench::DeviceMain(argc, argv, [] {
    for (const char* const format : {"bf16", "e4m3fn"}) numsim::bench::AddAll(format);
  });
}
