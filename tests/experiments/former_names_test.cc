// Results that an older numsim wrote, in which some names of formats have another meaning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/runner/result_directory.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/manifest.h"
#include "tests/experiments/run_fixture.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// As an older numsim wrote a text: without the words that it did not know.
std::string Older(std::string text) {
  for (size_t at = text.find("ieee-"); at != text.npos; at = text.find("ieee-")) text.erase(at, 5);
  return text;
}

class FormerNames : public RunFixture {
 protected:
  FormerNames() {
    whole_ = Directory("whole");
    former_ = Directory("former");
    Run(*experiment_, Options("ieee-e2m1,bf16", whole_));
    fs::copy(whole_, former_, fs::copy_options::recursive);
    auto json = nlohmann::ordered_json::parse(Bytes(former_ / kSettingsFile));
    json.erase("names");
    json.erase("sha256");
    WriteFileAtomically(former_ / kSettingsFile, Older(json.dump(2)));
    for (const auto& file : fs::directory_iterator(former_ / kJournalFolder)) {
      if (file.path().extension() != ".jsonl") continue;
      RewriteJournal(file.path(), [](FinishedTrial& entry) {
        entry.label = Older(entry.label);
        for (auto& [name, rows] : entry.rows) {
          for (Row& row : rows) {
            for (Cell& cell : row) cell = Older(cell.Text());
          }
        }
      });
    }
    auto manifest = nlohmann::ordered_json::parse(Bytes(former_ / kManifestFile));
    for (auto& option : manifest["options"]) option = Older(option.get<std::string>());
    auto outputs = nlohmann::ordered_json::array();
    for (auto& output : manifest["outputs"]) {
      const std::string name = output["path"];
      if (name == kSettingsFile) continue;  // which an older numsim did not list
      if (name.ends_with(".csv")) {
        WriteFileAtomically(former_ / name, Older(Bytes(former_ / name)));
      }
      const OutputFile file = DescribeOutput(former_, name);
      outputs.push_back({{"path", name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
    }
    manifest["outputs"] = outputs;
    WriteFileAtomically(former_ / kManifestFile, manifest.dump(2));
  }

  RunOptions Options(const std::string& formats, const fs::path& out) const {
    RunOptions options;
    options.settings = MakeSettings(*experiment_,
                                    "quick",
                                    0,
                                    1,
                                    {{"formats", formats},
                                     {"pairs", "4"},
                                     {"k-high", "128"},
                                     {"distributions", "normal"},
                                     {"granularities", "row"},
                                     {"roundings", "rne"}});
    options.out = out;
    return options;
  }

  void ExpectTheSame(const fs::path& directory) const {
    for (const char* const name : {"variance.csv", "slopes.csv", "verdicts.csv", "summary.txt"}) {
      EXPECT_EQ(Bytes(directory / name), Bytes(whole_ / name)) << name;
    }
  }

  const Experiment* experiment_ = FindExperiment("quantization-variance");
  fs::path whole_, former_;
};

TEST_F(FormerNames, AreThoseOfTheRunThatIsResumed) {
  ASSERT_THAT(Bytes(former_ / "variance.csv"), HasSubstr(",e2m1,"));
  fs::remove(former_ / kManifestFile);
  RunOptions options = Options("ieee-e2m1,bf16", former_);
  options.resume = true;
  EXPECT_EQ(Run(*experiment_, options).trials_run, 0u);
  ExpectTheSame(former_);
  // Reading such results again changes nothing.
  EXPECT_EQ(Run(*experiment_, options).trials_run, 0u);
  ExpectTheSame(former_);
}

TEST_F(FormerNames, AreNotTodaysNames) {
  RunOptions options = Options("e2m1,bf16", former_);
  options.resume = true;
  EXPECT_THAT(ErrorOf([&] { Run(*experiment_, options); }),
              HasSubstr("--formats is \"ieee-e2m1,bf16\" in "));
}

TEST_F(FormerNames, SurviveAMerge) {
  Merge(*experiment_, {former_}, Directory("merged"), {});
  ExpectTheSame(Directory("merged"));
  EXPECT_FALSE(ReadSettings(Directory("merged") / kSettingsFile).former_names);
}

TEST_F(FormerNames, SurviveARedraw) {
  fs::remove(former_ / "summary.txt");
  Redraw(former_);
  EXPECT_EQ(Bytes(former_ / "summary.txt"), Bytes(whole_ / "summary.txt"));
}

TEST_F(FormerNames, InTheScriptsOfASweepAreRefused) {
  const fs::path sweep = Directory("s");
  fs::create_directories(sweep / "sweep");
  fs::create_directories(sweep / "shards");
  fs::copy(former_ / kSettingsFile, sweep / "sweep" / kSettingsFile);
  EXPECT_THAT(ErrorOf([&] { Run(*experiment_, Options("e2m1,bf16", sweep / "shards" / "0")); }),
              HasSubstr("belongs to a sweep of an older numsim"));
  EXPECT_EQ(ErrorOf([&] { Run(*experiment_, Options("ieee-e2m1,bf16", sweep / "shards" / "0")); }),
            kNoError);
}

}  // namespace
}  // namespace numsim::experiments
