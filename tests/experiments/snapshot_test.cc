// The declarations of experiments and the files of small runs, compared with golden files: defaults,
// margins, lists of trials, and every byte of tables, verdicts, summaries and figures. Other tests say
// what is right; these say what moved.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "experiments/runner/result_directory.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "numsim/io/csv.h"
#include "numsim/io/input_file.h"
#include "numsim/io/manifest.h"
#include "numsim/plot/internal/gnuplot_script.h"
#include "tests/experiments/golden_run.h"
#include "tests/experiments/tiny_runs.h"
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
    EXPECT_GE(figure.columns, 1) << figure.name;
    EXPECT_LE(figure.columns, 2) << figure.name << ": a page is two panels wide";
    if (IsTimed(experiment, figure.source_csv)) continue;
    text += fmt::format("{} {}.gp {}\n", name, figure.name, Digest(GnuplotScript(figure)));
  }
  return text;
}

// The tiny run, with another format than other tests have where one has been recorded.
Overrides RunOf(const std::string& experiment) {
  Overrides overrides = TinyRun(experiment);
  if (experiment == "fp8-interventions") overrides["formats"] = "e3m2";
  return overrides;
}

TEST(Snapshot, SmallRunsWriteTheGoldenTablesSummariesAndFigures) {
  std::string text;
  for (const Experiment& experiment : AllExperiments()) {
    if (experiment.timed) continue;
    SCOPED_TRACE(experiment.name);
    const Settings settings = MakeSettings(experiment, "quick", 3, 2, RunOf(experiment.name));
    const TemporaryDirectory directory;
    RunWithoutFigures(experiment, settings, directory.Path());
    Tables tables;
    for (const TableSpec& spec : experiment.tables) {
      tables[spec.name] = ReadCsv(directory.Path() / (spec.name + ".csv"));
    }
    text += TablesText(experiment.name, experiment, tables);
    for (const std::string_view file : {kVerdictsFile, kSummaryFile}) {
      if (file == kVerdictsFile && experiment.claims.empty()) continue;
      text += fmt::format(
          "{} {} {}\n", experiment.name, file, Digest(ReadText(directory.Path() / file)));
    }
    text += FiguresText(experiment.name, experiment, settings, tables);
  }
  ExpectGoldenLines("experiments/golden/runs.txt", text);
}

// The published runs are large enough for every derived table and figure. Figures of a run whose
// measured tables are not all published cannot be drawn.
TEST(Snapshot, PublishedRunsGiveTheGoldenTablesAndFigures) {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  const fs::path results = fs::path(root) / "experiments/published";
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
      if (!spec.derived && HasCsv(path)) tables[spec.name] = ReadCsv(path);
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
