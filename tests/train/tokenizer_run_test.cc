// A training on pieces of a text: it runs, resumes and says what it was trained on.
#include <nlohmann/json.hpp>

#include "numsim/train/run.h"
#include "numsim/train/shared/run_files.h"
#include "tests/data/tokenizer_fixture.h"
#include "tests/support/train_problem.h"
#include "tests/train/interrupted_run.h"

namespace numsim {
namespace {

class TokenizerRun : public TokenizerTest {
 protected:
  TrainRunResult Train(const TrainConfig& config,
                       std::string_view folder,
                       uint64_t stop_at = UINT64_MAX,
                       bool resume = false) {
    return TrainUntil(config, Path(folder), resume, stop_at);
  }
};

TrainConfig PiecesConfig() {
  TrainConfig config = TinyConfig();
  config.data.tokenizer = TokenizerKind::kBpe;
  config.data.vocabulary = 400;
  return config;
}

TEST_F(TokenizerRun, ResumesAsIfItHadNotStopped) {
  const TrainRunResult whole = Train(PiecesConfig(), "a");
  EXPECT_EQ(whole.status, TrainStatus::kFinished);
  EXPECT_EQ(Train(PiecesConfig(), "b", 7).steps, 7u);
  std::filesystem::remove_all(Cache());  // trained again
  Train(PiecesConfig(), "b", UINT64_MAX, true);
  EXPECT_EQ(ReproducibleFiles(Path("a")), ReproducibleFiles(Path("b")));
  EXPECT_TRUE(std::filesystem::exists(Cache()));
}

TEST_F(TokenizerRun, DoesNotContinueOnAnotherText) {
  TrainConfig config = PiecesConfig();
  config.data.kind = DataKind::kText;
  std::string text = SomeText(1 << 14);
  config.data.path = Put("a.txt", text);
  config.data.size = 0;
  Train(config, "a", 7);
  std::swap(text[text.find("e")], text[text.find("i")]);
  Put("a.txt", text);
  ExpectMessage(ErrorOf([&] { Train(config, "a", UINT64_MAX, true); }), {"the data differ"});
}

TEST_F(TokenizerRun, SaysLossesPerByteAndDigests) {
  const TrainRunResult result = Train(PiecesConfig(), "a");
  const auto data = OpenData(PiecesConfig().data);
  Batch batch;
  double bytes = 0, targets = 0;
  for (size_t i = 0; i < 2; ++i) {  // train.valid_batches
    data->ValidBatch(i, 4, 16, batch);
    for (const int32_t token : batch.targets)
      bytes += data->TokenBytes()[static_cast<size_t>(token)];
    targets += static_cast<double>(batch.targets.size());
  }
  const size_t at = result.summary.find("nats per byte");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NEAR(std::stod(result.summary.substr(at + 28)), result.valid_loss * targets / bytes, 1e-9);
  const auto manifest = nlohmann::json::parse(Bytes(Path("a") / kManifestFile));
  for (const auto& [name, digest] : data->Digests()) {
    EXPECT_EQ(manifest["policies"][name], "SHA-256 " + digest);
    EXPECT_NE(result.summary.find(digest), std::string::npos);
  }
  EXPECT_NE(result.summary.find("entropy bound"), std::string::npos);
  // Bytes need no second number.
  EXPECT_EQ(Train(TinyConfig(), "b").summary.find("nats per byte"), std::string::npos);
}

}  // namespace
}  // namespace numsim
