#include "numsim/updates/internal/update_method.h"

#include "numsim/base/error.h"
#include "numsim/cast/cast.h"

namespace numsim {

void UpdateMethod::SetArgument(UpdateRule& rule, std::string_view, std::string_view whole) const {
  throw Error::Format("update rule '{}': {} takes no argument", whole, ToString(rule.kind));
}

double UpdateMethod::StateBytes(const UpdateRule&, const FormatSpec&) const {
  switch (traits.state) {
    case RuleState::kNone:
      return 0;
    case RuleState::kValues:
      return sizeof(float);
    case RuleState::kWords:
      return sizeof(uint16_t);
  }
  return 0;
}

void UpdateMethod::Start(const UpdateStart& start) const {
  FakeQuantize(start.plan, start.initial, start.weights);
}

void UpdateMethod::LoadWeights(const KeptWeights& kept, ElementRange block, double* out) const {
  const float* const from = kept.weights.data + block.begin;
  for (size_t i = 0; i < block.count; ++i) out[i] = static_cast<double>(from[i]);
}

EncodePlan WeightPlan(const FormatSpec& format) {
  return MakeEncodePlan(format, {}, Overflow::kSaturate);
}

EncodePlan OwnPlan(const UpdateRule& rule, const FormatSpec& format) {
  return MethodOf(rule.kind).OwnPlan(rule, format);
}

double StateBytesPerWeight(const UpdateRule& rule, const FormatSpec& format) {
  return MethodOf(rule.kind).StateBytes(rule, format);
}

}  // namespace numsim
