// Manifest, figures and the summary of complete results; drawing them again.
#include "experiments/runner/completion.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/runner/runner.h"
#include "numsim/io/process_name.h"
#include "numsim/io/shared/sha256.h"
#include "numsim/plot/figure.h"
#include "tests/experiments/run_fixture.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"

namespace numsim::experiments {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class CompletionTest : public RunFixture {
 protected:
  static Experiment WithFigure() {
    Experiment experiment = MadeUpExperiment();
    experiment.figures = MadeUpFigures;
    return experiment;
  }

  static nlohmann::json ManifestOf(const fs::path& directory) {
    return nlohmann::json::parse(Bytes(directory / "manifest.json"));
  }

  // The manifest lists what the report says was written, with the SHA-256 of the files.
  static void ExpectManifestFits(const fs::path& directory, const RunReport& report) {
    std::vector<std::string> listed;
    const nlohmann::json manifest = ManifestOf(directory);
    for (const auto& output : manifest.at("outputs")) {
      listed.push_back(output.at("path"));
      EXPECT_EQ(output.at("sha256"), Sha256Hex(directory / listed.back())) << listed.back();
      EXPECT_EQ(output.at("bytes"), fs::file_size(directory / listed.back())) << listed.back();
    }
    EXPECT_EQ(listed.back(), "settings.json");  // was written at the start
    listed.back() = "manifest.json";
    EXPECT_EQ(listed, report.outputs);
  }
};

TEST_F(CompletionTest, ManifestSaysHowTheResultsCameAbout) {
  const fs::path out = Directory("out");
  const RunReport report = Run(MadeUpExperiment(), Options(out));
  ExpectManifestFits(out, report);
  const nlohmann::json manifest = ManifestOf(out);
  EXPECT_EQ(manifest.at("command"), (std::vector<std::string>{"numsim", "run", "made_up"}));
  EXPECT_EQ(manifest.at("experiment"), "made_up");
  EXPECT_EQ(manifest.at("options").at("preset"), "quick");
  EXPECT_EQ(manifest.at("options").at("shapes"), "ab,cde,f");
  EXPECT_EQ(manifest.at("seeds"), (std::vector<uint64_t>{5, 6, 7}));
  EXPECT_EQ(manifest.at("threads"), ThreadCount());
  EXPECT_LE(manifest.at("started").get<std::string>(), manifest.at("ended").get<std::string>());
}

// fmt has its version as one number, 10000 MAJOR + 100 MINOR + PATCH.
TEST_F(CompletionTest, ManifestHasTheVersionsOfTheLibraries) {
  Run(MadeUpExperiment(), Options(Directory("out")));
  const nlohmann::json versions = ManifestOf(Directory("out")).at("versions");
  const std::string text = versions.at("fmt");
  int major = 0, minor = 0, patch = 0;
  ASSERT_EQ(std::sscanf(text.c_str(), "%d.%d.%d", &major, &minor, &patch), 3) << text;
  EXPECT_EQ(10000 * major + 100 * minor + patch, FMT_VERSION) << text;
  EXPECT_LT(minor, 100);
  EXPECT_LT(patch, 100);
  EXPECT_EQ(versions.at("nlohmann_json"), nlohmann::json::meta().at("version").at("string"));
}

TEST_F(CompletionTest, ManifestHasTheDeclaredClaims) {
  Experiment experiment = MadeUpExperiment();
  ClaimSpec claim;
  claim.id = "made_up/sum";
  claim.contrast = "sum minus 0";
  claim.margin = {.value = 0.5, .unit = "units", .justification = "-"};
  claim.evidence = [](const Settings&, const Tables&) { return NotTestedBecause("made up"); };
  experiment.claims = {claim};
  Run(experiment, Options(Directory("out")));
  EXPECT_EQ(ManifestOf(Directory("out")).at("claims").at("made_up/sum"),
            "difference: sum minus 0; margin 0.5 units");
}

TEST_F(CompletionTest, ManifestOfTheScalarBackendNamesNoSimdTarget) {
  const ExecutionState state;
  for (const std::string& backend : {AvailableBackends().front(), std::string("scalar")}) {
    ForceBackend(backend);
    Run(MadeUpExperiment(), Options(Directory(backend)));
    const nlohmann::json manifest = ManifestOf(Directory(backend));
    EXPECT_EQ(manifest.at("backend"), backend);
    EXPECT_EQ(manifest.at("simd_target"), backend == "scalar" ? "none" : backend);
  }
}

TEST_F(CompletionTest, ManifestListsEveryBuildThatMeasuredATrial) {
  const fs::path out = Directory("out");
  Run(MadeUpExperiment(), Options(out));
  bool first = true;
  RewriteJournal(out / "journal" / "0-of-1.jsonl", [&](FinishedTrial& entry) {
    if (first) entry.commit = "0123abc";
    first = false;
  });
  const std::string before = ManifestOf(out).at("git_commit");
  Run(MadeUpExperiment(), Resume(out));
  EXPECT_EQ(ManifestOf(out).at("git_commit"), "0123abc, " + before);
}

TEST_F(CompletionTest, DrawsTheFigureWhereGnuplotIsAndSaysSoWhereItIsNot) {
  const fs::path out = Directory("out");
  const RunReport report = Run(WithFigure(), Options(out));
  ExpectManifestFits(out, report);
  EXPECT_TRUE(fs::exists(out / "sums.gp"));
  const bool have_gnuplot = !GnuplotVersion().empty();
  EXPECT_EQ(fs::exists(out / "sums.svg"), have_gnuplot);
  EXPECT_EQ(fs::exists(out / "sums.pdf"), have_gnuplot);
  EXPECT_EQ(report.notice.empty(), have_gnuplot);
  EXPECT_EQ(ResultsIn(out), Expected()) << "figures change nothing else";
}

TEST_F(CompletionTest, StartingOverRemovesTheFigures) {
  const fs::path out = Directory("out");
  Run(WithFigure(), Options(out));
  Run(MadeUpExperiment(), Options(out));
  EXPECT_FALSE(fs::exists(out / "sums.gp"));
  EXPECT_FALSE(fs::exists(out / "sums.svg"));
}

TEST_F(CompletionTest, AManifestCannotMakeUsRemoveOtherFiles) {
  const fs::path out = Directory("out");
  Run(MadeUpExperiment(), Options(out));
  std::ofstream(Directory("mine.txt")) << "mine";
  nlohmann::json manifest = ManifestOf(out);
  manifest["outputs"][0]["path"] = "../mine.txt";
  manifest["outputs"][1]["path"] = Directory("mine.txt").string();
  std::ofstream(out / "manifest.json") << manifest.dump();
  Run(MadeUpExperiment(), Options(out));
  EXPECT_EQ(Bytes(Directory("mine.txt")), "mine");
}

TEST_F(CompletionTest, RedrawNeedsNeitherTrialsNorJournals) {
  const fs::path out = Directory("out");
  Run(WithFigure(), Options(out));
  const nlohmann::json before = ManifestOf(out);
  const Results results = ResultsIn(out);
  const std::string script = Bytes(out / "sums.gp");
  fs::remove_all(out / "journal");
  fs::remove(out / "sums.gp");
  fs::remove(out / "summary.txt");
  Experiment experiment = WithFigure();
  experiment.run = nullptr;
  experiment.trials = nullptr;
  const RunReport report = Redraw(experiment, out);
  EXPECT_EQ(ResultsIn(out), results);
  EXPECT_EQ(Bytes(out / "sums.gp"), script);
  EXPECT_EQ(report.summary, results.at("summary.txt"));
  EXPECT_EQ(report.trials_run, 0u);
  ExpectManifestFits(out, report);
  nlohmann::json after = ManifestOf(out);
  after["outputs"] = before["outputs"];
  EXPECT_EQ(after, before) << "the rest still describes the run";
}

TEST_F(CompletionTest, FiguresOfAnotherSizeGoToAFolderOfTheirOwn) {
  const fs::path out = Directory("out"), paper = Directory("for/the/paper");
  Run(WithFigure(), Options(out));
  const Results results = ResultsIn(out);
  const std::string script = Bytes(out / "sums.gp");
  Drawing drawing{.style = {.width = 3.3, .font = 7}, .out = paper};
  const RunReport report = Redraw(WithFigure(), out, drawing);
  EXPECT_EQ(ResultsIn(out), results);
  EXPECT_EQ(Bytes(out / "sums.gp"), script);
  EXPECT_THAT(Bytes(paper / "sums.gp"), HasSubstr("size 3.300in"));
  EXPECT_EQ(report.outputs.front(), "sums.gp");
  EXPECT_EQ(report.summary, "");

  drawing.figures = {"sum"};
  EXPECT_EQ(ErrorOf([&] { Redraw(WithFigure(), out, drawing); }),
            "--figure sum: these results have no such figure; expected one of sums");
  drawing.figures.clear();
  drawing.style.panels = {2};
  EXPECT_THAT(ErrorOf([&] { Redraw(WithFigure(), out, drawing); }), HasSubstr("has no panel 2"));

  // Without a folder the figures of the results are replaced, and the manifest follows.
  const RunReport replaced = Redraw(WithFigure(), out, {.style = {.width = 3.3, .font = 7}});
  EXPECT_EQ(Bytes(out / "sums.gp"), Bytes(paper / "sums.gp"));
  ExpectManifestFits(out, replaced);
}

TEST_F(CompletionTest, RedrawOfAnUnfinishedRunIsAnError) {
  const fs::path out = Directory("out");
  EXPECT_EQ(ErrorOf([&] { Redraw(WithFigure(), out); }),
            out.string() + ": expected the finished results of numsim run, found no settings.json");
  Run(MadeUpExperiment(), Shard(out, 0, 2));
  EXPECT_EQ(ErrorOf([&] { Redraw(WithFigure(), out); }),
            out.string() + ": expected the finished results of numsim run, found no manifest.json");
}

// As experiments/published has them: settings and tables alone.
TEST_F(CompletionTest, PublishedResultsAreDrawnIntoAnotherFolder) {
  const fs::path out = Directory("out");
  const fs::path published = Directory("published"), paper = Directory("paper");
  Run(WithFigure(), Options(out));
  fs::create_directory(published);
  fs::copy(out / "settings.json", published);
  const Drawing drawing{.out = paper};
  EXPECT_EQ(
      ErrorOf([&] { Redraw(WithFigure(), published, drawing); }),
      published.string() + ": expected the finished results of numsim run, found no manifest.json");
  fs::copy(out / "sums.csv", published);
  const RunReport report = Redraw(WithFigure(), published, drawing);
  EXPECT_EQ(Bytes(paper / "sums.gp"), Bytes(out / "sums.gp"));
  EXPECT_FALSE(report.outputs.empty());
  EXPECT_THAT(ErrorOf([&] { Redraw(WithFigure(), published); }), HasSubstr("no manifest.json"));
  std::ofstream(published / "sums.csv") << "other\n1\n";
  EXPECT_THAT(ErrorOf([&] { Redraw(WithFigure(), published, drawing); }),
              HasSubstr("has the columns of another version of numsim"));
}

TEST_F(CompletionTest, RedrawOfChangedTablesIsAnErrorNamingTheFile) {
  const fs::path out = Directory("out");
  Run(MadeUpExperiment(), Options(out));
  std::ofstream(out / "sums.csv", std::ios::app) << "ab,1e9\n";
  EXPECT_THAT(ErrorOf([&] { Redraw(WithFigure(), out); }), HasSubstr((out / "sums.csv").string()));
}

TEST_F(CompletionTest, RedrawOfOtherOptionsIsAnErrorNamingFileAndOption) {
  const fs::path out = Directory("out");
  Run(MadeUpExperiment(), Options(out));
  Experiment more = WithFigure(), less = WithFigure();
  more.options.push_back({"colour", "red", "red", "an option that the results do not have"});
  const std::string settings = (out / "settings.json").string();
  EXPECT_THAT(
      ErrorOf([&] { Redraw(more, out); }),
      AllOf(HasSubstr(settings), HasSubstr("no value of option --colour"), HasSubstr("version")));
  const std::string gone = less.options.back().name;
  less.options.pop_back();
  EXPECT_THAT(ErrorOf([&] { Redraw(less, out); }),
              AllOf(HasSubstr(settings), HasSubstr("has option --" + gone)));
}

TEST_F(CompletionTest, RedrawOfChangedSettingsIsAnError) {
  const fs::path out = Directory("out"), path = out / "settings.json";
  Run(MadeUpExperiment(), Options(out));
  const std::string text = Bytes(path);
  const auto put = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    std::ofstream(path) << changed;
  };
  const auto error = [&] { return ErrorOf([&] { Redraw(MadeUpExperiment(), out); }); };
  put("\"rows\": \"2\"", "\"rows\": \"3\"");
  EXPECT_EQ(
      error(),
      path.string() +
          ": has been changed since it was written: its SHA-256 is another; restore it from a copy");
  EXPECT_NE(ErrorOf([&] { Merge(MadeUpExperiment(), {out}, Directory("merged"), {}); }),
            "no error");
  EXPECT_NE(ErrorOf([&] { Run(MadeUpExperiment(), Resume(out)); }), "no error");
  // Without its digest, the manifest knows another one.
  put(text.substr(text.find(",\n  \"sha256\"")), "\n}\n");
  EXPECT_THAT(error(), HasSubstr(path.string() + ": changed since the run that wrote it"));
}

// An older version put no digest of the settings anywhere; its manifest has the same options.
TEST_F(CompletionTest, RedrawComparesSettingsOfOlderVersionsWithTheManifest) {
  const fs::path out = Directory("out"), path = out / "settings.json";
  Run(MadeUpExperiment(), Options(out));
  nlohmann::json manifest = ManifestOf(out), settings = nlohmann::json::parse(Bytes(path));
  settings.erase("sha256");
  auto& outputs = manifest["outputs"];
  ASSERT_EQ(outputs.back()["path"], "settings.json");
  outputs.erase(outputs.size() - 1);
  const auto error = [&](const nlohmann::json& of_settings) {
    std::ofstream(path) << of_settings.dump();
    std::ofstream(out / "manifest.json") << manifest.dump();
    return ErrorOf([&] { Redraw(MadeUpExperiment(), out); });
  };
  EXPECT_EQ(error(settings), "no error");
  EXPECT_EQ(ManifestOf(out)["outputs"].back()["path"], "settings.json") << "known from now on";
  for (const auto& [name, value] : {std::pair<const char*, nlohmann::json>{"seed", 6},
                                    {"preset", "paper"},
                                    {"options", {{"rows", "junk"}, {"shapes", "ab,cde,f"}}},
                                    {"options", {{"rows", "2"}, {"shapes", "ab,cde,g"}}}}) {
    nlohmann::json changed = settings;
    changed[name] = value;
    EXPECT_THAT(
        error(changed),
        AllOf(HasSubstr("one of these files has been changed: --"), HasSubstr("manifest.json")))
        << value;
  }
  manifest.erase("options");
  EXPECT_THAT(error(settings), HasSubstr("found no experiment and options"));
}

TEST_F(CompletionTest, WhatKilledProcessesLeftIsSwept) {
  const fs::path out = Directory("out");
  Run(MadeUpExperiment(), Options(out));
  ProcessName ended = ThisProcess();
  ended.process = 4194399;  // above the largest number of a process
  const std::string left = ".numsim-" + FileNamePartOf(ended);
  fs::create_directory(out / (left + "-figure-abc"));
  const std::string names[] = {
      left + "-figure-abc/figure.gp", left + "-0.tmp", "journal/" + left + "-0.owner"};
  for (const std::string& name : names) std::ofstream(out / name) << "x";
  std::ofstream(out / "mine.tmp") << "x";
  RunOptions options = Options(out);
  options.resume = true;
  Run(MadeUpExperiment(), options);
  for (const std::string& name : names) EXPECT_FALSE(fs::exists(out / name)) << name;
  EXPECT_TRUE(fs::exists(out / "mine.tmp"));
}

TEST_F(CompletionTest, RedrawOfAnotherExperimentIsAnError) {
  const fs::path out = Directory("out");
  Run(MadeUpExperiment(), Options(out));
  Experiment other = WithFigure();
  other.name = "other";
  EXPECT_EQ(ErrorOf([&] { Redraw(other, out); }),
            out.string() + ": holds results of made_up, expected other");
  EXPECT_EQ(ErrorOf([&] { Redraw(out); }),
            out.string() + ": holds results of \"made_up\", which this numsim does not have");
}

}  // namespace
}  // namespace numsim::experiments
