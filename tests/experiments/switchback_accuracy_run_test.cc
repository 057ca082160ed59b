// The experiment `switchback-accuracy`: golden CSVs of a small run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "experiments/core/settings.h"
#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "tests/experiments/golden_run.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

// Every option, so that defaults can change.
Settings SmallSettings(int seeds) {
  const std::map<std::string, std::string> options = {
      {"models", "clip,llama"},
      {"variants", "switchback:int8,llm-int8:int8,tensor-wise:e4m3fn/e5m2"},
      {"sizes-clip", "1x32"},
      {"sizes-llama", "1x32"},
      {"batches-clip", "8"},
      {"batches-llama", "4"},
      {"patch", "8"},
      {"context", "16"},
      {"first-last-high", "no"},
      {"captions", ""},
      {"shapes-size", "256"},
      {"image", "16"},
      {"text", ""},
      {"text-size", "16384"},
      {"steps", "12"},
      {"lr-clip", "2e-3"},
      {"lr-llama", "1e-2"},
      {"warmup", "3"},
      {"beta2", "0.95"},
      {"weight-decay", "0.1"},
      {"clip", "1"},
      {"valid-batches", "2"},
      {"records", "2"},
      {"shadow-every", "6"},
      {"shadow-seeds", "1"}};
  return MakeSettings(SwitchbackAccuracy(), "quick", 3, seeds, options);
}

TEST(SwitchbackGolden, TrainingsEqualTheGoldenCsv) {
  ExpectGoldenCsv(SwitchbackAccuracy(), SmallSettings(2), std::string(kFinalTable));
}

// Those of the first seed alone.
TEST(SwitchbackGolden, GradientsEqualTheGoldenCsv) {
  const TemporaryDirectory directory;
  const std::filesystem::path out = directory.Path() / "out";
  RunWithoutFigures(SwitchbackAccuracy(), SmallSettings(1), out);
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  const std::string golden = Bytes(std::filesystem::path(root) / "tests" / "experiments" /
                                   "golden" / "switchback-accuracy-gradients.csv");
  ASSERT_FALSE(golden.empty());
  EXPECT_EQ(Bytes(out / "gradients.csv"), golden);
}

}  // namespace
}  // namespace numsim::experiments::switchback_accuracy
