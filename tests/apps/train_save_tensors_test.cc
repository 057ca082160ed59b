// `numsim train --save-tensors`: what it writes, beside a run and without one; bad input.
#include <filesystem>
#include <vector>

#include "numsim/io/safetensors.h"
#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kConfig = R"(
[model]
layers = 2
width = 16
heads = 2
context = 16
[data]
size = 20000
[train]
steps = 3
batch = 2
valid_batches = 1
)";

class TrainSaveTensors : public BadInputTest {
 protected:
  void SetUp() override {
    BadInputTest::SetUp();
    Put("a.toml", kConfig);
  }
  std::string Trained(const std::string& words) const {
    return Output("train --threads 1 " + words);
  }
};

TEST_F(TrainSaveTensors, WritesTheOperandsOfTheNextStepAndLeavesTheRunAsItIs) {
  EXPECT_THAT(Trained("a.toml --out out --save-tensors *.mlp.down"),
              HasSubstr("2 linear layers in the step after step 0 (there is no checkpoint)"));
  const SafetensorsFile file(Path("out") / "operands.safetensors");
  std::vector<std::string> names;
  for (const TensorInfo& tensor : file.Tensors()) {
    names.push_back(tensor.name + " " + ShapeToString(tensor.shape));
  }
  EXPECT_EQ(names.size(), 6u);
  EXPECT_THAT(names.at(0), StartsWith("blocks.0.mlp.down.x (32, "));
  const std::string first = Bytes(Path("out") / "operands.safetensors");
  Trained("a.toml --out out");
  const std::string checkpoint = Bytes(Path("out") / "checkpoint.safetensors");
  EXPECT_THAT(Trained("a.toml --out out --save-tensors *.mlp.down"),
              HasSubstr("after step 3 (the checkpoint)"));
  EXPECT_NE(Bytes(Path("out") / "operands.safetensors"), first);
  EXPECT_EQ(Bytes(Path("out") / "checkpoint.safetensors"), checkpoint);
}

TEST_F(TrainSaveTensors, BadInput) {
  Expect(
      {{{"train", "a.toml", "--out", "out", "--save-tensors", "*.mlp.dawn"},
        {"--save-tensors", "*.mlp.dawn", "blocks.1.mlp.down"}},
       {{"train", "a.toml", "--out", "out", "--save-tensors", "*", "--resume"},
        {"--save-tensors", "--resume"}},
       {{"train", "a.toml", "--out", "out", "--save-tensors", "*", "--describe-config"},
        {"--save-tensors", "--describe-config"}},
       {{"train", "a.toml", "--out", "out", "--save-tensors", "*", "--rank", "layer"},
        {"--save-tensors", "--rank"}},
       {{"train", "a.toml", "--out", "out", "--save-tensors", "*", "--set", "train.accumulate=2"},
        {"train.accumulate"}}});
}

}  // namespace
}  // namespace numsim::apps
