// Arguments and results of the texts of *_rule.inc, for code of the host and of a device.
#pragma once

#include <cstddef>
#include <type_traits>

#include "numsim/backend/matrix.h"
#include "numsim/base/host_device.h"

namespace numsim {

// A sum over a row has this many lanes (rows-inl.h).
inline constexpr size_t kRowLanes = 16;

// The smallest norm by which UnitNorm divides.
inline constexpr double kLeastNorm = 1e-12;

// The loss of one row, and whether its largest score is the target's.
struct RowLoss {
  double loss;
  bool correct;
};

// The rows of a matrix at its place.
template <class T>
struct RowView {
  T* data = nullptr;
  size_t stride = 0;

  RowView() = default;
  template <class U>
  requires std::is_convertible_v<U*, T*> RowView(const MatrixSpan<U>& m)
      : data(m.data), stride(m.stride) {}

  NUMSIM_INLINE T* Row(size_t row) const { return data + row * stride; }
};

}  // namespace numsim
