// The scaling of an epilogue with each float32 rounding written out, as the tests of epilogues expect it.
#pragma once

#include "numsim/gemm/epilogue.h"

namespace numsim {

// Returns the sum of a result times the scales of its row and column. Under kCublasLt the operands have
// a scale per row.
inline float ScaledByHand(float sum, float a, float b, Epilogue epilogue) {
  const volatile float left = a, right = b;
  volatile float first = 0;
  switch (epilogue) {
    case Epilogue::kFloat64:
      return static_cast<float>(static_cast<double>(sum) * (static_cast<double>(a) * b));
    case Epilogue::kFloat32Product:
      first = left * right;
      return sum * first;
    case Epilogue::kFloat32LeftFirst:
      first = sum * left;
      return first * right;
    default:
      first = sum * right;
      return first * left;
  }
}

}  // namespace numsim
