// The published runs in experiments/published: their verdicts follow from their measured tables, and
// pages quote them.
#include "experiments/runner/published.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>

#include "experiments/runner/claim_report.h"
#include "experiments/runner/completion.h"
#include "experiments/runner/result_directory.h"
#include "experiments/runner/runner.h"
#include "experiments/runner/settings.h"
#include "numsim/base/error.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/input_file.h"
#include "numsim/plot/figure.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

// A published run, read from its settings and measured tables alone.
class PublishedResults {
 public:
  explicit PublishedResults(const fs::path& directory) {
    const fs::path stored = directory / kSettingsFile;
    experiment_ = FindExperiment(ReadSettings(stored).experiment);
    settings_ = ReadSettingsOf(*experiment_, stored).settings;
    // A measured table that is not published stays missing, so that what reads it says so.
    tables_.directory = directory.string();
    for (const TableSpec& spec : experiment_->tables) {
      const fs::path path = directory / (spec.name + ".csv");
      if (spec.derived) {
        for (const Column& column : spec.columns) tables_[spec.name].columns.push_back(column.name);
      } else if (HasCsv(path)) {
        tables_[spec.name] = ReadCsv(path);
      } else if (!settings_.rows.files.empty()) {
        for (const Column& column : spec.columns) tables_[spec.name].columns.push_back(column.name);
      }
    }
    if (settings_.max_seeds != 0) settings_.seeds = SeedsOf(tables_);
    if (experiment_->derive) experiment_->derive(settings_, tables_);
    AddNotGiven(*experiment_, settings_, tables_);
    judged_ = Judge(experiment_->claims, settings_, tables_);
  }

  std::string Verdicts() const { return ToCsv(VerdictTable(judged_, settings_, Scale())); }
  std::string Summary() const {
    const std::string notes = experiment_->notes ? experiment_->notes(settings_, tables_) : "";
    return SummaryText(*experiment_, settings_, judged_, Scale(), notes);
  }
  // Draws the figures, if the tables that they need are published.
  void Draw(const fs::path& directory) const {
    fs::create_directories(directory);
    try {
      for (const Figure& figure : experiment_->figures(settings_, tables_)) {
        DrawFigure(figure, directory);
      }
    } catch (const Error& missing) {
      std::cerr << missing.what() << "\n";
    }
  }
  // Writes verdicts, summary and the derived tables that are published; experiments/published/add
  // --pack compresses those that are large again.
  void Update(const fs::path& directory) const {
    WriteFileAtomically(directory / kVerdictsFile, Verdicts());
    WriteFileAtomically(directory / kSummaryFile, Summary());
    for (const TableSpec& spec : experiment_->tables) {
      const fs::path path = directory / (spec.name + ".csv");
      if (!spec.derived || !HasCsv(path)) continue;
      fs::remove(path.string() + ".gz");
      WriteCsv(path, tables_.at(spec.name));
    }
  }

 private:
  RunScale Scale() const { return ScaleOf(*experiment_, settings_, tables_); }
  // Returns the number of seeds that --until-decided came to.
  static int SeedsOf(const Tables& tables) {
    std::set<std::string> seeds;
    for (const auto& [name, table] : tables) {
      if (std::ranges::count(table.columns, "seed") == 0) continue;
      Frame(table).ForEach([&](const Frame& row) { seeds.insert(row.Text("seed")); });
    }
    return static_cast<int>(seeds.size());
  }

  const Experiment* experiment_ = nullptr;
  Settings settings_;
  Tables tables_;
  std::vector<JudgedClaim> judged_;
};

// Returns the estimate of a row with its interval and margin; "" if it has none.
std::string EstimateOf(const Frame& row) {
  if (row.Text("estimate").empty()) return "";
  const std::string interval = row.Text("low") == "nan"
                                   ? "no interval"
                                   : fmt::format("[{:.3g}, {:.3g}] at {:g} %",
                                                 row.Number("low"),
                                                 row.Number("high"),
                                                 100 * row.Number("confidence"));
  return fmt::format(": {:.3g} {}, {}, margin {}",
                     row.Number("estimate"),
                     row.Text("unit"),
                     interval,
                     row.Text("margin"));
}

// Returns word and size of a verdict: "toy, 0.14 M / 1.6 M tokens".
std::string SizeOf(const Frame& row) {
  const auto number = [&](const char* column) {
    return row.Text(column).empty() ? 0 : row.Number(column);
  };
  return SizeText(row.Text("word"), number("parameters"), number("tokens"));
}

// Returns the table of a page that quotes the verdicts on the claims that the run tests.
std::string QuoteOf(const PublishedRun& run) {
  std::string text = "| claim | contrast | seeds | verdict |\n| --- | --- | ---: | --- |\n";
  Frame(run.verdicts).ForEach([&](const Frame& row) {
    if (row.Text("verdict") == "not tested") return;
    const bool control = row.Text("role") == "control";
    const std::string size = control ? "" : SizeOf(row);
    text += fmt::format("| {}{} | {}{}{} | {} | {}{}{} |\n",
                        row.Text("claim"),
                        row.Text("primary") == "yes" ? "" : " (exploratory)",
                        control ? "control: " : "",
                        row.Text("contrast"),
                        EstimateOf(row),
                        row.Text("seeds"),
                        control ? "" : row.Text("verdict"),
                        size.empty() ? "" : "; ",
                        size);
  });
  const Frame first(run.verdicts);
  return text +
         fmt::format(
             "\n{}; {}; preset {}.\n", run.directory, first.Text("scale"), first.Text("preset"));
}

// Pages have each quote between two comments.
TEST(Published, PagesQuoteTheVerdicts) {
  const char* const source = std::getenv("NUMSIM_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "NUMSIM_SOURCE_DIR is not set";
  for (const PublishedRun& run : PublishedRuns()) {
    SCOPED_TRACE(run.directory);
    const fs::path page = fs::path(source) / run.page;
    std::string text = ReadText(page);
    const std::string begin = fmt::format("<!-- verdicts of {} -->\n", run.directory);
    const size_t from = text.find(begin), to = text.find("<!-- end of verdicts -->", from);
    ASSERT_TRUE(from != std::string::npos && to != std::string::npos) << run.page;
    const size_t start = from + begin.size();
    if (std::getenv("NUMSIM_UPDATE_RESULTS") != nullptr) {
      text.replace(start, to - start, QuoteOf(run));
      WriteFileAtomically(page, text);
      continue;
    }
    EXPECT_EQ(text.substr(start, to - start), QuoteOf(run));
  }
}

// NUMSIM_UPDATE_FIGURES=DIR draws the figures of the published tables into DIR/RUN.
TEST(Published, Figures) {
  const char* const source = std::getenv("NUMSIM_SOURCE_DIR");
  const char* const target = std::getenv("NUMSIM_UPDATE_FIGURES");
  if (source == nullptr || target == nullptr) GTEST_SKIP() << "NUMSIM_UPDATE_FIGURES is not set";
  const fs::path results = fs::path(source) / "experiments/published";
  Frame(ReadCsv(results / "runs.csv")).ForEach([&](const Frame& run) {
    PublishedResults(results / run.Text("directory"))
        .Draw(fs::path(target) / run.Text("directory"));
  });
}

// NUMSIM_UPDATE_RESULTS=1 writes the files instead of comparing them.
TEST(Published, VerdictsFollowFromTheMeasuredTables) {
  const char* const source = std::getenv("NUMSIM_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "NUMSIM_SOURCE_DIR is not set";
  const fs::path root = source;
  const Table runs = ReadCsv(root / "experiments/published/runs.csv");
  ASSERT_FALSE(runs.rows.empty());
  Frame(runs).ForEach([&](const Frame& run) {
    SCOPED_TRACE(run.Text("directory"));
    const fs::path directory = root / "experiments/published" / run.Text("directory");
    EXPECT_TRUE(fs::exists(root / run.Text("page")));
    const PublishedResults results(directory);
    if (std::getenv("NUMSIM_UPDATE_RESULTS") != nullptr) results.Update(directory);
    EXPECT_EQ(results.Verdicts(), ReadText(directory / kVerdictsFile));
    EXPECT_EQ(results.Summary(), ReadText(directory / kSummaryFile));
  });
}

// Sizes are computed from settings; some tables have the number of parameters that was counted in a model.
TEST(Published, SizesAreThoseOfTheModels) {
  const char* const source = std::getenv("NUMSIM_SOURCE_DIR");
  if (source == nullptr) GTEST_SKIP() << "NUMSIM_SOURCE_DIR is not set";
  size_t compared = 0;
  for (const PublishedRun& run : PublishedRuns()) {
    SCOPED_TRACE(run.directory);
    const fs::path directory = fs::path(source) / run.directory;
    const Experiment* const experiment =
        FindExperiment(ReadSettings(directory / kSettingsFile).experiment);
    for (const TableSpec& spec : experiment->tables) {
      const fs::path path = directory / (spec.name + ".csv");
      if (spec.derived || !HasCsv(path)) continue;
      const Table table = ReadCsv(path);
      if (std::ranges::count(table.columns, "parameters") == 0) continue;
      double most = 0;
      Frame(table).ForEach(
          [&](const Frame& row) { most = std::max(most, row.Number("parameters")); });
      double stated = 0;
      Frame(run.verdicts).ForEach([&](const Frame& row) {
        if (row.Text("word") != kMechanism) stated = std::max(stated, row.Number("parameters"));
      });
      // The data decide how many positions a caption has.
      EXPECT_NEAR(stated, most, 0.05 * most) << spec.name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 3u);
}

// An independent review showed that these are noise.
TEST(Published, NoiseIsNoVerdict) {
  const auto verdict = [](const std::string& directory, const std::string& claim) {
    for (const PublishedRun& run : PublishedRuns()) {
      if (run.directory != "experiments/published/" + directory) continue;
      const Frame rows = Frame(run.verdicts).Where("claim", claim);
      return rows.Empty() ? "no claim" : rows.Text("verdict");
    }
    return std::string("no run");
  };
  EXPECT_EQ(verdict("moment-formats/small", "moment-formats/m-e4m3-v-e5m2-matches"), "not tested");
}

}  // namespace
}  // namespace numsim::experiments
