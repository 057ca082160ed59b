#include "numsim/train/internal/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "numsim/backend/backend.h"
#include "numsim/base/build_info.h"
#include "numsim/base/parallel.h"
#include "numsim/gemm/gemm.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/csv.h"
#include "numsim/io/manifest.h"
#include "numsim/plot/figure.h"
#include "numsim/train/internal/loss_history.h"
#include "numsim/train/internal/what_if_report.h"
#include "numsim/train/shared/run_files.h"

namespace numsim {
namespace {

std::string Line(std::string_view name, const std::string& text) {
  return fmt::format("{:<28}{}\n", name, text);
}

NamedTexts Options(const TrainConfig& config) {
  NamedTexts texts;
  for (ConfigKey& key : ConfigKeys(config)) {
    texts.emplace_back(std::move(key.name), std::move(key.value));
  }
  return texts;
}

NamedTexts Measurements(const TrainSpeed& speed) {
  if (speed.steps == 0) return {};
  NamedTexts texts = {{"steps", FormatCell(speed.steps)},
                      {"seconds", FormatCell(speed.seconds)},
                      {"seconds_of_fastest_step", FormatCell(speed.fastest)},
                      {"tokens_per_second", FormatCell(speed.tokens_per_second)}};
  if (speed.layer_gflops == 0) return texts;  // computed elsewhere: its phases are not known
  texts.insert(texts.end(),
               {{"layer_gflops", FormatCell(speed.layer_gflops)},
                {"float32_gflops", FormatCell(speed.float32_gflops)},
                {"library_gflops", FormatCell(speed.library_gflops)},
                {"library", GemmLibrary()}});
  for (size_t part = 0; part < kStepPhases; ++part) {
    texts.emplace_back(fmt::format("share_{}", ToString(static_cast<StepPhase>(part))),
                       FormatCell(speed.Share(static_cast<StepPhase>(part))));
  }
  return texts;
}

// Returns the mean number of bytes of the tokens that a validation predicts, if tokens are pieces of a
// text.
std::optional<double> ValidBytesPerToken(const RunFacts& facts) {
  const std::span<const uint16_t> bytes = facts.data.TokenBytes();
  if (bytes.empty()) return std::nullopt;
  const LoopConfig& loop = facts.config.train;
  const size_t part = loop.batch / loop.accumulate, length = facts.config.model.context;
  size_t batches = facts.data.ValidBatches(part, length);
  if (loop.valid_batches > 0) batches = std::min(batches, loop.valid_batches);
  Batch batch;
  double sum = 0, count = 0;
  for (size_t i = 0; i < batches; ++i) {
    facts.data.ValidBatch(i, part, length, batch);
    for (const int32_t target : batch.targets) sum += bytes[static_cast<size_t>(target)];
    count += static_cast<double>(batch.targets.size());
  }
  return sum / count;
}

void WriteRunManifest(const RunFacts& facts,
                      const RunOrigin& origin,
                      const TrainRunResult& result) {
  const std::string gnuplot = GnuplotVersion();
  Manifest manifest;
  manifest.command = origin.command;
  manifest.experiment = "train";
  manifest.options = Options(facts.config);
  for (const auto& [name, digest] : facts.data.Digests()) {
    manifest.policies.emplace_back(name, "SHA-256 " + digest);
  }
  manifest.measurements = Measurements(result.speed);
  manifest.seeds = {facts.config.train.seed};
  manifest.git_commit = BuildCommit();
  manifest.compiler = BuildCompiler();
  manifest.build_type = BuildType();
  manifest.backend = BackendName();
  manifest.simd_target = UsesScalarReference() ? "none" : manifest.backend;
  manifest.versions = {{"numsim", std::string(BuildVersion())},
                       {"gnuplot", gnuplot.empty() ? "not found" : gnuplot}};
  manifest.versions.insert(manifest.versions.end(), origin.versions.begin(), origin.versions.end());
  manifest.host = DescribeHost();
  manifest.threads = ThreadCount();
  manifest.started = origin.started;
  manifest.ended = UtcNow();
  for (const std::string& file : result.files) {
    manifest.outputs.push_back(DescribeOutput(origin.out, file));
  }
  WriteManifest(origin.out / kManifestFile, manifest);
}

}  // namespace

RunFacts FactsOf(const Trainer& trainer) {
  return {.config = trainer.config(),
          .data = trainer.data(),
          .status = trainer.status(),
          .reason = trainer.reason(),
          .steps = trainer.steps_taken(),
          .recent_loss = trainer.recent_loss(),
          .validation = trainer.last_validation(),
          .zero_shot = trainer.last_zero_shot(),
          .parameters = trainer.model().parameters().Elements(),
          .bytes = trainer.optimizer().StoredBytes()};
}

TrainRunResult ResultOf(const RunFacts& facts) {
  TrainRunResult result;
  result.status = facts.status;
  result.reason = facts.reason;
  result.steps = facts.steps;
  result.train_loss = facts.recent_loss;
  result.valid_loss = facts.validation.has_value() ? facts.validation->Mean()
                                                   : std::numeric_limits<double>::quiet_NaN();
  result.files = {kConfigFile, kCheckpointFile};
  for (const TelemetryTable& table : TelemetryTables(facts.config)) {
    result.files.push_back(CsvFile(table.name));
  }
  return result;
}

void WriteResults(const RunFacts& facts, const RunOrigin& origin, TrainRunResult& result) {
  const Table train = ReadCsv(origin.out / CsvFile("train"));
  if (origin.figures) {
    for (std::string& file : DrawCurves(facts, train, origin.out)) {
      result.files.push_back(std::move(file));
    }
  }
  result.summary =
      SummaryText(facts) + SpikesText(facts.config, train) + WhatIfText(facts.config, origin.out);
  WriteFileAtomically(origin.out / kSummaryFile, result.summary);
  result.files.emplace_back(kSummaryFile);
  WriteRunManifest(facts, origin, result);
  result.files.emplace_back(kManifestFile);
}

std::string SummaryText(const RunFacts& facts) {
  const TrainConfig& config = facts.config;
  std::string text;
  text += Line("status",
               facts.reason.empty() ? std::string(ToString(facts.status))
                                    : fmt::format("{}: {}", ToString(facts.status), facts.reason));
  text += Line("steps", fmt::format("{} of {}", facts.steps, config.train.steps));
  text += Line("model",
               fmt::format("{}, {} parameters", ToString(config.model.kind), facts.parameters));
  text += Line("data", facts.data.Describe());
  text += Line(
      "training loss",
      fmt::format(
          "{} (mean of the last {} steps)", FormatCell(facts.recent_loss), LossHistory::kRecent));
  if (const auto& valid = facts.validation) {
    text += Line("validation loss", FormatCell(valid->Mean()));
    if (const auto bytes = ValidBytesPerToken(facts)) {
      text += Line("nats per byte",
                   fmt::format("{} (of validation, {:.4g} bytes per token)",
                               FormatCell(valid->Mean() / *bytes),
                               *bytes));
    }
  }
  if (const auto& zero_shot = facts.zero_shot) {
    text +=
        Line("zero-shot accuracy",
             fmt::format(
                 "{} (among {} concepts)", FormatCell(zero_shot->Accuracy()), zero_shot->concepts));
  }
  if (const auto bound = facts.data.EntropyBound()) {
    text += Line("entropy bound", FormatCell(*bound));
  }
  const Optimizer::Bytes& bytes = facts.bytes;
  text +=
      Line("bytes per parameter",
           fmt::format("m {}, v {}, weights {}, {}together {}",
                       FormatCell(bytes.m),
                       FormatCell(bytes.v),
                       FormatCell(bytes.weights),
                       bytes.other > 0 ? fmt::format("other {}, ", FormatCell(bytes.other)) : "",
                       FormatCell(bytes.Sum())));
  return text;
}

}  // namespace numsim
