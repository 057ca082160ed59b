#include "numsim/analysis/saved_operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "numsim/analysis/step_replay.h"
#include "numsim/base/error.h"
#include "numsim/io/shared/safetensors_writer.h"
#include "numsim/models/model_config.h"
#include "numsim/train/checkpoint.h"
#include "numsim/train/shared/run_files.h"

namespace numsim {
namespace {

constexpr const char* kFile = "operands.safetensors";

Array ToArray(MatrixSpan<const float> values) {
  Array array{ElementType::kF32, {values.rows, values.cols}, {}};
  array.bytes.resize(values.Elements() * sizeof(float));
  float* const to = array.Data<float>();
  for (size_t row = 0; row < values.rows; ++row) {
    std::copy_n(values.Row(row), values.cols, to + row * values.cols);
  }
  return array;
}

// Copies the inputs and the output gradients of some layers.
class OperandObserver final : public PassObserver<float> {
 public:
  OperandObserver(std::vector<std::string> layers, double loss_scale)
      : layers_(std::move(layers)), loss_scale_(static_cast<float>(loss_scale)) {}

  void Input(std::string_view layer, MatrixSpan<const float> x) override {
    if (Wanted(layer)) arrays[std::string(layer) + ".x"] = ToArray(x);
  }

  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override {
    if (role != TensorRole::kGradient || !Wanted(point)) return;
    Array& array = arrays[std::string(point) + ".g"] = ToArray(values);
    if (loss_scale_ == 1) return;
    for (size_t i = 0; i < array.Elements(); ++i) array.Data<float>()[i] /= loss_scale_;
  }

  std::map<std::string, Array> arrays;

 private:
  bool Wanted(std::string_view layer) const {
    return std::find(layers_.begin(), layers_.end(), layer) != layers_.end();
  }

  std::vector<std::string> layers_;
  float loss_scale_;
};

std::vector<std::string> MatchingLayers(const Trainer& trainer, std::string_view pattern) {
  const std::vector<std::string> all = trainer.model().LinearLayers();
  std::vector<std::string> layers;
  for (const std::string& layer : all) {
    if (MatchesPattern(pattern, layer)) layers.push_back(layer);
  }
  if (layers.empty()) {
    throw KeyError::Format(
        "pattern", "'{}' names no linear layer; there are: {}", pattern, fmt::join(all, ", "));
  }
  return layers;
}

}  // namespace

std::vector<std::pair<std::string, Array>> OperandsOfNextStep(const Trainer& trainer,
                                                              std::string_view pattern) {
  const std::vector<std::string> layers = MatchingLayers(trainer, pattern);
  const StepReplay replay(trainer);
  OperandObserver observer(layers, trainer.optimizer().LossScale());
  replay.Run<float>(PrecisionOf(trainer.config()), &observer);
  for (const Parameter<float>& parameter : trainer.model().parameters()) {
    for (const std::string& layer : layers) {
      if (parameter.name == layer + ".weight") {
        observer.arrays[layer + ".w"] = ToArray(parameter.value.View());
      }
    }
  }
  std::vector<std::pair<std::string, Array>> operands;
  for (const std::string& layer : layers) {
    for (const char* const operand : {".x", ".w", ".g"}) {
      const auto found = observer.arrays.find(layer + operand);
      NUMSIM_CHECK(found != observer.arrays.end(), "{}{}", layer, operand);
      operands.emplace_back(found->first, std::move(found->second));
    }
  }
  return operands;
}

SavedOperands SaveOperands(const TrainConfig& config,
                           const std::filesystem::path& out,
                           std::string_view pattern) {
  Trainer trainer(config, OpenData(config.data));
  SavedOperands saved;
  saved.file = kFile;
  saved.from_checkpoint = RestoreIfSaved(out, trainer);
  const std::vector<std::pair<std::string, Array>> operands = OperandsOfNextStep(trainer, pattern);
  saved.step = trainer.steps_taken();
  saved.layers = operands.size() / 3;
  MakeRunDirectory(out);
  WriteSafetensors(out / kFile,
                   operands,
                   std::vector<std::pair<std::string, std::string>>{
                       {"step", fmt::format("{}", saved.step)},
                       {"configuration", WriteTrainConfig(trainer.config())}});
  return saved;
}

}  // namespace numsim
