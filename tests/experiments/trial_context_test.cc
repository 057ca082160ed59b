// The checkpoints of trials, by the names of their files.
#include "experiments/runner/trial_context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

TEST(Checkpoints, OnlyThoseOfTheTrialsThatAreOldAreRemoved) {
  const TemporaryDirectory directory;
  const TrialContext context{.folder = directory.Path(), .trial = 12};
  const std::string last = CheckpointOf(context, "last").filename();
  EXPECT_EQ(last, "12-last.safetensors");
  const std::vector<std::string> kept = {"12.safetensors",
                                         "12x.safetensors",
                                         "x-last.safetensors",
                                         "-last.safetensors",
                                         "13-last.safetensors",
                                         "12-last.jsonl",
                                         "7-a.safetensors.tmp"};
  for (const std::string& name : kept) std::ofstream(directory.Path() / name) << "x";
  for (const char* name : {"12-last.safetensors", "12-0.safetensors", "7-a.safetensors"}) {
    std::ofstream(directory.Path() / name) << "x";
  }
  RemoveCheckpoints(directory.Path(), [](size_t trial) { return trial == 12 || trial == 7; });
  std::vector<std::string> left;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory.Path())) {
    left.push_back(entry.path().filename());
  }
  std::ranges::sort(left);
  std::vector<std::string> expected = kept;
  std::ranges::sort(expected);
  EXPECT_EQ(left, expected);
  RemoveCheckpoints(directory.Path() / "none", [](size_t) { return true; });  // nothing there
}

}  // namespace
}  // namespace numsim::experiments
