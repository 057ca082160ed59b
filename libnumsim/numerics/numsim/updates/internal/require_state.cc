#include "numsim/updates/internal/require_state.h"

#include "numsim/base/require.h"
#include "numsim/updates/internal/update_method.h"

namespace numsim {
namespace {

template <typename T>
void RequireBuffer(
    const Buffer<T>& buffer, size_t elements, Place place, const char* function, const char* name) {
  RequireSize(buffer.View().Elements(), elements, function, name);
  NUMSIM_REQUIRE(elements == 0 || buffer.place() == place,
                 "{}: '{}' is on the {}, expected it on the {} with the weights",
                 function,
                 name,
                 ToString(buffer.place()),
                 ToString(place));
}

}  // namespace

void RequireLikeWeights(MatrixSpan<const float> matrix,
                        MatrixSpan<const float> weights,
                        const char* function,
                        const char* argument) {
  NUMSIM_REQUIRE(matrix.rows == weights.rows && matrix.cols == weights.cols,
                 "{}: '{}' is {} x {}, expected {} x {}",
                 function,
                 argument,
                 matrix.rows,
                 matrix.cols,
                 weights.rows,
                 weights.cols);
  NUMSIM_REQUIRE(matrix.Contiguous(),
                 "{}: '{}' has stride {}, expected {}",
                 function,
                 argument,
                 matrix.stride,
                 matrix.cols);
  NUMSIM_REQUIRE(matrix.place == weights.place,
                 "{}: '{}' is on the {}, expected it on the {} with the weights",
                 function,
                 argument,
                 ToString(matrix.place),
                 ToString(weights.place));
}

void RequireState(const UpdateRule& rule,
                  const UpdateState& state,
                  MatrixSpan<const float> weights,
                  size_t groups,
                  const char* function) {
  const UpdateTraits& traits = MethodOf(rule.kind).traits;
  const size_t n = weights.Elements();
  const Place place = weights.place;
  RequireBuffer(
      state.values, traits.state == RuleState::kValues ? n : 0, place, function, "state.values");
  RequireBuffer(
      state.words, traits.state == RuleState::kWords ? n : 0, place, function, "state.words");
  RequireBuffer(state.scales, traits.has_scales ? groups : 0, place, function, "state.scales");
}

}  // namespace numsim
