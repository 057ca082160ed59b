// Loss scaling: the factor of the loss, and what happens to gradients that are not finite.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace numsim {

enum class LossScaling : uint8_t {
  kNone,     // factor 1; gradients that are not finite end the training as diverged
  kDynamic,  // PyTorch's GradScaler: a step with any NaN or infinity is skipped [GradScaler]
  kTensor,   // a fixed factor; only the tensors with NaN or infinity are skipped [SwitchBack]
};
// none dynamic tensor.
LossScaling ParseLossScaling(std::string_view text);
std::string_view ToString(LossScaling kind);

struct LossScalerConfig {
  LossScaling kind = LossScaling::kNone;
  double initial = 65536;  // kDynamic: at first. kTensor: always. kNone: not read
  double growth = 2, backoff = 0.5;
  uint64_t growth_interval = 2000;
};

// Throws Error naming the field ("loss_scaler.growth"): initial is a normal float32, growth >= 1,
// backoff in (0, 1), growth_interval >= 1.
void CheckLossScalerConfig(const LossScalerConfig& config);

class LossScaler {
 public:
  // Throws Error as CheckLossScalerConfig does.
  explicit LossScaler(const LossScalerConfig& config);

  const LossScalerConfig& config() const { return config_; }
  // Always a normal float32.
  double Scale() const { return scale_; }
  // After a backward pass: `finite` says whether all gradients are. Returns whether the step is to
  // be taken (kTensor, kNone: always), and, kDynamic, moves the scale: times backoff after a
  // skipped step; times growth after growth_interval steps in a row that were taken. Products are
  // rounded to float32; one that overflows leaves the scale as it is, as in PyTorch, and the scale
  // does not fall below 2^-126, where PyTorch's goes on to 0.
  bool Update(bool finite);
  uint64_t Skipped() const { return skipped_; }  // steps, kDynamic

  struct State {
    double scale = 1;
    uint64_t taken_in_row = 0, skipped = 0;
  };
  State Save() const { return {scale_, taken_in_row_, skipped_}; }
  // Throws Error for a state that no training of this configuration has.
  void Restore(const State& state);

 private:
  LossScalerConfig config_;
  double scale_ = 1;
  uint64_t taken_in_row_ = 0, skipped_ = 0;
};

}  // namespace numsim
