// Costs of the predictors of loss spikes: a residual MLP of 2 blocks and width 32 that sees 128
// examples in each step, as in the experiment loss-spikes. Rows:
//   train/step           a training step with AdamW, whose RMS_t is a by-product
//   curvature/step       CurvatureOfNextStep: three float64 passes; a step that uses it costs both
//   spikes/100000        loss and RMS spikes of 100,000 steps
//   predict/100x1000     Predict over 100 trainings of 1000 steps: recall by chance over all shifts
#include <benchmark/benchmark.h>

#include "bench/report.h"
#include "numsim/analysis/curvature.h"
#include "numsim/random/distributions.h"
#include "numsim/stats/spikes.h"
#include "numsim/train/trainer.h"

namespace numsim::bench {
namespace {

constexpr size_t kBatch = 128;

TrainConfig StudentConfig() {
  TrainConfig config;
  config.model.kind = ModelKind::kMlp;
  config.model.layers = 2;
  config.model.width = 32;
  config.data.kind = DataKind::kGaussian;
  config.data.size = 2 * kBatch;
  config.data.valid_share = 0.5;
  config.data.features = 16;
  config.train.batch = kBatch;
  config.train.steps = 1 << 30;
  config.train.valid_every = 0;
  config.schedule.kind = ScheduleKind::kConstant;
  config.schedule.peak = 1e-3;
  config.telemetry.every = ~uint64_t{0};
  config.telemetry.tensors_every = 0;
  return config;
}

void BM_Train(benchmark::State& state, int threads) {
  Prepare(threads);
  const TrainConfig config = StudentConfig();
  Trainer trainer(config, OpenData(config.data));
  for (auto _ : state) {
    trainer.Step();
    trainer.telemetry().Clear();
  }
}

void BM_Curvature(benchmark::State& state, int threads) {
  Prepare(threads);
  const TrainConfig config = StudentConfig();
  Trainer trainer(config, OpenData(config.data));
  trainer.Step();
  for (auto _ : state) benchmark::DoNotOptimize(CurvatureOfNextStep(trainer));
}

void BM_Spikes(benchmark::State& state, int threads) {
  Prepare(threads);
  std::vector<float> noise(100'000);
  FillNormal({1, 0}, 0, noise);
  const std::vector<double> losses(noise.begin(), noise.end());
  for (auto _ : state) {
    benchmark::DoNotOptimize(LossSpikes(losses, SpikeRule()));
    benchmark::DoNotOptimize(RmsSpikes(losses, SpikeRule()));
  }
}

void BM_Predict(benchmark::State& state, int threads) {
  Prepare(threads);
  std::vector<EventSeries> series(100);
  for (size_t i = 0; i < series.size(); ++i) {
    series[i].last = 1000;
    for (uint64_t step = i; step < 1000; step += 97) series[i].events.push_back(step);
    for (uint64_t step = 5 + i; step < 1000; step += 301) series[i].spikes.push_back(step);
  }
  for (auto _ : state) benchmark::DoNotOptimize(Predict(series, SpikeRule()));
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  using namespace numsim::bench;
  return Main(argc, argv, [](int threads) {
    const std::string suffix = "/threads:" + std::to_string(threads);
    const auto add = [&](const char* name, void (*run)(benchmark::State&, int)) {
      Register(name + suffix, [=](benchmark::State& state) { run(state, threads); });
    };
    add("train/step", BM_Train);
    add("curvature/step", BM_Curvature);
    add("spikes/100000", BM_Spikes);
    add("predict/100x1000", BM_Predict);
  });
}
