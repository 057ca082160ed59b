// A unit that multiplies matrices, seen from outside: what a probe asks (mma_probe.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/format_spec.h"

namespace numsim {

struct TensorCore {
  std::string name;
  FormatSpec a, b;  // formats of the operands
  // Inner dimensions are multiples of this and at most inner_most.
  size_t inner_step = 1;
  size_t inner_most = 512;
  // out[i * rows + j] = the float32 that the unit gives for sum over k of a(i, k) b(j, k). Both are
  // rows x inner, row-major, float32 values on the grids of the formats; rows is kProbeRows. May
  // throw Error.
  std::function<void(
      std::span<const float> a, std::span<const float> b, size_t inner, std::span<float> out)>
      multiply;
};

inline constexpr size_t kProbeRows = 16;

// A unit that follows `rule`. Requires any rule but library.
TensorCore SimulatedUnit(const AccumulationMode& rule, const FormatSpec& a, const FormatSpec& b);

// Operands of one product, both kProbeRows x inner.
struct ProbeBlock {
  std::string kind;     // what the operands are like
  bool paired = false;  // row i of a is meant for row i of b alone
  size_t inner = 0;
  std::vector<float> a, b;

  // Dot products in it that count.
  size_t Dots() const { return paired ? kProbeRows : kProbeRows * kProbeRows; }
  // Rows (of a, of b) of dot product d.
  size_t RowA(size_t d) const { return paired ? d : d / kProbeRows; }
  size_t RowB(size_t d) const { return paired ? d : d % kProbeRows; }
  std::span<const float> A(size_t d) const { return std::span(a).subspan(RowA(d) * inner, inner); }
  std::span<const float> B(size_t d) const { return std::span(b).subspan(RowB(d) * inner, inner); }
};

// A block with what the unit gave.
struct ProbeAnswer {
  ProbeBlock block;
  std::vector<float> out;

  float Out(size_t d) const { return out[block.RowA(d) * kProbeRows + block.RowB(d)]; }
};
ProbeAnswer Ask(const TensorCore& unit, ProbeBlock block);

// The kinds of random operands that make sense for the formats: "normal", "spread" (2^-8 .. 2^8),
// "cancelling" (pairs of products that cancel), "codes" (any finite code), "tiny" (products near
// the least float32, wide formats alone) and "special" (infinities and NaN, where there are any).
std::vector<std::string> ProbeKinds(const FormatSpec& a, const FormatSpec& b);

// Block `index` of that kind, a pure function of the arguments.
ProbeBlock RandomBlock(const std::string& kind,
                       const FormatSpec& a,
                       const FormatSpec& b,
                       size_t inner,
                       uint64_t index);

// The units of the device as a probe asks them (tensor_core.h): its instructions one at a time, and
// the products of its library. Calls run on the calling thread's stream and wait. Built only with
// CUDA.

struct DeviceUnit {
  TensorCore unit;
  std::string unavailable;  // why it cannot be asked here; empty if it can
};

// Every unit that this version knows. Requires DeviceAvailable().
std::vector<DeviceUnit> DeviceUnits();

}  // namespace numsim
