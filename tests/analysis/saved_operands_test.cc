// The operands of linear layers in a step: their GEMMs by hand give what the step computes.
#include "numsim/analysis/saved_operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "numsim/analysis/step_replay.h"
#include "numsim/io/safetensors.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

using Operands = std::vector<std::pair<std::string, Array>>;

const Array& Of(const Operands& operands, const std::string& name) {
  for (const auto& [of, array] : operands) {
    if (of == name) return array;
  }
  ADD_FAILURE() << "no " << name;
  static const Array none;
  return none;
}

TrainConfig Float32Config() {
  TrainConfig config = TinyConfig();
  config.linear.all.high_precision = "fp32";
  return config;
}

// dW = G^T X of every layer, in float64, is the gradient of the replayed step.
TEST(SavedOperands, HaveTheWeightGradientAsTheirGemm) {
  TrainConfig config = Float32Config();
  config.loss_scaler.kind = LossScaling::kTensor;
  config.loss_scaler.initial = 1024;  // not part of G
  Trainer trainer(config, OpenShared(config.data));
  trainer.Step();
  const Operands operands = OperandsOfNextStep(trainer, "*");
  const auto gradients = StepReplay(trainer).Run<float>(PrecisionOf(trainer.config()));
  const std::vector<std::string> layers = trainer.model().LinearLayers();
  ASSERT_EQ(operands.size(), 3 * layers.size());
  for (const std::string& layer : layers) {
    const Array &x = Of(operands, layer + ".x"), &w = Of(operands, layer + ".w"),
                &g = Of(operands, layer + ".g");
    const size_t tokens = x.shape.at(0), in = x.shape.at(1), out = g.shape.at(1);
    EXPECT_EQ(g.shape.at(0), tokens);
    EXPECT_EQ(w.shape, (std::vector<size_t>{out, in}));
    const NamedGradient<float>* const dw = gradients.Find(layer + ".weight");
    ASSERT_NE(dw, nullptr) << layer;
    double difference = 0, size = 0;
    for (size_t o = 0; o < out; ++o) {
      for (size_t i = 0; i < in; ++i) {
        double sum = 0;
        for (size_t t = 0; t < tokens; ++t) {
          sum += static_cast<double>(g.Data<float>()[t * out + o]) *
                 static_cast<double>(x.Data<float>()[t * in + i]);
        }
        const double own = dw->values[o * in + i];
        difference += (sum - own) * (sum - own);
        size += own * own;
      }
    }
    EXPECT_GT(size, 0) << layer;
    EXPECT_LT(std::sqrt(difference / size), 1e-5) << layer;
  }
}

// As rounded for storage: every element is a bf16 number.
TEST(SavedOperands, AreAsStored) {
  TrainConfig config = Float32Config();
  config.storage.activations = config.storage.gradients = ParseFormat("bf16");
  const Trainer trainer(config, OpenShared(config.data));
  for (const auto& [name, array] : OperandsOfNextStep(trainer, "blocks.0.*")) {
    if (name.ends_with(".w")) continue;
    for (size_t i = 0; i < array.Elements(); ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, array.Data<float>() + i, sizeof bits);
      ASSERT_EQ(bits & 0xFFFF, 0u) << name << " " << i;
    }
  }
}

TEST(SavedOperands, AreOfTheLayersThatThePatternNames) {
  const TrainConfig config = Float32Config();
  const Trainer trainer(config, OpenShared(config.data));
  std::vector<std::string> names;
  for (const auto& [name, array] : OperandsOfNextStep(trainer, "blocks.0.mlp.d*")) {
    names.push_back(name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "blocks.0.mlp.down.x", "blocks.0.mlp.down.w", "blocks.0.mlp.down.g"}));
  EXPECT_THAT(ErrorOf([&] { OperandsOfNextStep(trainer, "blocks.*.mlp.dawn"); }),
              ::testing::AllOf(HasSubstr("mlp.dawn"), HasSubstr("blocks.0.mlp.down")));
}

TEST(SavedOperands, AreWrittenWithTheirStepAndConfiguration) {
  const TemporaryDirectory directory;
  const TrainConfig config = Float32Config();
  const SavedOperands saved = SaveOperands(config, directory.Path() / "out", "*");
  EXPECT_FALSE(saved.from_checkpoint);
  EXPECT_EQ(saved.step, 0u);
  const SafetensorsFile file(directory.Path() / "out" / saved.file);
  EXPECT_EQ(file.Tensors().size(), 3 * saved.layers);
  EXPECT_EQ(file.Metadata().at(0), (std::pair<std::string, std::string>{"step", "0"}));
  const Trainer trainer(config, OpenShared(config.data));
  const Operands operands = OperandsOfNextStep(trainer, "*");
  for (const auto& [name, array] : operands) {
    EXPECT_EQ(file.Read(name).bytes, array.bytes) << name;
    EXPECT_EQ(file.Read(name).shape, array.shape) << name;
  }
}

}  // namespace
}  // namespace numsim
