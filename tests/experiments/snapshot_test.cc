// The declarations of experiments and the files of small runs, compared with golden files: defaults,
// margins, lists of trials, and every byte of tables, verdicts, summaries and figures. Other tests say
// what is right; these say what moved.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "experiments/core/result_directory.h"
#include "experiments/core/runner.h"
#include "experiments/core/settings.h"
#include "numsim/io/csv.h"
#include "numsim/io/input_file.h"
#include "numsim/io/manifest.h"
#include "numsim/plot/internal/gnuplot_script.h"
#include "tests/experiments/golden_run.h"
#include "tests/support/golden_text.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

using Overrides = std::map<std::string, std::string>;

// Short: a change of one byte changes it.
std::string Digest(std::string_view text) { return Sha256OfText(text).substr(0, 16); }

// Of the preset quick: others read files, or make data of their size.
std::string TrialsText(const Experiment& experiment) {
  std::string text;
  double cost = 0;
  size_t count = 0;
  for (const Trial& trial : experiment.trials(MakeSettings(experiment, "quick", 7, 2, {}))) {
    ++count;
    cost += trial.cost;
    text += fmt::format("{} {} {}", trial.label, trial.seed, FormatCell(trial.cost));
    for (const auto& [name, value] : trial.parameters) text += fmt::format(" {}={}", name, value);
    text += "\n";
  }
  return fmt::format("{} cost {} {}", count, FormatCell(cost), Digest(text));
}

std::string DeclaredText(const Experiment& e) {
  std::string text;
  const auto add = [&](const std::string& line) { text += e.name + " " + line + "\n"; };
  for (const Option& o : e.options) {
    add(fmt::format(
        "option --{}: quick '{}' small '{}' demo '{}' paper '{}' cuda '{}' before '{}' {}",
        o.name,
        o.quick,
        o.small,
        o.demo,
        o.paper,
        o.cuda,
        o.before,
        o.others));
  }
  for (const Preset& preset : e.presets) {
    add(fmt::format(
        "preset {}: {} seeds, {} s", preset.name, preset.seeds, FormatCell(preset.seconds)));
  }
  add("trials of quick, two seeds: " + TrialsText(e));
  for (const TableSpec& table : e.tables) {
    std::string columns;
    for (const Column& column : table.columns) columns += " " + column.name;
    add(fmt::format("table {}{}{}:{}",
                    table.name,
                    table.derived ? " derived" : "",
                    table.timed ? " timed" : "",
                    columns));
  }
  for (const ClaimSpec& claim : e.claims) {
    add(fmt::format("claim {}: {} {} side {} margin {} effect {} diverged {}",
                    claim.id,
                    claim.primary ? "primary" : "exploratory",
                    ToString(claim.kind),
                    claim.side,
                    claim.margin.Text(),
                    FormatCell(claim.papers_effect),
                    static_cast<int>(claim.diverged)));
  }
  for (const PaperSetting& setting : e.paper_settings) {
    add(fmt::format("paper --{} '{}'", setting.option, setting.paper));
  }
  return text;
}

TEST(Snapshot, DeclaredOptionsPresetsTablesAndClaimsAreTheGoldenOnes) {
  std::string text;
  for (const Experiment& experiment : AllExperiments()) text += DeclaredText(experiment);
  ExpectGoldenLines("experiments/golden/declared.txt", text);
}

bool IsTimed(const Experiment& experiment, const std::string& csv) {
  for (const TableSpec& spec : experiment.tables) {
    if (csv == spec.name || csv == spec.name + ".csv") return spec.timed;
  }
  return false;
}

// A line per table that holds no times, and per figure of such tables.
std::string TablesText(const std::string& name,
                       const Experiment& experiment,
                       const Tables& tables) {
  std::string text;
  for (const TableSpec& spec : experiment.tables) {
    if (spec.timed) continue;
    const Table& table = tables.at(spec.name);
    text += fmt::format(
        "{} {}.csv {} rows {}\n", name, spec.name, table.rows.size(), Digest(ToCsv(table)));
  }
  return text;
}

std::string FiguresText(const std::string& name,
                        const Experiment& experiment,
                        const Settings& settings,
                        const Tables& tables) {
  std::string text;
  if (!experiment.figures) return text;
  for (const Figure& figure : experiment.figures(settings, tables)) {
    if (IsTimed(experiment, figure.source_csv)) continue;
    text += fmt::format("{} {}.gp {}\n", name, figure.name, Digest(GnuplotScript(figure)));
  }
  return text;
}

// Models that train in milliseconds, a run of two seeds.
const std::map<std::string, Overrides> kRuns = {
    {"feature-statistics",
     {{"sizes", "2x16"},
      {"layer-scales", "none,0"},
      {"shapes", "128"},
      {"image", "16"},
      {"batch", "8"},
      {"steps", "6"},
      {"warmup", "2"},
      {"every", "4"},
      {"histories", "2"},
      {"text-size", "16384"},
      {"context", "16"}}},
    {"fp8-interventions",
     {{"interventions", "layer-scale"},
      {"formats", "e3m2"},
      {"plant-point", "*blocks.0.mlp.down"},
      {"shapes", "512"},
      {"layers", "2"},
      {"text-layers", "1"},
      {"width", "16"},
      {"patch", "8"},
      {"text-size", "16384"},
      {"context", "16"},
      {"batch", "4"},
      {"steps", "10"},
      {"warmup", "2"},
      {"records", "2"},
      {"snapshots", "2"},
      {"valid-batches", "2"}}},
    {"fp8-outliers",
     {{"plants", "none,once:1e6"},
      {"recipes", "bf16,te-max,te-current,smooth,smooth-token"},
      {"scratch", "bf16,te-max"},
      {"scratch-bf16", "bf16,bf16-smooth"},
      {"scratch-lr", "1e-3,4e-3"},
      {"layers", "2"},
      {"width", "16"},
      {"heads", "1"},
      {"context", "16"},
      {"batch", "4"},
      {"steps", "10"},
      {"after", "12"},
      {"lead", "4"},
      {"warmup", "4"},
      {"text-size", "16384"},
      {"valid-batches", "1"}}},
    {"linear-error",
     {{"kinds", "switchback,llm-int8"},
      {"formats", "int8,e4m3fn"},
      {"tokens-low", "16"},
      {"tokens-high", "32"},
      {"width", "8"},
      {"dims", "12,16"},
      {"tokens-fixed", "16"},
      {"outlier-tokens", "0.1"}}},
    {"loss-scaling",
     {{"layers", "2"},
      {"width", "16"},
      {"batch", "8"},
      {"steps", "20"},
      {"warmup", "4"},
      {"burst-step", "10"},
      {"burst-steps", "3"},
      {"shapes", "256"},
      {"scales", "1024,1099511627776"},
      {"window", "4"},
      {"valid-batches", "1"}}},
    {"loss-spikes",
     {{"size", "1x32"},
      {"batch", "4"},
      {"lr", "1e-2"},
      {"warmup", "3"},
      {"beta2", "0.99,0.9"},
      {"axis-beta2", "0.99,0.9"},
      {"optimizers", "stable-adamw"},
      {"optimizer-beta2", "0.99"},
      {"change-step", "12"},
      {"old-batches", "2"},
      {"student-batch", "8"},
      {"steps", "30"},
      {"window", "8"},
      {"spike-deviations", "0.5"},
      {"spike-rms", "1.1"},
      {"shapes", "256"},
      {"image", "16"},
      {"images", "256"},
      {"text-size", "16384"},
      {"context", "16"},
      {"patch", "4"},
      {"valid-batches", "2"}}},
    {"moment-formats",
     {{"m", "fp32,e4m3fn"},
      {"v", "fp32,e5m2"},
      {"scalings", "tensor"},
      {"pairs", "e4m3fn@none/e4m3fn@block:32,dynamic/e5m2@coat+sr"},
      {"text-size", "16384"},
      {"layers", "1"},
      {"width", "16"},
      {"heads", "1"},
      {"context", "16"},
      {"batch", "2"},
      {"steps", "20"},
      {"warmup", "2"},
      {"lr", "1e-2"},
      {"epsilon", "1e-8"},
      {"update-from", "fresh"},
      {"records", "3"},
      {"valid-batches", "2"}}},
    {"quantization-variance",
     {{"pairs", "8"},
      {"k-low", "64"},
      {"k-high", "256"},
      {"distributions", "normal,laplace"},
      {"formats", "int8,e4m3fn"}}},
    {"swiglu-alignment",
     {{"size", "2x32"},
      {"lr", "1e-2"},
      {"steps", "80"},
      {"weight-decays", "0"},
      {"points", "4"},
      {"starts", "2"},
      {"neuron-steps", "30"},
      {"text-size", "16384"},
      {"context", "16"},
      {"batch", "4"},
      {"warmup", "8"},
      {"valid-batches", "2"}}},
    {"switchback-accuracy",
     {{"models", "clip,llama"},
      {"variants", "switchback:int8+all,llm-int8:int8+all"},
      {"sizes-clip", "1x32"},
      {"sizes-llama", "1x32"},
      {"batches-clip", "4"},
      {"batches-llama", "2"},
      {"patch", "8"},
      {"image", "16"},
      {"context", "16"},
      {"shapes-size", "256"},
      {"text-size", "16384"},
      {"steps", "10"},
      {"warmup", "2"},
      {"records", "2"},
      {"valid-batches", "2"},
      {"storage", "fp32"},
      {"shadow-steps", "2"}}},
    {"update-convergence",
     {{"size", "64"},
      {"steps", "8"},
      {"records", "4"},
      {"images", "40"},
      {"image-size", "4"},
      {"batch", "8"},
      {"formats", "e4m3fn,bf16"},
      {"lr", "1e-3"}}},
    {"update-fidelity",
     {{"size", "32"},
      {"per-decade", "1"},
      {"lr-low", "1e-3"},
      {"lr-high", "1e-2"},
      {"formats", "e4m3fn,bf16"}}},
};

TEST(Snapshot, SmallRunsWriteTheGoldenTablesSummariesAndFigures) {
  std::string text;
  for (const Experiment& experiment : AllExperiments()) {
    if (experiment.timed) continue;
    SCOPED_TRACE(experiment.name);
    ASSERT_TRUE(kRuns.contains(experiment.name));
    const Settings settings = MakeSettings(experiment, "quick", 3, 2, kRuns.at(experiment.name));
    const TemporaryDirectory directory;
    RunWithoutFigures(experiment, settings, directory.Path());
    Tables tables;
    for (const TableSpec& spec : experiment.tables) {
      tables[spec.name] = ReadCsv(directory.Path() / (spec.name + ".csv"));
    }
    text += TablesText(experiment.name, experiment, tables);
    for (const std::string_view file : {kVerdictsFile, kSummaryFile}) {
      text += fmt::format(
          "{} {} {}\n", experiment.name, file, Digest(ReadText(directory.Path() / file)));
    }
    text += FiguresText(experiment.name, experiment, settings, tables);
  }
  ExpectGoldenLines("experiments/golden/runs.txt", text);
}

// The published runs are large enough for every derived table and figure. Figures of a run whose measured
// tables are not all published cannot be drawn.
TEST(Snapshot, PublishedRunsGiveTheGoldenTablesAndFigures) {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  const fs::path results = fs::path(root) / "docs/results";
  std::string text;
  Frame(ReadCsv(results / "runs.csv")).ForEach([&](const Frame& run) {
    const std::string name = run.Text("directory");
    const fs::path directory = results / name;
    SCOPED_TRACE(name);
    const std::string found = ReadSettings(directory / kSettingsFile).experiment;
    const Experiment& experiment = *FindExperiment(found);
    const Settings settings = ReadSettingsOf(experiment, directory / kSettingsFile).settings;
    Tables tables;
    bool whole = true;
    for (const TableSpec& spec : experiment.tables) {
      const fs::path path = directory / (spec.name + ".csv");
      if (!spec.derived && fs::exists(path)) tables[spec.name] = ReadCsv(path);
      Table& table = tables[spec.name];
      if (!table.columns.empty()) continue;
      whole = whole && (spec.derived || spec.timed);
      for (const Column& column : spec.columns) table.columns.push_back(column.name);
    }
    if (experiment.derive) experiment.derive(settings, tables);
    text += TablesText(name, experiment, tables);
    if (whole) text += FiguresText(name, experiment, settings, tables);
  });
  ExpectGoldenLines("experiments/golden/published.txt", text);
}

}  // namespace
}  // namespace numsim::experiments
