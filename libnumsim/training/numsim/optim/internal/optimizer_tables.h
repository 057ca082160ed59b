// The data of optimiser kernels (optimizer_kernels.h): plain structs in memory of the place where
// they run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/moments/moment_loss.h"
#include "numsim/moments/shared/moment_element.h"
#include "numsim/optim/internal/adam_rates.h"
#include "numsim/optim/loss_scaler.h"
#include "numsim/optim/optimizer_config.h"
#include "numsim/optim/optimizer_rule.h"
#include "numsim/updates/shared/element_rules.h"
#include "numsim/updates/step_sums.h"

namespace numsim {

// How a direction follows from a gradient and the states.
enum class DirectionKind : uint8_t { kAdam, kSgd, kLion };

// The constants of an optimiser.
struct StepConstants {
  DirectionKind kind;
  bool clips_by_rms;
  bool from_stored;  // OptimizerConfig::update_from_stored
  bool apart;        // directions go to memory of their own, and the weights step afterwards
  StableOptions stable;
  AdamConstants adam;               // beta1 and beta2 also count the powers of StepCount
  AverageRates of_direction, of_m;  // SGD: of_m; Lion: both
  double weight_decay, clip_norm;
  LossScalerConfig scaler;
  uint64_t moment_seed, update_seed;
  MomentCodec codecs[2];      // m, v
  bool plain_moments;         // both codecs are fp32
  bool bare;                  // bare kernels serve the optimiser (optimizer_bare_kernels.h)
  bool fp8_moments;           // bare kernels: IsFp8 holds for all codecs that are used
  bool ranges_in_step;        // and scales are of kBareBlock elements: the step finds them itself
  bool ranges_with_gradient;  // or of tensors, and nothing is clipped: GradientRangeKernel
  uint8_t block_shift[2];     // bare kernels: binary logarithm of a codec's block
  // The update rule, and the rounding that it needs.
  UpdateKind update;
  bool plain_weights;  // naive steps of fp32
  StepRule rule;       // Q; stochastic: SR
  StepRule own;        // kahan: Qc
  float largest;       // of the weights' format
};

// A block of at most kSumBlock elements.
struct BlockRow {
  uint32_t tensor = 0, index = 0;
};

// A tensor.
struct TensorRow {
  float* weights = nullptr;
  const float* gradient = nullptr;
  StoredMoment moments[2];
  float* values = nullptr;    // of the update rule
  uint16_t* words = nullptr;  // of the update rule
  float* direction = nullptr;
  float* inverses[2] = {nullptr, nullptr};     // bare kernels: factors of the states to be stored
  MomentLoss* losses[2] = {nullptr, nullptr};  // per part of kMomentLossPart elements
  uint64_t n = 0;
  uint32_t first_block = 0, blocks = 0;
  bool plain[2] = {true, true};  // the state is fp32
  bool decays = false;

  friend bool operator==(const TensorRow&, const TensorRow&) = default;
};

inline constexpr uint32_t kNotKnown = 0xFFFFFFFFu;

// Numbers that a tensor keeps from step to step, beside its states.
struct TensorState {
  StepCount count;
  // Bits of the greatest magnitude of m, and of the greatest number of v, where a negative number is
  // greater than all; all ones if not known. Of states stored as codes: before they were rounded.
  uint32_t m_bits = 0, v_bits = 0;
  // Bits of the greatest magnitude of the weights, and of the state of their update rule, as the last
  // step wrote them; all ones if not known.
  uint32_t weights_bits = kNotKnown, state_bits = kNotKnown;
};

enum class WeightVerdict : uint8_t {
  kUnknown,
  kGo,      // the weights take the step
  kZero,    // UpdateStatus::kZeroUpdate
  kRefuse,  // UpdateStatus::kNonfinite
};

// The sums of a tensor's step, in the order of step_sums.h.
enum StepSum : uint32_t {
  kGradientSum,   // squares of the gradient as given
  kRatioSum,      // DirectionSums::ratio_square
  kDirectionSum,  // squares of the direction
  kDecayedSum,    // squares of the direction with weight decay
  kStepSum,       // StepSums
  kProjectionSum,
  kMovedSum,
  kSaturatedSum,
  kStepSums,
};

// The decisions about a tensor in one step, and what the step found.
struct TensorPlan {
  bool skipped = false, moves = false;
  WeightVerdict verdict = WeightVerdict::kUnknown;
  float learning_rate = 0, decay = 0;
  double gradient_norm = 0, rms = 0;
  AdamRates rates;
  // Bits of the greatest magnitudes; m and v as in TensorState.
  uint32_t weights_bits = 0, state_bits = 0, direction_bits = 0, decayed_bits = 0;
  uint32_t m_bits = 0, v_bits = 0;
  uint32_t new_weights_bits = 0, new_state_bits = 0;
  double sums[kStepSums] = {};
};

// The decisions about a step.
struct StepPlan {
  LossScaler::State scaler;
  bool skipped = false, finite = true, moves = false;
  float factor = 1;
  double gradient_norm = 0, clip_factor = 1, loss_scale = 1;
};

struct StepTables {
  const TensorRow* rows = nullptr;
  const BlockRow* blocks = nullptr;
  TensorState* states = nullptr;
  TensorPlan* plans = nullptr;
  StepPlan* step = nullptr;
  double* lanes = nullptr;       // kStepSums x blocks x 8
  double* block_sums = nullptr;  // kStepSums x blocks
  uint32_t tensor_count = 0, block_count = 0;
};

// The arguments of every kernel of a step.
struct StepArguments {
  StepConstants constants;
  StepTables tables;
  double learning_rate = 0;
  uint64_t step = 0;
  const uint8_t* without = nullptr;
  bool only_writer = false;  // nobody else has written weights since the last step
};

// The number of the random bits of a tensor in a step.
NUMSIM_INLINE uint64_t TensorStream(uint64_t step, uint32_t tensor) {
  return step * (uint64_t{1} << 20) + tensor;
}

}  // namespace numsim
