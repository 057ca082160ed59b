// The state of SwiGLU channels at one point of a training, from weights and the activations of a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "experiments/shared/state_archive.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::swiglu_alignment {

// A copied matrix, row by row.
struct Values {
  size_t rows = 0, cols = 0;
  std::vector<float> data;

  const float* Row(size_t row) const { return data.data() + row * cols; }
  void Keep(StateArchive& archive) { archive(rows, cols, data); }
};

// The MLP of one block, with `channels` channels of `width` inputs.
struct MlpSnapshot {
  Values gate_up;  // 2 channels x width: the gate's rows w2 first, then the linear branch's w1
  Values down;     // width x channels: the columns are w3
  Values inner;    // tokens x 2 channels: w2.x, then w1.x
  Values hidden;   // tokens x channels: the activations

  void Keep(StateArchive& archive) { archive(gate_up, down, inner, hidden); }
  size_t Channels() const { return hidden.cols; }
  const float* Gate(size_t channel) const { return gate_up.Row(channel); }
  const float* Linear(size_t channel) const { return gate_up.Row(Channels() + channel); }
};

// Returns the MLPs of all blocks with their activations over the first validation batch. `trainer` is as
// before afterwards.
std::vector<MlpSnapshot> SnapshotOf(Trainer& trainer);

struct ChannelState {
  double cos = 0;          // of w1 and w2
  double linear_norm = 0;  // |w1|
  double gate_norm = 0;    // |w2|
  double cos_down = 0;     // of w1 and w3
  double above_one = 0;    // share of the tokens with |w2.x| > 1
  double above_e = 0;      // share of the tokens with |w2.x| > e
  double slope = 0;        // mean of sigma'(w2.x)
  double largest = 0;      // largest magnitude of the activation

  void Keep(StateArchive& archive) {
    archive(cos, linear_norm, gate_norm, cos_down, above_one, above_e, slope, largest);
  }
};
std::vector<ChannelState> ChannelsOf(const MlpSnapshot& mlp);

// Returns the mean over tokens of a token's kurtosis over channels, d sum h^4 / (sum h^2)^2 for d
// channels (after [FOG]): 3 for normal activations, d if one channel holds everything. Tokens without
// activation do not count.
double KurtosisOf(const Values& hidden);

// Returns the colinearity of an MLP (after [TWEO]): the largest |cos| between the first left singular
// vector of the linear branch's weight and a row of the last weight. Both have an element per channel.
double ColinearityOf(const MlpSnapshot& mlp);

// Returns the elements of one column.
std::vector<double> ColumnOf(const Values& values, size_t column);

}  // namespace numsim::experiments::swiglu_alignment
