// The files of small trainings and of a comparison, compared with golden digests. Other tests say what
// is right; these say what moved.
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "numsim/io/manifest.h"
#include "numsim/train/comparison.h"
#include "numsim/train/internal/run_summary.h"
#include "tests/support/golden_text.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;

// Hides gnuplot, which takes longer than everything else: figures are scripts.
class TrainSnapshot : public IoTest {
 protected:
  void SetUp() override {
    IoTest::SetUp();
    path_ = std::getenv("PATH");
    ::setenv("PATH", Directory().c_str(), 1);
  }
  void TearDown() override {
    ::setenv("PATH", path_.c_str(), 1);
    IoTest::TearDown();
  }

  static std::string Digest(std::string_view text) { return Sha256OfText(text).substr(0, 16); }

  // A line per file of the training that is the same on every machine.
  std::string FilesOf(const std::string& name, const TrainConfig& config) const {
    TrainRunOptions options;
    options.out = Path(name);
    std::map<std::string, std::string> texts;
    const TrainRunResult result = RunTraining(config, options);
    for (const auto& [file, text] : ReproducibleFiles(options.out)) texts[file] = text;
    for (const std::string& file : result.files) {
      if (file.ends_with(".gp")) texts[file] = Bytes(options.out / file);
    }
    std::string lines;
    for (const auto& [file, text] : texts) {
      lines += fmt::format("{} {} {} {}\n", name, file, text.size(), Digest(text));
    }
    return lines;
  }

 private:
  std::string path_;
};

TrainConfig Tiny(const std::vector<std::string>& overrides) {
  return ParseTrainConfig("", "test", {}, [&] {
    std::vector<std::string> all = {"model.layers=1",
                                    "model.width=16",
                                    "model.heads=2",
                                    "model.context=16",
                                    "linear.high_precision=fp32",
                                    "data.kind=generated-text",
                                    "data.size=16384",
                                    "train.steps=40",
                                    "train.batch=4",
                                    "train.valid_every=10",
                                    "train.valid_batches=2",
                                    "train.seed=7",
                                    "schedule.peak=3e-3",
                                    "schedule.warmup=3",
                                    "telemetry.every=1",
                                    "telemetry.tensors_every=5"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return all;
  }());
}

TEST_F(TrainSnapshot, FilesOfTrainingsAreTheGoldenOnes) {
  std::string text = FilesOf("llama", Tiny({}));
  text += FilesOf("stateful", StatefulConfig());
  text += FilesOf("rare-rows", Tiny({"telemetry.every=3", "telemetry.tensors_every=0"}));
  text += FilesOf("diverges", Tiny({"schedule.peak=100", "train.diverged_above=1.5"}));
  text += FilesOf("planted", Tiny({"stress.point=blocks.0.mlp.down", "stress.value=1000"}));
  text +=
      FilesOf("what-if",
              Tiny({"what_if.every=4",
                    "what_if.recipes=[\"e4m3fn tensor\", \"e5m2 delayed history:3\", \"int8 row\", "
                    "\"e4m3fn block:16 pow2-ceil sr\"]"}));
  TrainConfig clip = StatefulConfig();
  clip.model.kind = ModelKind::kClip;
  clip.model.patch = 8;
  clip.data.kind = DataKind::kGeneratedShapes;
  clip.data.size = 256;
  clip.data.image = 16;
  clip.train.batch = 8;
  text += FilesOf("clip", clip);
  ExpectGoldenLines("train/golden/trainings.txt", text);
}

TEST_F(TrainSnapshot, TheFigureOfAComparisonIsTheGoldenOne) {
  std::vector<fs::path> directories;
  for (const char* const change : {"train.seed=7", "train.seed=8", "optimizer.m=e5m2"}) {
    TrainRunOptions options;
    options.out = Path(change);
    RunTraining(Tiny({change}), options);
    directories.push_back(options.out);
  }
  const TrainComparison comparison = CompareTrainings(directories);
  WriteComparison(comparison, Path("all"));
  std::string text = ComparisonText(comparison), csv = Bytes(Path("all.csv"));
  for (std::string* const found : {&text, &csv}) {
    for (size_t at; (at = found->find(Directory().string())) != std::string::npos;) {
      found->erase(at, Directory().string().size());
    }
  }
  // The widths of columns follow from the length of the directories.
  std::erase(text, ' ');
  ExpectGoldenLines(
      "train/golden/comparison.txt",
      text + fmt::format("all.csv {}\nall.gp {}\n", Digest(csv), Digest(Bytes(Path("all.gp")))));
}

TEST(TrainSpeedText, HasEveryNumber) {
  TrainSpeed speed;
  EXPECT_EQ(Describe(speed), "");
  speed.steps = 20;
  speed.seconds = 4;
  speed.tokens_per_second = 1234.4;
  speed.unit = "examples";
  speed.layer_gflops = 5.25;
  for (size_t i = 0; i < kStepPhases; ++i) {
    speed.profile[static_cast<StepPhase>(i)] = 0.01 * static_cast<double>(i + 1);
  }
  std::string shares;
  double other = 100;
  for (size_t i = 0; i < kStepPhases; ++i) {
    const double share = 0.25 * static_cast<double>(i + 1);
    shares += fmt::format(" {} {:.1f} %,", ToString(static_cast<StepPhase>(i)), share);
    other -= share;
  }
  const std::string end = fmt::format("\nshare of step time:{} other {:.1f} %\n", shares, other);
  EXPECT_EQ(Describe(speed),
            "20 steps in 4.0 s, 1234 examples/s\nGEMMs of linear layers 5.2 GFLOP/s" + end);
  speed.float32_gflops = 100;
  speed.library_gflops = 200;
  EXPECT_TRUE(Describe(speed).starts_with(
      "20 steps in 4.0 s, 1234 examples/s\nGEMMs of linear layers 5.2 GFLOP/s; float32 GEMM on this "
      "machine: 100.0 in fixed order, 200.0 by "));
}

}  // namespace
}  // namespace numsim
