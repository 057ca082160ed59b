#include "numsim/updates/internal/require_state.h"

#include "numsim/base/require.h"

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
  const UpdateKind kind = rule.kind;
  const bool scaled = kind == UpdateKind::kMasterFp16Scaled;
  const bool has_values = kind == UpdateKind::kMasterFp32 || kind == UpdateKind::kKahan;
  const bool has_words = scaled || kind == UpdateKind::kSplitMaster;
  const size_t n = weights.Elements();
  const Place place = weights.place;
  RequireBuffer(state.values, has_values ? n : 0, place, function, "state.values");
  RequireBuffer(state.words, has_words ? n : 0, place, function, "state.words");
  RequireBuffer(state.scales, scaled ? groups : 0, place, function, "state.scales");
}

}  // namespace numsim
