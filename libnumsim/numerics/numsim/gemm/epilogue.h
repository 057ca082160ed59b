// GEMMs whose sums are scaled and stored as devices do, which differs from numsim's own store.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "numsim/gemm/gemm.h"

namespace numsim {

// The order in which a sum S is multiplied by the scales sa and sb of its row and column.
enum class Epilogue : uint8_t {
  kFloat64,            // fl32(fl64(S * (sa * sb))), numsim's own: see Gemm()
  kFloat32Product,     // fl32(S * fl32(sa * sb))
  kFloat32LeftFirst,   // fl32(fl32(S * sa) * sb)
  kFloat32RightFirst,  // fl32(fl32(S * sb) * sa)
  // As cuBLASLt on an H200 (docs/results.md): with one scale per operand kFloat32Product, and then
  // + 0, so that a zero is +0; otherwise kFloat32RightFirst.
  kCublasLt,
};

// Converts between an epilogue and its name: float64, float32:ab, float32:a,b, float32:b,a,
// cublaslt. Parsing throws Error, listing the names, for any other text.
std::string_view ToString(Epilogue epilogue);
Epilogue ParseEpilogue(std::string_view text);
// Returns the formula, for people.
std::string_view DefinitionText(Epilogue epilogue);

// Computes Gemm(a, b, mode, out) on the host with another store: S is the sum as a float32 (rounded
// once, under the modes whose sums have more bits), and t is what the epilogue makes of it. With
// several segments, out is the float32 sum of their t, in order, from the first. Requires and throws
// what Gemm does.
void Gemm(const GemmOperand& a,
          const GemmOperand& b,
          const AccumulationMode& mode,
          Epilogue epilogue,
          std::span<float> out);

}  // namespace numsim
