// The factors of gemm_problem.h on the device, and what products of them give there.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <ostream>
#include <string>
#include <vector>

#include "numsim/backend/device_context.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_device.h"
#include "tests/support/gemm_problem.h"

namespace numsim {

// A pair of formats under an accumulation mode, by name.
struct NamedProduct {
  const char* a;
  const char* b;
  const char* mode;

  FormatSpec FormatA() const { return ParseFormat(a).spec; }
  FormatSpec FormatB() const { return ParseFormat(b).spec; }
  AccumulationMode Rule() const { return ParseAccumulationMode(mode); }
};
inline void PrintTo(const NamedProduct& p, std::ostream* os) {
  *os << p.a << " " << p.b << " " << p.mode;
}

// Copies of codes and scales. `offset`: elements before the codes, so that they are not aligned.
class DeviceFactor {
 public:
  DeviceFactor(const Factor& factor, bool transposed, size_t offset = 0) {
    Factor stored = factor;
    stored.Store(Storage::kCodes, transposed);
    operand_ = stored.Get();
    Move(operand_.codes8, offset, codes8_);
    Move(operand_.codes16, offset, codes16_);
    Move(operand_.scales.data, 0, scales_);
  }

  const GemmOperand& Get() const { return operand_; }

 private:
  template <typename T>
  static void Move(MatrixSpan<const T>& view, size_t offset, Buffer<T>& memory) {
    if (view.data == nullptr) return;
    memory = Buffer<T>(ThreadPlace(), offset + view.Elements());
    const MatrixSpan<T> there = memory.View().Columns(offset, view.Elements());
    CopyMatrix<T>(view, there);
    view = there;
  }

  Buffer<uint8_t> codes8_;
  Buffer<uint16_t> codes16_;
  Buffer<float> scales_;
  GemmOperand operand_;
};

enum class ScalesFor { kNone, kTensor, kRows };
inline constexpr ScalesFor kScalesFor[] = {ScalesFor::kNone, ScalesFor::kTensor, ScalesFor::kRows};

// Scales of all 24 bits and both signs, 2^-7 .. 2^8; one of the rows' is 0.
inline void PutScales(Factor& factor, ScalesFor kind, oracle::TestRandom& random) {
  if (kind == ScalesFor::kNone) return factor.SetScales({}, {});
  std::vector<float> scales(kind == ScalesFor::kTensor ? 1 : factor.rows());
  for (float& x : scales) {
    const double sign = random.Below(4) == 0 ? -1 : 1;
    const int exponent = static_cast<int>(random.Below(16)) - 7;
    x = static_cast<float>(sign * std::ldexp(1 + UnitRandom(random), exponent));
  }
  if (scales.size() > 3) scales[2] = 0;
  factor.SetScales(std::move(scales), {.row_stride = kind == ScalesFor::kTensor ? 0u : 1u});
}

// The code of bf16 that stands for every NaN in comparisons.
inline constexpr uint16_t kAnyNan = 0x7FC0;

// The bits of the elements in memory.
inline std::vector<uint32_t> StoredBits(ConstFloatSpan matrix) {
  if (matrix.IsBf16Memory()) {
    const std::vector<uint16_t> codes = ToVector(matrix.Bf16());
    return {codes.begin(), codes.end()};
  }
  std::vector<uint32_t> bits;
  for (const float x : ToVector(matrix)) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

// The product of the device as bits of its elements; NaN of bf16 are kAnyNan.
inline std::vector<uint32_t> DeviceProduct(const GemmOperand& a,
                                           const GemmOperand& b,
                                           const AccumulationMode& mode,
                                           Element element,
                                           DeviceGemmEngine engine,
                                           size_t offset = 0) {
  const Place place = ThreadPlace();
  const size_t n = a.rows * b.rows, bytes = BytesOf(element, place);
  constexpr size_t kBehind = 64;
  constexpr uint8_t kCanary = 0xA5;
  Buffer<uint8_t> memory(place, (offset + n + kBehind) * bytes);
  uint8_t* const begin = memory.View().data;
  device_memory::FillBytes(begin, kCanary, memory.View().Bytes(), place.Stream());
  const FloatSpan out(begin + offset * bytes, {a.rows, b.rows}, place, element);
  Gemm(a, b, mode, out, engine);
  const std::vector<uint8_t> all = ToVector(memory.View());
  for (size_t i = 0; i < all.size(); ++i) {
    if (i >= offset * bytes && i < (offset + n) * bytes) continue;
    if (all[i] == kCanary) continue;
    ADD_FAILURE() << "byte " << i << " beside the result was written";
    break;
  }
  std::vector<uint32_t> bits = StoredBits(out);
  for (uint32_t& x : bits) {
    if (element == Element::kBfloat16 && (x & 0x7FFFu) > 0x7F80u) x = kAnyNan;
  }
  return bits;
}

inline std::vector<uint32_t> BitsOf(const std::vector<float>& values, Element element) {
  std::vector<uint32_t> bits(values.size());
  if (element == Element::kFloat32) {
    std::memcpy(bits.data(), values.data(), 4 * values.size());
    return bits;
  }
  std::vector<uint16_t> codes(values.size());
  Encode(MakeEncodePlan(kBf16, Rounding{}, Overflow::kNonsaturate), values, std::span(codes));
  for (size_t i = 0; i < values.size(); ++i) {
    bits[i] = std::isnan(values[i]) ? kAnyNan : codes[i];
  }
  return bits;
}

// The product by the processor.
inline std::vector<float> HostProduct(const Factor& a,
                                      const Factor& b,
                                      const AccumulationMode& mode) {
  Factor left = a, right = b;
  left.Store(Storage::kCodes, false);
  right.Store(Storage::kCodes, false);
  std::vector<float> out(a.rows() * b.rows());
  Gemm(left.Get(), right.Get(), mode, out);
  return out;
}

inline testing::AssertionResult SameBits(const std::vector<uint32_t>& got,
                                         const std::vector<uint32_t>& want,
                                         size_t columns) {
  size_t different = 0;
  std::string first;
  for (size_t i = 0; i < want.size(); ++i) {
    if (got[i] == want[i] || different++ > 0) continue;
    first = fmt::format("({}, {}) is {:#x}, not {:#x}", i / columns, i % columns, got[i], want[i]);
  }
  if (different == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << different << " of " << want.size() << ": " << first;
}

}  // namespace numsim
