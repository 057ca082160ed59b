#include "tests/support/train_problem.h"

#include "numsim/train/shared/run_files.h"

namespace numsim {

TrainConfig TinyConfig() {
  TrainConfig config;
  config.model.kind = ModelKind::kLlama;
  config.model.layers = 1;
  config.model.width = 16;
  config.model.heads = 2;
  config.model.context = 16;
  config.linear.all.high_precision = "fp32";
  config.data.kind = DataKind::kGeneratedText;
  config.data.size = 1 << 14;
  config.train.steps = 12;
  config.train.batch = 4;
  config.train.valid_every = 4;
  config.train.valid_batches = 2;
  config.train.seed = 7;
  config.schedule.peak = 3e-3;
  config.schedule.warmup = 3;
  config.telemetry.tensors_every = 5;
  config.checkpoint.every = 5;
  return config;
}

TrainConfig StatefulConfig() {
  TrainConfig config = TinyConfig();
  config.linear.all = {};
  config.linear.all.kind = "te-hybrid";
  config.linear.all.delayed = DelayedScalingOptions{4, AmaxAlgorithm::kMax, 0};
  config.linear.all.gradient_rounding.mode = RoundingMode::kStochastic;
  config.storage.activations = ParseFormat("bf16");
  config.storage.gradients = ParseFormat("bf16");
  config.optimizer.m = ParseMomentFormat("e4m3fn@block:32+sr");
  config.optimizer.v = ParseMomentFormat("dynamic:64");
  config.optimizer.moment_filter = MomentFilter::kAll;
  config.optimizer.weights = ParseFormat("bf16");
  config.optimizer.update = ParseUpdateRule("stochastic:16");
  config.optimizer.clip_norm = 1;
  config.loss_scaler.kind = LossScaling::kDynamic;
  config.loss_scaler.initial = 1024;
  config.loss_scaler.growth_interval = 3;
  return config;
}

std::shared_ptr<const DataSource> OpenShared(const DataConfig& config) { return OpenData(config); }

void StepUntil(Trainer& trainer, uint64_t steps) {
  while (trainer.status() == TrainStatus::kRunning && trainer.steps_taken() < steps) trainer.Step();
}

std::map<std::string, std::vector<std::byte>> TensorBytes(const TrainState& state) {
  std::map<std::string, std::vector<std::byte>> bytes;
  for (const auto& [name, array] : state.tensors) bytes[name] = array.bytes;
  return bytes;
}

std::string TelemetryText(const Telemetry& telemetry) {
  std::string text;
  for (const TelemetryTable& table : TelemetryTables()) text += ToCsv(telemetry.Of(table.name));
  return text;
}

std::map<std::string, std::string> ReproducibleFiles(const std::filesystem::path& directory) {
  std::vector<std::string> names = {kConfigFile, kCheckpointFile, kSummaryFile};
  for (const TelemetryTable& table : TelemetryTables()) {
    const bool always = table.name != kWhatIfTable;  // with recipes only
    if (always || std::filesystem::exists(directory / CsvFile(table.name))) {
      names.push_back(CsvFile(table.name));
    }
  }
  std::map<std::string, std::string> files;
  for (const std::string& name : names) {
    std::ifstream file(directory / name, std::ios::binary);
    files[name] = file ? std::string(std::istreambuf_iterator<char>(file), {}) : "no file";
  }
  return files;
}

}  // namespace numsim
