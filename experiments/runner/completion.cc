#include "experiments/runner/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "experiments/runner/claim_report.h"
#include "numsim/backend/backend.h"
#include "numsim/base/build_info.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/csv.h"
#include "numsim/plot/figure.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFiguresNeedGnuplot =
    "The figures need gnuplot (package gnuplot-nox), which was not found; only their scripts were "
    "written. After installing it, run numsim plot {} to draw them.";

constexpr const char* kChangedClaims =
    "the claims of the file, after trials had been measured: contrasts and margins were not all fixed "
    "before the results.";

// Returns all tables: the measured rows in the order of the trials, then the derived tables.
Tables MakeTables(const Experiment& experiment, const Settings& settings, FinishedTrials finished) {
  Tables tables;
  for (const TableSpec& table : experiment.tables) {
    tables[table.name].columns = ColumnNames(table);
  }
  for (auto& [index, entry] : finished) {
    for (auto& [name, rows] : entry.rows) {
      Table& table = tables.at(name);
      std::move(rows.begin(), rows.end(), std::back_inserter(table.rows));
    }
  }
  finished.clear();
  if (experiment.derive) experiment.derive(settings, tables);
  AddNotGiven(experiment, settings, tables);
  NUMSIM_CHECK(tables.size() == experiment.tables.size(), "{}: undeclared table", experiment.name);
  for (const TableSpec& spec : experiment.tables) {
    const Table& table = tables.at(spec.name);
    NUMSIM_CHECK(
        table.columns == ColumnNames(spec), "{}: columns of {}", experiment.name, spec.name);
    for (const Row& row : table.rows) {
      NUMSIM_CHECK(row.size() == table.columns.size(), "{}: row of {}", experiment.name, spec.name);
    }
  }
  return tables;
}

// Returns the sorted digests of the claims that the file had when trials were measured.
std::string MeasuredClaims(const FinishedTrials& finished) {
  std::set<std::string> claims;
  for (const auto& [index, entry] : finished) {
    if (!entry.claims.empty()) claims.insert(entry.claims);
  }
  return fmt::format("{}", fmt::join(claims, ", "));
}

// Returns the sorted commits of the builds that measured the trials and of this build.
std::string Commits(const FinishedTrials& finished) {
  std::set<std::string> commits = {std::string(BuildCommit())};
  for (const auto& [index, entry] : finished) commits.insert(entry.commit);
  return fmt::format("{}", fmt::join(commits, ", "));
}

NamedTexts OptionTexts(const Settings& settings) {
  NamedTexts texts = {
      {"preset", settings.preset},
      {"seed", fmt::format("{}", settings.seed)},
      {"seeds", fmt::format("{}", settings.seeds)},
  };
  texts.insert(texts.end(), settings.options.begin(), settings.options.end());
  return texts;
}

NamedTexts Versions() {
  const std::string gnuplot = GnuplotVersion();
  return {
      {"numsim", std::string(BuildVersion())},
      {"fmt",
       fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"nlohmann_json",
       fmt::format("{}.{}.{}",
                   NLOHMANN_JSON_VERSION_MAJOR,
                   NLOHMANN_JSON_VERSION_MINOR,
                   NLOHMANN_JSON_VERSION_PATCH)},
      {"gnuplot", gnuplot.empty() ? "not found" : gnuplot},
  };
}

Manifest DescribeRun(const Experiment& experiment,
                     const Settings& settings,
                     std::string commits,
                     const std::string& measured,
                     const Command& command) {
  Manifest manifest;
  manifest.command = command.arguments;
  manifest.experiment = experiment.name;
  manifest.options = OptionTexts(settings);
  manifest.claims = ClaimTexts(experiment);
  for (int k = 0; k < settings.seeds; ++k) {
    manifest.seeds.push_back(settings.seed + static_cast<uint64_t>(k));
  }
  for (const RowsFile& file : settings.rows.files) {
    manifest.policies.emplace_back(
        "rows " + file.table,
        fmt::format("trained elsewhere: {}, SHA-256 {}", file.name, file.sha256));
  }
  if (!settings.rows.note.empty()) manifest.policies.emplace_back("rows", settings.rows.note);
  if (!experiment.file.sha256.empty()) {
    manifest.policies.emplace_back(kFilePolicy, experiment.file.sha256);
  }
  if (!measured.empty()) manifest.policies.emplace_back(kClaimsPolicy, measured);
  manifest.git_commit = std::move(commits);
  manifest.compiler = BuildCompiler();
  manifest.build_type = BuildType();
  manifest.backend = BackendName();
  manifest.simd_target = UsesScalarReference() ? "none" : manifest.backend;
  manifest.versions = Versions();
  manifest.host = DescribeHost();
  manifest.threads = ThreadCount();
  manifest.allowed = command.allowed;
  manifest.started = command.started;
  manifest.ended = UtcNow();
  return manifest;
}

bool IsChosen(const Figure& figure, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), figure.name) != names.end();
}

// Throws Error naming the first name that no figure has.
void CheckNames(const std::vector<Figure>& figures, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  known.reserve(figures.size());
  for (const Figure& figure : figures) known.push_back(figure.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw Error::Format("--figure {}: these results have no such figure; expected one of {}",
                        name,
                        fmt::join(known, ", "));
  }
}

}  // namespace

std::vector<std::string> ColumnNames(const TableSpec& table) {
  std::vector<std::string> names;
  for (const Column& column : table.columns) names.push_back(column.name);
  return names;
}

NamedTexts ClaimTexts(const Experiment& experiment) {
  NamedTexts texts;
  for (const ClaimSpec& claim : experiment.claims) {
    const bool exact = claim.kind == ClaimKind::kExact;
    texts.emplace_back(claim.id,
                       fmt::format("{}: {}{}",
                                   ToString(claim.kind),
                                   claim.contrast,
                                   exact ? "" : fmt::format("; margin {}", claim.margin.Text())));
  }
  return texts;
}

std::vector<Trial> ListTrials(const Experiment& experiment, const Settings& settings) {
  std::vector<Trial> trials = experiment.trials(settings);
  if (trials.empty()) {
    throw Error::Format("{}: these options leave no trials to run", experiment.name);
  }
  return trials;
}

RunScale ScaleOf(const Experiment& experiment, const Settings& settings, const Tables& tables) {
  RunScale scale;
  if (experiment.scale) scale.words = experiment.scale(settings, tables);
  if (experiment.trained) scale.trained = experiment.trained(settings);
  if (settings.rows.files.empty()) return scale;
  scale.words += fmt::format("{}trained elsewhere: {}; rows of {}",
                             scale.words.empty() ? "" : "; ",
                             settings.rows.scale,
                             settings.rows.Text());
  return scale;
}

void AddNotGiven(const Experiment& experiment, const Settings& settings, Tables& tables) {
  const std::vector<RowsFile>& files = settings.rows.files;
  if (files.empty()) return;
  for (const TableSpec& table : experiment.tables) {
    tables[table.name].columns = ColumnNames(table);
    const bool is_given = std::any_of(
        files.begin(), files.end(), [&](const RowsFile& file) { return file.table == table.name; });
    if (!table.derived && !is_given) tables.not_given.insert(table.name);
  }
  if (tables.not_given.empty()) return;
  // A derived table without rows is computed from tables that are not given.
  for (const TableSpec& table : experiment.tables) {
    if (table.derived && tables[table.name].rows.empty()) tables.not_given.insert(table.name);
  }
}

std::vector<JudgedClaim> JudgeTrials(const Experiment& experiment,
                                     const Settings& settings,
                                     const FinishedTrials& finished) {
  return Judge(experiment.claims, settings, MakeTables(experiment, settings, finished));
}

void CheckJudgeable(const Experiment& experiment,
                    const Settings& settings,
                    const FinishedTrials& finished) {
  try {
    const Tables tables = MakeTables(experiment, settings, finished);
    Judge(experiment.claims, settings, tables);
    ScaleOf(experiment, settings, tables);
    if (experiment.figures) experiment.figures(settings, tables);
    if (experiment.notes) experiment.notes(settings, tables);
  } catch (const Error& error) {
    throw Error::Format("--rows: what {} has does not suffice for {}: {}; {}",
                        settings.rows.files.front().name,
                        experiment.name,
                        error.what(),
                        settings.rows.note);
  }
}

void WriteFigures(const Experiment& experiment,
                  const Settings& settings,
                  const Tables& tables,
                  const Drawing& drawing,
                  const fs::path& directory,
                  RunReport& report) {
  std::vector<Figure> figures;
  if (experiment.figures) figures = experiment.figures(settings, tables);
  if (!settings.rows.files.empty()) {
    // A figure of a table that is not given has no panels.
    std::erase_if(figures, [](const Figure& figure) { return figure.panels.empty(); });
    for (Figure& figure : figures) figure.title += ", trained elsewhere";
  }
  CheckNames(figures, drawing.figures);
  for (const Figure& figure : figures) {
    if (!IsChosen(figure, drawing.figures)) {
      for (const char* const extension : {".gp", ".svg", ".pdf"}) {
        const std::string file = figure.name + extension;
        if (Exists(directory / file)) report.outputs.push_back(file);
      }
      continue;
    }
    for (std::string& file : DrawFigure(figure, directory, drawing.style)) {
      report.outputs.push_back(std::move(file));
    }
  }
  if (!figures.empty() && GnuplotVersion().empty()) {
    report.notice = fmt::format(kFiguresNeedGnuplot, directory.string());
  }
}

void WriteSummary(const Experiment& experiment,
                  const Settings& settings,
                  const Tables& tables,
                  const std::string& measured,
                  const fs::path& directory,
                  RunReport& report) {
  const std::vector<JudgedClaim> judged = Judge(experiment.claims, settings, tables);
  const RunScale scale = ScaleOf(experiment, settings, tables);
  if (!judged.empty()) {
    WriteCsv(directory / kVerdictsFile, VerdictTable(judged, settings, scale));
    report.outputs.emplace_back(kVerdictsFile);
  }
  const std::string notes = experiment.notes ? experiment.notes(settings, tables) : "";
  const bool changed = !measured.empty() && measured != experiment.file.claims;
  report.summary =
      SummaryText(experiment, settings, judged, scale, notes, changed ? kChangedClaims : "");
  report.judged = judged;
  report.scale = scale;
  WriteFileAtomically(directory / kSummaryFile, report.summary);
  report.outputs.emplace_back(kSummaryFile);
}

void Complete(const Experiment& experiment,
              const Settings& settings,
              FinishedTrials finished,
              const fs::path& directory,
              const Command& command,
              RunReport& report) {
  std::string commits = Commits(finished);
  const std::string measured = MeasuredClaims(finished);
  std::vector<OutputFile> former;
  if (Exists(directory / kManifestFile)) former = ListedOutputs(directory);
  const Tables tables = MakeTables(experiment, settings, std::move(finished));
  // Without a manifest the directory does not look complete while its files are replaced.
  Remove(directory / kManifestFile);
  for (const TableSpec& table : experiment.tables) {
    if (tables.not_given.contains(table.name)) continue;
    report.outputs.push_back(table.name + ".csv");
    WriteCsv(directory / report.outputs.back(), tables.at(table.name));
  }
  WriteFigures(experiment, settings, tables, {}, directory, report);
  WriteSummary(experiment, settings, tables, measured, directory, report);
  if (!experiment.file.sha256.empty()) RemoveFormerOutputs(former, report.outputs, directory);

  Manifest manifest = DescribeRun(experiment, settings, std::move(commits), measured, command);
  for (const std::string& output : report.outputs) {
    manifest.outputs.push_back(DescribeOutput(directory, output));
  }
  manifest.outputs.push_back(DescribeOutput(directory, kSettingsFile));
  WriteManifest(directory / kManifestFile, manifest);
  report.outputs.emplace_back(kManifestFile);
}

}  // namespace numsim::experiments
