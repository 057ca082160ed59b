#include "numsim/cast/cast.h"

#include <bit>
#include <vector>

#include "numsim/backend/backend.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/cast/internal/cast_offload.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/cast_simd.h"
#include "numsim/cast/shared/round_f64.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

// Chunks of a parallel loop start at multiples of this, so that each begins with a whole tile of
// random words.
constexpr size_t kGrain = size_t{1} << 14;

// Decoded arrays of at least 64 MiB are written past the caches, which are smaller on most machines.
constexpr size_t kStreamedElements = size_t{1} << 24;

template <typename Code>
void CheckEncode(const EncodePlan& plan, size_t in, size_t codes) {
  RequireSize(codes, in, "Encode", "codes");
  RequireCodeBytes(sizeof(Code), plan.format.Bits(), "Encode", "codes");
}

template <typename Code>
void EncodeOneThread(
    const EncodePlan& plan, const float* in, size_t n, Code* codes, const ArrayRandom& random) {
  if (!UsesScalarReference() && EncodesInVectors(plan)) {
    return EncodeSimd(plan, in, n, codes, random);
  }
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(in[i]);
    codes[i] = static_cast<Code>(EncodeF32(plan, bits, Draw(plan, random, i)));
  }
}

template <typename Code>
void EncodeArray(const EncodePlan& plan,
                 std::span<const float> in,
                 std::span<Code> codes,
                 const ArrayRandom& random) {
  CheckEncode<Code>(plan, in.size(), codes.size());
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (UsesDevice()) return EncodeOnDevice(plan, in, codes, random);
  }
  ParallelFor(in.size(), kGrain, [&](size_t begin, size_t end) {
    EncodeOneThread(
        plan, in.data() + begin, end - begin, codes.data() + begin, Advance(random, begin));
  });
}

template <typename Code>
void EncodeF64Array(const EncodePlan& plan,
                    std::span<const double> in,
                    std::span<Code> codes,
                    const ArrayRandom& random) {
  CheckEncode<Code>(plan, in.size(), codes.size());
  ParallelFor(in.size(), kGrain, [&](size_t begin, size_t end) {
    EncodeF64Serial(
        plan, in.data() + begin, end - begin, codes.data() + begin, Advance(random, begin));
  });
}

// Decodes float32 codes. They are their own values, except that Decode drops NaN payloads.
template <typename Code>
void DecodeF32(const Code* codes, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) {
    const uint32_t code = codes[i];
    const bool is_nan = (code & 0x7FFFFFFFu) > 0x7F800000u;
    out[i] = std::bit_cast<float>(is_nan ? (code & 0x80000000u) | 0x7FC00000u : code);
  }
}

template <typename Code>
void DecodeOneThread(
    const FormatSpec& format, const Code* codes, size_t n, float* out, Stores stores) {
  if constexpr (sizeof(Code) <= 2) {
    if (!UsesScalarReference() && DecodesInVectors(format)) {
      return DecodeSimd(format, codes, n, out, stores);
    }
  }
  if (format == kFp32) return DecodeF32(codes, n, out);
  // With a table, decoding up to 8 bits is one load. Building it pays off for enough elements.
  if (format.Bits() <= 8 && n > 512) {
    const std::vector<float> table = DecodeTable(format);
    for (size_t i = 0; i < n; ++i) out[i] = table[codes[i] & format.CodeMask()];
    return;
  }
  for (size_t i = 0; i < n; ++i) out[i] = Decode(format, codes[i] & format.CodeMask());
}

template <typename Code>
void DecodeArray(const FormatSpec& format, std::span<const Code> codes, std::span<float> out) {
  RequireSize(out.size(), codes.size(), "Decode", "out");
  RequireCodeBytes(sizeof(Code), format.Bits(), "Decode", "codes");
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (UsesDevice()) return DecodeOnDevice(format, codes, out);
  }
  const Stores stores = out.size() < kStreamedElements ? Stores::kCached : Stores::kStreaming;
  ParallelFor(codes.size(), kGrain, [&](size_t begin, size_t end) {
    DecodeOneThread(format, codes.data() + begin, end - begin, out.data() + begin, stores);
  });
}

}  // namespace

void Encode(const EncodePlan& plan,
            std::span<const float> in,
            std::span<uint8_t> codes,
            const ArrayRandom& random) {
  EncodeArray(plan, in, codes, random);
}

void Encode(const EncodePlan& plan,
            std::span<const float> in,
            std::span<uint16_t> codes,
            const ArrayRandom& random) {
  EncodeArray(plan, in, codes, random);
}

void Encode(const EncodePlan& plan,
            std::span<const float> in,
            std::span<uint32_t> codes,
            const ArrayRandom& random) {
  EncodeArray(plan, in, codes, random);
}

void Encode(const EncodePlan& plan,
            std::span<const double> in,
            std::span<uint8_t> codes,
            const ArrayRandom& random) {
  EncodeF64Array(plan, in, codes, random);
}

void Encode(const EncodePlan& plan,
            std::span<const double> in,
            std::span<uint16_t> codes,
            const ArrayRandom& random) {
  EncodeF64Array(plan, in, codes, random);
}

void Encode(const EncodePlan& plan,
            std::span<const double> in,
            std::span<uint32_t> codes,
            const ArrayRandom& random) {
  EncodeF64Array(plan, in, codes, random);
}

void Decode(const FormatSpec& format, std::span<const uint8_t> codes, std::span<float> out) {
  DecodeArray(format, codes, out);
}

void Decode(const FormatSpec& format, std::span<const uint16_t> codes, std::span<float> out) {
  DecodeArray(format, codes, out);
}

void Decode(const FormatSpec& format, std::span<const uint32_t> codes, std::span<float> out) {
  DecodeArray(format, codes, out);
}

void EncodeSerial(const EncodePlan& plan,
                  const float* in,
                  size_t n,
                  uint8_t* codes,
                  const ArrayRandom& random) noexcept {
  EncodeOneThread(plan, in, n, codes, random);
}

void EncodeSerial(const EncodePlan& plan,
                  const float* in,
                  size_t n,
                  uint16_t* codes,
                  const ArrayRandom& random) noexcept {
  EncodeOneThread(plan, in, n, codes, random);
}

void EncodeSerial(const EncodePlan& plan,
                  const float* in,
                  size_t n,
                  uint32_t* codes,
                  const ArrayRandom& random) noexcept {
  EncodeOneThread(plan, in, n, codes, random);
}

void DecodeSerial(const FormatSpec& format, const uint8_t* codes, size_t n, float* out) noexcept {
  DecodeOneThread(format, codes, n, out, Stores::kCached);
}

void DecodeSerial(const FormatSpec& format, const uint16_t* codes, size_t n, float* out) noexcept {
  DecodeOneThread(format, codes, n, out, Stores::kCached);
}

void DecodeSerial(const FormatSpec& format, const uint32_t* codes, size_t n, float* out) noexcept {
  DecodeOneThread(format, codes, n, out, Stores::kCached);
}

void FakeQuantizeSerial(const EncodePlan& plan,
                        const float* in,
                        size_t n,
                        float* out,
                        const ArrayRandom& random) noexcept {
  if (!UsesScalarReference() && EncodesInVectors(plan) && DecodesInVectors(plan.format)) {
    return FakeQuantizeSimd(plan, in, n, out, random);
  }
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(in[i]);
    out[i] = Decode(plan.format, EncodeF32(plan, bits, Draw(plan, random, i)));
  }
}

void FakeQuantize(const EncodePlan& plan,
                  std::span<const float> in,
                  std::span<float> out,
                  const ArrayRandom& random) {
  RequireSize(out.size(), in.size(), "FakeQuantize", "out");
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (UsesDevice()) return FakeQuantizeOnDevice(plan, in, out, random);
  }
  ParallelFor(in.size(), kGrain, [&](size_t begin, size_t end) {
    FakeQuantizeSerial(
        plan, in.data() + begin, end - begin, out.data() + begin, Advance(random, begin));
  });
}

void RandomBitsArray(const ArrayRandom& random, int bits, std::span<uint32_t> out) {
  NUMSIM_REQUIRE(
      bits >= 1 && bits <= 32, "RandomBitsArray: {} random bits, expected 1 to 32", bits);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (UsesDevice()) return RandomBitsArrayOnDevice(random, bits, out);
  }
  ParallelFor(out.size(), kGrain, [&](size_t begin, size_t end) {
    if (!UsesScalarReference()) {
      return RandomBitsSimd(Advance(random, begin), bits, end - begin, out.data() + begin);
    }
    for (size_t i = begin; i < end; ++i) {
      out[i] = RandomBits(random.stream, random.first_index + i, bits);
    }
  });
}

}  // namespace numsim
