// Steps of optimisers on the device: 85 million parameters in 75 tensors, those of a Llama of 12
// blocks of width 768 over bytes. The time is the device's, between events around each step; steps do
// not wait for one another. Columns:
//   ms        time per step
//   GB/s      rate of the bytes that a step must at least move: it reads gradient, stored moments,
//             weights and the state of the update rule, and writes all but the gradient
//   of_copy   ratio to the rate of a copy of 1 GiB in this process
// Rows: copy; step/KIND/M/V/WEIGHTS/RULE. Nobody but the optimiser writes weights
// (Optimizer::SetOnlyWriter) and Last() does not tell how each tensor moved (Optimizer::SetReports),
// except in the rows that say so. Gradients are clipped, so that a step reads them twice: their norm
// must be known before the first weight moves; rows that are unclipped find the scales of tensors in
// that reading. `twice` is `of_copy` with that second reading.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/device_clock.h"
#include "bench/report.h"
#include "numsim/optim/optimizer.h"
#include "numsim/random/distributions.h"

namespace numsim::bench {
namespace {

struct StepProblem {
  std::string kind = "adamw", m = "fp32", v = "fp32", weights = "fp32", rule = "naive";
  bool only_writer = true;  // Optimizer::SetOnlyWriter
  bool reports = false;     // Optimizer::SetReports
  bool clips = true;
};

// The parameters, their gradients and an optimiser.
struct StepOnDevice {
  ParameterList<float> parameters{1, InitialValues::kDrawn, ThreadPlace()};
  std::unique_ptr<Optimizer> optimizer;
};

void Add(ParameterList<float>& parameters, const std::string& name, size_t rows, size_t cols) {
  const ParameterRole role = rows == 1 ? ParameterRole::kGain : ParameterRole::kMatrix;
  Parameter<float>& parameter = parameters.Add(name, role, rows, cols, {0, 0.02f});
  std::vector<float> gradient(rows * cols);
  FillNormal({1, parameters.size()}, 0, gradient);
  CopyMatrix<float>(gradient, parameter.gradient.View());
}

void AddLlama(ParameterList<float>& parameters) {
  constexpr size_t kDim = 768, kHidden = 2048, kTokens = 256;
  Add(parameters, "embedding", kTokens, kDim);
  for (int block = 0; block < 12; ++block) {
    const std::string prefix = fmt::format("blocks.{}.", block);
    Add(parameters, prefix + "attention.norm", 1, kDim);
    Add(parameters, prefix + "attention.qkv", 3 * kDim, kDim);
    Add(parameters, prefix + "attention.out", kDim, kDim);
    Add(parameters, prefix + "mlp.norm", 1, kDim);
    Add(parameters, prefix + "mlp.up", 2 * kHidden, kDim);
    Add(parameters, prefix + "mlp.down", kDim, kHidden);
  }
  Add(parameters, "norm", 1, kDim);
  Add(parameters, "classifier", kTokens, kDim);
}

std::shared_ptr<StepOnDevice> Prepare(const StepProblem& problem) {
  auto on = std::make_shared<StepOnDevice>();
  AddLlama(on->parameters);
  OptimizerConfig config;
  config.kind = ParseOptimizerKind(problem.kind);
  config.m = ParseMomentFormat(problem.m);
  config.v = ParseMomentFormat(problem.v);
  config.weights = ParseFormat(problem.weights);
  config.update = ParseUpdateRule(problem.rule);
  config.clip_norm = problem.clips ? 1 : 0;
  on->optimizer = std::make_unique<Optimizer>(config, LossScalerConfig{}, on->parameters, 1);
  on->optimizer->SetOnlyWriter(problem.only_writer);
  on->optimizer->SetReports(problem.reports);
  return on;
}

// Returns bytes per second, read plus written.
double CopyRate() {
  static const double rate = [] {
    constexpr size_t kBytes = size_t{1} << 30;
    auto from = std::make_shared<Buffer<uint8_t>>(ThreadPlace(), kBytes);
    auto to = std::make_shared<Buffer<uint8_t>>(ThreadPlace(), kBytes);
    return 2.0 * kBytes /
           MedianSeconds([=](int) { CopyMatrix<uint8_t>(from->View(), to->View()); });
  }();
  return rate;
}

// Returns the bytes that a step must move. In memory, weights are float32 whatever their format.
double BytesOf(const StepProblem& problem, const StepOnDevice& on) {
  const Optimizer::Bytes stored = on.optimizer->StoredBytes();
  const double state = stored.weights - ParseFormat(problem.weights).spec.Bits() / 8.0;
  return (4 + 2 * (stored.m + stored.v + 4 + state)) *
         static_cast<double>(on.parameters.Elements());
}

void BM_Copy(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(1e9 / CopyRate());
  state.counters["GB/s"] = CopyRate() * 1e-9;
  state.counters["of_copy"] = 1;
}

void BM_Step(benchmark::State& state, const StepProblem& problem) {
  const double copy = CopyRate();
  const auto on = Prepare(problem);
  const double bytes = BytesOf(problem, *on);
  for (auto _ : state) {
    const double seconds =
        MedianSeconds([&](int i) { on->optimizer->Step(1e-4, static_cast<uint64_t>(i)); });
    state.SetIterationTime(seconds);
    state.counters["ms"] = seconds * 1e3;
    state.counters["GB/s"] = bytes / seconds * 1e-9;
    state.counters["of_copy"] = bytes / seconds / copy;
    const double elements = static_cast<double>(on->parameters.Elements());
    state.counters["twice"] = (bytes + 4 * elements) / seconds / copy;
  }
  const OptimizerStep& last = on->optimizer->Last();
  state.SetLabel(fmt::format("{} tensors, norm {:.3g}", last.tensors.size(), last.gradient_norm));
}

void RegisterAll() {
  benchmark::RegisterBenchmark("copy", BM_Copy)->UseManualTime()->Iterations(1);
  for (const StepProblem& problem :
       {StepProblem{},
        StepProblem{.only_writer = false},
        StepProblem{.reports = true},
        StepProblem{.kind = "stable-adamw"},
        StepProblem{.kind = "sgd"},
        StepProblem{.kind = "lion"},
        StepProblem{.m = "bf16", .v = "bf16"},
        StepProblem{.m = "e4m3fn", .v = "e4m3fn"},
        StepProblem{.m = "e4m3fn", .v = "e4m3fn", .clips = false},
        StepProblem{.m = "e4m3fn", .v = "e4m3fn", .reports = true},
        StepProblem{.m = "e4m3fn@block:128", .v = "e4m3fn@block:128"},
        StepProblem{.m = "dynamic", .v = "dynamic"},
        StepProblem{.m = "e4m3fn@coat", .v = "e4m3fn@coat"},
        StepProblem{.weights = "bf16"},
        StepProblem{.weights = "bf16", .rule = "stochastic"},
        StepProblem{.weights = "bf16", .rule = "stochastic:16"},
        StepProblem{.weights = "bf16", .rule = "kahan"},
        StepProblem{.weights = "bf16", .rule = "split-master"},
        StepProblem{.weights = "bf16", .rule = "master-fp32"},
        StepProblem{.m = "e4m3fn", .v = "e4m3fn", .weights = "bf16", .rule = "stochastic"}}) {
    const std::string name = fmt::format("step/{}/{}/{}/{}/{}{}{}{}",
                                         problem.kind,
                                         problem.m,
                                         problem.v,
                                         problem.weights,
                                         problem.rule,
                                         problem.only_writer ? "" : "/weights-read-twice",
                                         problem.reports ? "/reports" : "",
                                         problem.clips ? "" : "/unclipped");
    benchmark::RegisterBenchmark(name.c_str(),
                                 [problem](benchmark::State& state) { BM_Step(state, problem); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->Iterations(1);
  }
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  return numsim::bench::DeviceMain(argc, argv, numsim::bench::RegisterAll);
}
