#include "experiments/fp8_outliers/identity.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/config/config.h"
#include "numsim/data/source.h"
#include "numsim/models/model.h"

namespace numsim::experiments::fp8_outliers {
namespace {

constexpr uint64_t kSeed = 1;

ModelConfig SmallLlama(MlpKind mlp) {
  ModelConfig config;
  config.layers = 2;
  config.width = 32;
  config.heads = 2;
  config.context = 32;
  config.mlp = mlp;
  config.initial_deviation = 0.1;  // so that products reach beyond the linear part of swish
  return config;
}

Batch SmallBatch() {
  DataConfig data;
  data.size = 16384;
  Batch batch;
  OpenData(data)->TrainBatch(kSeed, 0, 4, 32, batch);
  return batch;
}

std::vector<double> GradientsOf(MlpKind mlp) {
  const auto model = MakeModel<double>(SmallLlama(mlp), {}, kSeed);
  const Pass<double> pass;
  model->Forward(pass, SmallBatch());
  model->Backward(pass);
  std::vector<double> gradients;
  for (Parameter<double>& parameter : model->parameters()) {
    const std::span<double> own = parameter.gradient.View().Span();
    gradients.insert(gradients.end(), own.begin(), own.end());
  }
  return gradients;
}

double RelativeDifference(const std::vector<double>& actual, const std::vector<double>& expected) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / size);
}

// Keeps the logits of a pass, and the largest product of each channel of each block.
struct Outputs final : PassObserver<float> {
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override {
    if (role != TensorRole::kActivation) return;
    if (point == "head") logits.assign(values.Span().begin(), values.Span().end());
    if (!point.ends_with(".mlp.hidden")) return;
    std::vector<float>& largest = channels.emplace_back(values.cols);
    for (size_t row = 0; row < values.rows; ++row) {
      for (size_t j = 0; j < values.cols; ++j) {
        largest[j] = std::max(largest[j], std::abs(values.Row(row)[j]));
      }
    }
  }
  std::vector<float> logits;
  std::vector<std::vector<float>> channels;  // per block
};

Outputs Run(Model<float>& model) {
  Outputs outputs;
  Pass<float> pass;
  pass.observer = &outputs;
  model.Forward(pass, SmallBatch());
  return outputs;
}

// Multiplies the rows of w1 and divides the columns of w3 by 2^-floor(log2 of the largest product).
void Merge(size_t block, const std::vector<float>& largest, ParameterList<float>& parameters) {
  const auto weight = [&](const char* layer) {
    const std::string name = "blocks." + std::to_string(block) + ".mlp." + layer + ".weight";
    Parameter<float>* const parameter = parameters.Find(name);
    NUMSIM_CHECK(parameter != nullptr, "{}", name);
    return parameter->value.View();
  };
  const MatrixSpan<float> up = weight("gate_up"), down = weight("down");
  for (size_t j = 0; j < down.cols; ++j) {
    const int exponent = largest[j] > 0 ? std::ilogb(largest[j]) : 0;
    for (size_t i = 0; i < up.cols; ++i) {
      float& w1 = up.Row(down.cols + j)[i];
      w1 = std::ldexp(w1, -exponent);
    }
    for (size_t row = 0; row < down.rows; ++row) {
      down.Row(row)[j] = std::ldexp(down.Row(row)[j], exponent);
    }
  }
}

}  // namespace

double GradientDifference() {
  return RelativeDifference(GradientsOf(MlpKind::kSmoothSwigluToken),
                            GradientsOf(MlpKind::kSwiglu));
}

Merging MergeScales(std::string_view recipe) {
  TrainConfig config;
  ApplyTrainRecipe(recipe, config);
  const auto make = [&](MlpKind mlp) {
    return MakeModel<float>(SmallLlama(mlp), config.linear, kSeed);
  };
  const std::vector<float> smooth = Run(*make(MlpKind::kSmoothSwiglu)).logits;
  const auto merged = make(MlpKind::kSwiglu);
  // Block by block: the products of a block depend on the weights of those before it.
  for (size_t block = 0; block < SmallLlama(MlpKind::kSwiglu).layers; ++block) {
    Merge(block, Run(*merged).channels.at(block), merged->parameters());
  }
  const std::vector<float> plain = Run(*merged).logits;
  Merging result;
  result.logits = smooth.size();
  for (size_t i = 0; i < smooth.size(); ++i) {
    result.different +=
        std::bit_cast<uint32_t>(smooth[i]) != std::bit_cast<uint32_t>(plain[i]) ? 1 : 0;
  }
  result.relative =
      RelativeDifference({plain.begin(), plain.end()}, {smooth.begin(), smooth.end()});
  return result;
}

}  // namespace numsim::experiments::fp8_outliers
