#include "numsim/train/internal/run_summary.h"

#include <fmt/format.h>

#include "numsim/backend/backend.h"
#include "numsim/base/build_info.h"
#include "numsim/base/parallel.h"
#include "numsim/gemm/gemm.h"
#include "numsim/io/csv.h"
#include "numsim/io/manifest.h"
#include "numsim/plot/figure.h"
#include "numsim/train/internal/loss_history.h"
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
                      {"tokens_per_second", FormatCell(speed.tokens_per_second)},
                      {"layer_gflops", FormatCell(speed.layer_gflops)},
                      {"float32_gflops", FormatCell(speed.float32_gflops)},
                      {"library_gflops", FormatCell(speed.library_gflops)},
                      {"library", GemmLibrary()}};
  for (size_t part = 0; part < kStepPhases; ++part) {
    texts.emplace_back(fmt::format("share_{}", ToString(static_cast<StepPhase>(part))),
                       FormatCell(speed.Share(static_cast<StepPhase>(part))));
  }
  return texts;
}

}  // namespace

std::string SummaryText(Trainer& trainer) {
  const TrainConfig& config = trainer.config();
  std::string text;
  text += Line("status",
               trainer.reason().empty()
                   ? std::string(ToString(trainer.status()))
                   : fmt::format("{}: {}", ToString(trainer.status()), trainer.reason()));
  text += Line("steps", fmt::format("{} of {}", trainer.steps_taken(), config.train.steps));
  text += Line("model",
               fmt::format("{}, {} parameters",
                           ToString(config.model.kind),
                           trainer.model().parameters().Elements()));
  text += Line("data", trainer.data().Describe());
  text += Line("training loss",
               fmt::format("{} (mean of the last {} steps)",
                           FormatCell(trainer.recent_loss()),
                           LossHistory::kRecent));
  if (const auto& valid = trainer.last_validation()) {
    text += Line("validation loss", FormatCell(valid->Mean()));
  }
  if (const auto& zero_shot = trainer.last_zero_shot()) {
    text +=
        Line("zero-shot accuracy",
             fmt::format(
                 "{} (among {} concepts)", FormatCell(zero_shot->Accuracy()), zero_shot->concepts));
  }
  if (const auto bound = trainer.data().EntropyBound()) {
    text += Line("entropy bound", FormatCell(*bound));
  }
  const Optimizer::Bytes bytes = trainer.optimizer().StoredBytes();
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

void WriteRunManifest(const Trainer& trainer,
                      const TrainRunOptions& options,
                      const TrainRunResult& result,
                      const std::string& started) {
  const TrainConfig& config = trainer.config();
  const std::string gnuplot = GnuplotVersion();
  Manifest manifest;
  manifest.command = options.command;
  manifest.experiment = "train";
  manifest.options = Options(config);
  manifest.measurements = Measurements(result.speed);
  manifest.seeds = {config.train.seed};
  manifest.git_commit = BuildCommit();
  manifest.compiler = BuildCompiler();
  manifest.build_type = BuildType();
  manifest.backend = BackendName();
  manifest.simd_target = UsesScalarReference() ? "none" : manifest.backend;
  manifest.versions = {{"numsim", std::string(BuildVersion())},
                       {"gnuplot", gnuplot.empty() ? "not found" : gnuplot}};
  manifest.host = DescribeHost();
  manifest.threads = ThreadCount();
  manifest.started = started;
  manifest.ended = UtcNow();
  for (const std::string& file : result.files) {
    manifest.outputs.push_back(DescribeOutput(options.out, file));
  }
  WriteManifest(options.out / kManifestFile, manifest);
}

}  // namespace numsim
