// A tensor core as seen from outside: a function that multiplies small matrices. A probe
// (mma_probe.h) calls it.
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
  // Inner dimensions must be multiples of inner_step and at most inner_most.
  size_t inner_step = 1;
  size_t inner_most = 512;
  // Sets out[i * kProbeRows + j] to the float32 that the tensor core computes for the sum over k of
  // a(i, k) b(j, k). Both operands are kProbeRows x inner, row-major; their float32 values are
  // values of the formats. May throw Error.
  std::function<void(
      std::span<const float> a, std::span<const float> b, size_t inner, std::span<float> out)>
      multiply;
};

inline constexpr size_t kProbeRows = 16;

// Returns a tensor core that is simulated in an accumulation mode other than library.
TensorCore SimulatedUnit(const AccumulationMode& mode, const FormatSpec& a, const FormatSpec& b);

// Operands of one matmul, both kProbeRows x inner.
struct ProbeBlock {
  std::string kind;     // kind of operands: one of ProbeKinds(), or "crafted"
  bool paired = false;  // only dot products of row i of a and row i of b count
  size_t inner = 0;
  std::vector<float> a, b;

  // Number of dot products in the block that count.
  size_t Dots() const { return paired ? kProbeRows : kProbeRows * kProbeRows; }
  // Rows of a and of b that dot product d multiplies.
  size_t RowA(size_t d) const { return paired ? d : d / kProbeRows; }
  size_t RowB(size_t d) const { return paired ? d : d % kProbeRows; }
  std::span<const float> A(size_t d) const { return std::span(a).subspan(RowA(d) * inner, inner); }
  std::span<const float> B(size_t d) const { return std::span(b).subspan(RowB(d) * inner, inner); }
};

// A block and the results of the tensor core.
struct ProbeAnswer {
  ProbeBlock block;
  std::vector<float> out;

  // Result of dot product d.
  float Out(size_t d) const { return out[block.RowA(d) * kProbeRows + block.RowB(d)]; }
};
// Multiplies the operands of `block` on `unit`.
ProbeAnswer Ask(const TensorCore& unit, ProbeBlock block);

// Returns the kinds of random operands that make sense for the formats: "normal", "spread" (2^-8 ..
// 2^8), "cancelling" (pairs of products that cancel), "codes" (any finite code), "tiny" (products
// near the smallest float32; only wide formats) and "special" (infinities and NaN, if the formats
// have them).
std::vector<std::string> ProbeKinds(const FormatSpec& a, const FormatSpec& b);

// Returns block number `index` of random operands of a kind. A pure function of its arguments.
ProbeBlock RandomBlock(const std::string& kind,
                       const FormatSpec& a,
                       const FormatSpec& b,
                       size_t inner,
                       uint64_t index);

// The tensor cores of the device: each tensor core instruction, and GEMMs of the device's library.
// Calls run on the calling thread's stream and wait for the result. Built only with CUDA.

struct DeviceUnit {
  TensorCore unit;
  std::string unavailable;  // reason why the unit cannot be used here; empty if it can
};

// Returns every unit that this version knows. Requires DeviceAvailable().
std::vector<DeviceUnit> DeviceUnits();

}  // namespace numsim
