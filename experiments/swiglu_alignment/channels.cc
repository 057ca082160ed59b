#include "experiments/swiglu_alignment/channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/swiglu_alignment/neuron.h"
#include "numsim/base/error.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

constexpr double kE = 2.718281828459045;
constexpr int kPowerSteps = 100;

Values CopyOf(MatrixSpan<const float> values) {
  Values copy{values.rows, values.cols, {}};
  copy.data.reserve(values.Elements());
  for (size_t row = 0; row < values.rows; ++row) {
    copy.data.insert(copy.data.end(), values.Row(row), values.Row(row) + values.cols);
  }
  return copy;
}

// Copies the activations of all MLPs.
class MlpObserver final : public PassObserver<float> {
 public:
  explicit MlpObserver(std::vector<MlpSnapshot>& blocks) : blocks_(blocks) {}

  void Tensor(std::string_view point, TensorRole, MatrixSpan<float> values) override {
    for (size_t block = 0; block < blocks_.size(); ++block) {
      const std::string name = fmt::format("blocks.{}.mlp.", block);
      if (point == name + "gate_up") blocks_[block].inner = CopyOf(values);
      if (point == name + "hidden") blocks_[block].hidden = CopyOf(values);
    }
  }

 private:
  std::vector<MlpSnapshot>& blocks_;
};

Values WeightOf(Trainer& trainer, size_t block, const char* layer) {
  const std::string name = fmt::format("blocks.{}.mlp.{}.weight", block, layer);
  const Parameter<float>* const parameter = trainer.model().parameters().Find(name);
  NUMSIM_CHECK(parameter != nullptr, "{}", name);
  return CopyOf(parameter->value.View());
}

std::vector<double> Doubles(const float* values, size_t n) { return {values, values + n}; }

// Adds the statistics of a channel over the tokens.
void AddGate(const MlpSnapshot& mlp, size_t channel, ChannelState& state) {
  const auto tokens = static_cast<double>(mlp.inner.rows);
  for (size_t token = 0; token < mlp.inner.rows; ++token) {
    const double gate = mlp.inner.Row(token)[channel];
    const double activation = std::fabs(mlp.hidden.Row(token)[channel]);
    state.above_one += std::fabs(gate) > 1 ? 1 / tokens : 0;
    state.above_e += std::fabs(gate) > kE ? 1 / tokens : 0;
    state.slope += SigmaAt(Gate::kSigmoid, gate).first / tokens;
    // Written so that an activation that is not finite is the largest.
    if (!(activation <= state.largest)) state.largest = activation;
  }
}

// Returns W^T (W v) for the linear branch's weight W, and W v in `image`.
std::vector<double> NormalProduct(const MlpSnapshot& mlp,
                                  const std::vector<double>& v,
                                  std::vector<double>& image) {
  std::vector<double> product(v.size());
  for (size_t channel = 0; channel < image.size(); ++channel) {
    const float* const w1 = mlp.Linear(channel);
    double sum = 0;
    for (size_t i = 0; i < v.size(); ++i) sum += w1[i] * v[i];
    image[channel] = sum;
    for (size_t i = 0; i < v.size(); ++i) product[i] += sum * w1[i];
  }
  return product;
}

}  // namespace

std::vector<MlpSnapshot> SnapshotOf(Trainer& trainer) {
  const TrainConfig& config = trainer.config();
  std::vector<MlpSnapshot> blocks(config.model.layers);
  MlpObserver observer(blocks);
  Batch batch;
  trainer.data().ValidBatch(0, config.train.batch, config.model.context, batch);
  Pass<float> pass;
  pass.seed = config.train.seed;
  pass.step = trainer.steps_taken();
  pass.observer = &observer;
  // A forward pass updates delayed scales.
  const std::vector<NamedState> scaling = trainer.model().SaveState();
  trainer.model().Forward(pass, batch);
  trainer.model().RestoreState(scaling);
  for (size_t block = 0; block < blocks.size(); ++block) {
    blocks[block].gate_up = WeightOf(trainer, block, "gate_up");
    blocks[block].down = WeightOf(trainer, block, "down");
  }
  return blocks;
}

std::vector<ChannelState> ChannelsOf(const MlpSnapshot& mlp) {
  const size_t width = mlp.gate_up.cols;
  std::vector<ChannelState> states(mlp.Channels());
  for (size_t channel = 0; channel < states.size(); ++channel) {
    ChannelState& state = states[channel];
    const std::vector<double> w1 = Doubles(mlp.Linear(channel), width);
    const std::vector<double> w2 = Doubles(mlp.Gate(channel), width);
    const std::vector<double> w3 = ColumnOf(mlp.down, channel);
    state.cos = Cosine(w1.data(), w2.data(), width);
    state.linear_norm = Norm(w1.data(), width);
    state.gate_norm = Norm(w2.data(), width);
    state.cos_down = Cosine(w1.data(), w3.data(), width);
    AddGate(mlp, channel, state);
  }
  return states;
}

double KurtosisOf(const Values& hidden) {
  double sum = 0;
  size_t tokens = 0;
  for (size_t token = 0; token < hidden.rows; ++token) {
    double squares = 0, fourths = 0;
    for (size_t channel = 0; channel < hidden.cols; ++channel) {
      const double square = std::pow(static_cast<double>(hidden.Row(token)[channel]), 2);
      squares += square;
      fourths += square * square;
    }
    if (squares == 0) continue;
    sum += static_cast<double>(hidden.cols) * fourths / (squares * squares);
    ++tokens;
  }
  return tokens == 0 ? std::nan("") : sum / static_cast<double>(tokens);
}

double ColinearityOf(const MlpSnapshot& mlp) {
  const size_t channels = mlp.Channels(), width = mlp.gate_up.cols;
  // Power iteration from a start that is orthogonal to no singular vector by symmetry.
  std::vector<double> v(width), left(channels);
  for (size_t i = 0; i < width; ++i) v[i] = 1 + static_cast<double>(i) / static_cast<double>(width);
  for (int step = 0; step < kPowerSteps; ++step) {
    v = NormalProduct(mlp, v, left);
    const double norm = Norm(v.data(), width);
    if (!(norm > 0)) return 0;
    for (double& element : v) element /= norm;
  }
  double largest = 0;
  for (size_t row = 0; row < width; ++row) {
    const std::vector<double> down = Doubles(mlp.down.Row(row), channels);
    largest = std::max(largest, std::fabs(Cosine(left.data(), down.data(), channels)));
  }
  return largest;
}

std::vector<double> ColumnOf(const Values& values, size_t column) {
  std::vector<double> elements(values.rows);
  for (size_t row = 0; row < values.rows; ++row) elements[row] = values.Row(row)[column];
  return elements;
}

}  // namespace numsim::experiments::swiglu_alignment
