// The observer of what-if telemetry: measures the tensors of linear layers under recipes that the
// training does not use.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/config/what_if_config.h"
#include "numsim/models/model.h"
#include "numsim/models/pass.h"
#include "numsim/train/internal/what_if_error.h"
#include "numsim/train/telemetry.h"

namespace numsim {

// Observes passes for another observer: hands every call on to it, and then looks at X, W and G of
// the layers as the layers read them. Changes no tensor.
class WhatIfObserver : public PassObserver<float> {
 public:
  // `model` and `next` must outlive the observer. Random bits of stochastic recipes derive from
  // `seed`. Throws KeyError listing the layers if a pattern matches none.
  WhatIfObserver(const WhatIfConfig& config,
                 uint64_t seed,
                 Model<float>& model,
                 PassObserver<float>& next);

  // Returns true if the observer needs to see a pass: one that is measured, or any at all if
  // delayed scales record their history.
  bool IsNeeded(bool measures) const {
    return !layers_.empty() && (measures || !delayed_recipes_.empty());
  }

  // Sets the outputs of the training pass that follows; `pass` numbers the passes of a training. If
  // `telemetry` is not null, each tensor adds a row per recipe to the table `what_if`. In any case
  // delayed scales record the tensor's absmax; they are updated if `updates_scales` (Pass).
  void Begin(uint64_t step,
             uint64_t pass,
             Telemetry* telemetry,
             StepProfile* profile,
             bool updates_scales = true);

  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override;
  void Input(std::string_view layer, MatrixSpan<const float> x) override;
  void Quantized(std::string_view layer,
                 LinearOperand operand,
                 In<float> original,
                 const QuantizedMatrix& quantized) override;
  void Multiplied(std::string_view layer, LinearGemm product) override;

  // Save returns the states of all delayed scales. Restore throws Error unless it is given states
  // of the same names, each of which fits.
  std::vector<NamedState> Save() const;
  void Restore(const std::vector<NamedState>& states);

 private:
  static constexpr size_t kTensors = 3;  // X, W, G
  struct Layer {
    uint64_t number;
    const Parameter<float>* weight;
    std::vector<DelayedScale> delayed[kTensors];  // one per recipe of delayed_recipes_
  };

  void Watch(const std::string& name, uint64_t number, Model<float>& model);
  // Looks at tensor number `tensor` of a layer.
  void See(const std::string& name, Layer& layer, size_t tensor, MatrixSpan<const float> values);
  void Record(const std::string& name,
              const Layer& layer,
              size_t tensor,
              MatrixSpan<const float> values);
  void Update(Layer& layer, size_t tensor, MatrixSpan<const float> values) const;

  // Calls visit(name, scale) for each delayed scale of `self`, an observer that may be const.
  template <typename Self, typename Visit>
  static void ForEachState(Self& self, Visit visit);

  WhatIfConfig config_;
  std::vector<std::string> names_;       // of config_.recipes
  std::vector<size_t> delayed_recipes_;  // numbers of those with delayed scaling
  uint64_t seed_;
  PassObserver<float>& next_;
  std::map<std::string, Layer, std::less<>> layers_;
  uint64_t step_ = 0, pass_ = 0;
  Telemetry* telemetry_ = nullptr;
  StepProfile* profile_ = nullptr;
  bool updates_scales_ = true;
  WhatIfScratch scratch_;
};

}  // namespace numsim
