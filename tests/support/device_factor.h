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
  DeviceFactor(const Factor& factor, bool transposed, DeviceStream& stream, size_t offset = 0) {
    Factor stored = factor;
    stored.Store(Storage::kCodes, transposed);
    const GemmOperand host = stored.Get();
    const size_t bytes = static_cast<size_t>(host.format.StorageBytes());
    const size_t n = host.rows * host.inner;
    codes_ = DeviceArray<uint8_t>((n + offset) * bytes);
    const void* const from = bytes == 1 ? static_cast<const void*>(host.codes8.data())
                                        : static_cast<const void*>(host.codes16.data());
    device_memory::CopyIn(from, codes_.data() + offset * bytes, n * bytes, stream);
    scales_ = OnDevice(host.scales.data, stream);
    stream.Wait();
    operand_.format = host.format;
    operand_.codes = codes_.data() + offset * bytes;
    operand_.rows = host.rows;
    operand_.inner = host.inner;
    operand_.transposed = transposed;
    operand_.scales = std::as_const(scales_).span();
  }

  const DeviceGemmOperand& Get() const { return operand_; }

 private:
  DeviceArray<uint8_t> codes_;
  DeviceArray<float> scales_;
  DeviceGemmOperand operand_;
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

// The product of the device as bits of its elements; NaN of bf16 are kAnyNan.
inline std::vector<uint32_t> DeviceProduct(const DeviceGemmOperand& a,
                                           const DeviceGemmOperand& b,
                                           const AccumulationMode& mode,
                                           Element element,
                                           DeviceGemmEngine engine,
                                           DeviceStream& stream,
                                           size_t offset = 0) {
  const size_t n = a.rows * b.rows, bytes = BytesOf(element);
  constexpr size_t kBehind = 64;
  constexpr uint8_t kCanary = 0xA5;
  DeviceArray<uint8_t> memory((offset + n + kBehind) * bytes);
  device_memory::FillBytes(memory.data(), kCanary, memory.size(), stream);
  Gemm(a,
       b,
       mode,
       FloatMatrix(memory.data() + offset * bytes, element, {a.rows, b.rows}, ThreadPlace()),
       engine);
  const std::vector<uint8_t> all = OnHost(std::as_const(memory).span(), stream);
  for (size_t i = 0; i < all.size(); ++i) {
    if (i >= offset * bytes && i < (offset + n) * bytes) continue;
    if (all[i] == kCanary) continue;
    ADD_FAILURE() << "byte " << i << " beside the result was written";
    break;
  }
  std::vector<uint32_t> bits(n);
  for (size_t i = 0; i < n; ++i) {
    std::memcpy(&bits[i], all.data() + (offset + i) * bytes, bytes);
    const bool nan16 = element == Element::kBfloat16 && (bits[i] & 0x7FFFu) > 0x7F80u;
    if (nan16) bits[i] = kAnyNan;
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
