#include "numsim/cast/cast.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "numsim/backend/backend.h"
#include "numsim/backend/shared/offload.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/cast/internal/cast_device.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/cast_simd.h"
#include "numsim/cast/shared/round_f64.h"
#include "numsim/cast/shared/table_cast_simd.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/formats/value_table.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

// Chunks of a parallel loop start at multiples of this, so that each begins with a whole tile of
// random words.
constexpr size_t kGrain = size_t{1} << 14;

// Decoded arrays of at least 64 MiB are written past the caches, which are smaller on most machines.
constexpr size_t kStreamedElements = size_t{1} << 24;

// Returns the place of arrays of equal sizes.
template <typename In, typename Out>
Place CheckArrays(const MatrixSpan<In>& in,
                  const MatrixSpan<Out>& out,
                  const char* function,
                  const char* name) {
  RequireSize(out.Elements(), in.Elements(), function, name);
  NUMSIM_REQUIRE(in.Contiguous() && out.Contiguous(),
                 "{}: a stride of {} and {}, expected {} and {}",
                 function,
                 in.stride,
                 out.stride,
                 in.cols,
                 out.cols);
  return OnePlace(function, {in.place, out.place});
}

template <typename In, typename Code>
Place CheckEncode(const EncodePlan& plan, const MatrixSpan<In>& in, const MatrixSpan<Code>& codes) {
  RequireCodeBytes(sizeof(Code), plan.format.Bits(), "Encode", "codes");
  return CheckArrays(in, codes, "Encode", "codes");
}

// The largest number of elements on the device at a time.
constexpr size_t kChunk = size_t{1} << 26;

// Calls run(begin, from, to) for consecutive chunks of host arrays, with copies of them on the
// device. `in` is empty if the results depend on nothing.
template <typename In, typename Out, typename Body>
void InChunks(const MatrixSpan<const In>& in, const MatrixSpan<Out>& out, const Body& run) {
  const size_t n = out.Elements();
  const MatrixSpan<Out> results = out.As(1, n);
  for (size_t begin = 0; begin < n; begin += kChunk) {
    const size_t count = std::min(kChunk, n - begin);
    OffloadedCall call;
    MatrixSpan<const In> from({}, {}, call.place());
    if (!in.Empty()) from = call.In(in.As(1, n).Columns(begin, count));
    const MatrixSpan<Out> to = call.template Room<Out>({1, count});
    run(begin, from, to);
    call.Out(to, results.Columns(begin, count));
  }
}

// Returns whether a call with arrays of the host runs on the device. Tables of values have no kernel
// there.
[[maybe_unused]] bool GoesToDevice(const FormatSpec& format) {
  return UsesDevice() && !format.IsTable();
}

template <typename Code>
void EncodeOneThread(
    const EncodePlan& plan, const float* in, size_t n, Code* codes, const ArrayRandom& random) {
  if (!UsesScalarReference() && EncodesInVectors(plan)) {
    return EncodeSimd(plan, in, n, codes, random);
  }
  if constexpr (sizeof(Code) == 1) {
    if (!UsesScalarReference() && plan.format.IsTable()) {
      return EncodeInTable(plan, in, n, codes, random);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(in[i]);
    codes[i] = static_cast<Code>(EncodeF32(plan, bits, Draw(plan, random, i)));
  }
}

template <typename Code>
void EncodeArray(const EncodePlan& plan,
                 const MatrixSpan<const float>& in,
                 const MatrixSpan<Code>& codes,
                 const ArrayRandom& random) {
  const Place place = CheckEncode(plan, in, codes);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) {
      RefuseTable(plan.format, "a device");
      return cuda::Encode(plan, in, codes, random);
    }
    if (GoesToDevice(plan.format)) {
      return InChunks(in, codes, [&](size_t begin, auto from, auto to) {
        cuda::Encode(plan, from, to, Advance(random, begin));
      });
    }
  }
  ParallelFor(in.Elements(), kGrain, [&](size_t begin, size_t end) {
    EncodeOneThread(plan, in.data + begin, end - begin, codes.data + begin, Advance(random, begin));
  });
}

template <typename Code>
void EncodeF64Array(const EncodePlan& plan,
                    const MatrixSpan<const double>& in,
                    const MatrixSpan<Code>& codes,
                    const ArrayRandom& random) {
  const Place place = CheckEncode(plan, in, codes);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) {
      RefuseTable(plan.format, "a device");
      return cuda::EncodeEach(plan, in, codes, random, {});
    }
  }
  ParallelFor(in.Elements(), kGrain, [&](size_t begin, size_t end) {
    EncodeF64Serial(plan, in.data + begin, end - begin, codes.data + begin, Advance(random, begin));
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
void DecodeArray(const FormatSpec& format,
                 const MatrixSpan<const Code>& codes,
                 const MatrixSpan<float>& out) {
  RequireCodeBytes(sizeof(Code), format.Bits(), "Decode", "codes");
  const Place place = CheckArrays(codes, out, "Decode", "out");
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) {
      RefuseTable(format, "a device");
      return cuda::Decode(format, codes, out);
    }
    if (GoesToDevice(format)) {
      return InChunks(
          codes, out, [&](size_t, auto from, auto to) { cuda::Decode(format, from, to); });
    }
  }
  const Stores stores = out.Elements() < kStreamedElements ? Stores::kCached : Stores::kStreaming;
  ParallelFor(codes.Elements(), kGrain, [&](size_t begin, size_t end) {
    DecodeOneThread(format, codes.data + begin, end - begin, out.data + begin, stores);
  });
}

// Encodes block by block and decodes from the table.
void FakeQuantizeInTable(
    const EncodePlan& plan, const float* in, size_t n, float* out, const ArrayRandom& random) {
  constexpr size_t kPiece = 1024;
  const std::vector<float>& values = TableOf(plan.format).by_code;
  uint8_t codes[kPiece];
  for (size_t at = 0; at < n; at += kPiece) {
    const size_t count = std::min(kPiece, n - at);
    EncodeInTable(plan, in + at, count, codes, Advance(random, at));
    for (size_t i = 0; i < count; ++i) out[at + i] = values[codes[i]];
  }
}

uint32_t EncodeOne(const EncodePlan& plan, float x, uint32_t random) {
  return EncodeF32(plan, std::bit_cast<uint32_t>(x), random);
}
uint32_t EncodeOne(const EncodePlan& plan, double x, uint32_t random) {
  return EncodeF64(plan, std::bit_cast<uint64_t>(x), random);
}

// Calls store(i, the code of in[i] under words[i]) for each element.
template <typename Float, typename Store>
void EachWithBits(const EncodePlan& plan,
                  const MatrixSpan<const Float>& in,
                  const MatrixSpan<const uint32_t>& words,
                  const Store& store) {
  ParallelFor(in.Elements(), 1 << 12, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) store(i, EncodeOne(plan, in.data[i], words.data[i]));
  });
}

}  // namespace

void Encode(const EncodePlan& plan,
            const MatrixSpan<const float>& in,
            const MatrixSpan<uint8_t>& codes,
            const ArrayRandom& random) {
  EncodeArray(plan, in, codes, random);
}

void Encode(const EncodePlan& plan,
            const MatrixSpan<const float>& in,
            const MatrixSpan<uint16_t>& codes,
            const ArrayRandom& random) {
  EncodeArray(plan, in, codes, random);
}

void Encode(const EncodePlan& plan,
            const MatrixSpan<const float>& in,
            const MatrixSpan<uint32_t>& codes,
            const ArrayRandom& random) {
  EncodeArray(plan, in, codes, random);
}

void Encode(const EncodePlan& plan,
            const MatrixSpan<const double>& in,
            const MatrixSpan<uint8_t>& codes,
            const ArrayRandom& random) {
  EncodeF64Array(plan, in, codes, random);
}

void Encode(const EncodePlan& plan,
            const MatrixSpan<const double>& in,
            const MatrixSpan<uint16_t>& codes,
            const ArrayRandom& random) {
  EncodeF64Array(plan, in, codes, random);
}

void Encode(const EncodePlan& plan,
            const MatrixSpan<const double>& in,
            const MatrixSpan<uint32_t>& codes,
            const ArrayRandom& random) {
  EncodeF64Array(plan, in, codes, random);
}

void Decode(const FormatSpec& format,
            const MatrixSpan<const uint8_t>& codes,
            const MatrixSpan<float>& out) {
  DecodeArray(format, codes, out);
}

void Decode(const FormatSpec& format,
            const MatrixSpan<const uint16_t>& codes,
            const MatrixSpan<float>& out) {
  DecodeArray(format, codes, out);
}

void Decode(const FormatSpec& format,
            const MatrixSpan<const uint32_t>& codes,
            const MatrixSpan<float>& out) {
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
  if (!UsesScalarReference() && plan.format.IsTable()) {
    return FakeQuantizeInTable(plan, in, n, out, random);
  }
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(in[i]);
    out[i] = Decode(plan.format, EncodeF32(plan, bits, Draw(plan, random, i)));
  }
}

void FakeQuantize(const EncodePlan& plan,
                  const MatrixSpan<const float>& in,
                  const MatrixSpan<float>& out,
                  const ArrayRandom& random) {
  const Place place = CheckArrays(in, out, "FakeQuantize", "out");
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) {
      RefuseTable(plan.format, "a device");
      return cuda::FakeQuantize(plan, in, out, random);
    }
    if (GoesToDevice(plan.format)) {
      return InChunks(in, out, [&](size_t begin, auto from, auto to) {
        cuda::FakeQuantize(plan, from, to, Advance(random, begin));
      });
    }
  }
  ParallelFor(in.Elements(), kGrain, [&](size_t begin, size_t end) {
    FakeQuantizeSerial(
        plan, in.data + begin, end - begin, out.data + begin, Advance(random, begin));
  });
}

void FakeQuantize(const EncodePlan& plan,
                  const MatrixSpan<const double>& in,
                  const MatrixSpan<double>& out,
                  const ArrayRandom& random) {
  const Place place = CheckArrays(in, out, "FakeQuantize", "out");
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) {
      RefuseTable(plan.format, "a device");
      return cuda::RoundEach(plan, in, out, random, {});
    }
  }
  constexpr size_t kPiece = 512;  // codes of a piece are on the stack
  ParallelFor(in.Elements(), kGrain, [&](size_t begin, size_t end) {
    uint32_t codes[kPiece];
    for (size_t at = begin; at < end; at += kPiece) {
      const size_t n = std::min(kPiece, end - at);
      EncodeF64Serial(plan, in.data + at, n, codes, Advance(random, at));
      for (size_t i = 0; i < n; ++i) {
        out.data[at + i] = Decode(plan.format, codes[i] & plan.format.CodeMask());
      }
    }
  });
}

template <typename Float, typename Code>
void EncodeWithBits(const EncodePlan& plan,
                    const MatrixSpan<const Float>& in,
                    const MatrixSpan<Code>& codes,
                    const MatrixSpan<const uint32_t>& words) {
  const Place place = CheckEncode(plan, in, codes);
  OnePlace("EncodeWithBits", {place, CheckArrays(in, words, "EncodeWithBits", "words")});
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) {
      RefuseTable(plan.format, "a device");
      return cuda::EncodeEach(plan, in, codes, {}, words);
    }
  }
  EachWithBits(
      plan, in, words, [&](size_t i, uint32_t code) { codes.data[i] = static_cast<Code>(code); });
}

template <typename Float>
void FakeQuantizeWithBits(const EncodePlan& plan,
                          const MatrixSpan<const Float>& in,
                          const MatrixSpan<Float>& out,
                          const MatrixSpan<const uint32_t>& words) {
  const Place place = CheckArrays(in, out, "FakeQuantizeWithBits", "out");
  OnePlace("FakeQuantizeWithBits",
           {place, CheckArrays(in, words, "FakeQuantizeWithBits", "words")});
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) {
      RefuseTable(plan.format, "a device");
      return cuda::RoundEach(plan, in, out, {}, words);
    }
  }
  EachWithBits(plan, in, words, [&](size_t i, uint32_t code) {
    out.data[i] = Decode(plan.format, code & plan.format.CodeMask());
  });
}

#define NUMSIM_INSTANTIATE_CODE(Float, Code)                                \
  template void EncodeWithBits<Float, Code>(const EncodePlan&,              \
                                            const MatrixSpan<const Float>&, \
                                            const MatrixSpan<Code>&,        \
                                            const MatrixSpan<const uint32_t>&);
#define NUMSIM_INSTANTIATE(Float)                                           \
  NUMSIM_INSTANTIATE_CODE(Float, uint8_t)                                   \
  NUMSIM_INSTANTIATE_CODE(Float, uint16_t)                                  \
  NUMSIM_INSTANTIATE_CODE(Float, uint32_t)                                  \
  template void FakeQuantizeWithBits<Float>(const EncodePlan&,              \
                                            const MatrixSpan<const Float>&, \
                                            const MatrixSpan<Float>&,       \
                                            const MatrixSpan<const uint32_t>&);
NUMSIM_INSTANTIATE(float)
NUMSIM_INSTANTIATE(double)
#undef NUMSIM_INSTANTIATE
#undef NUMSIM_INSTANTIATE_CODE

void RandomBitsArray(const ArrayRandom& random, int bits, const MatrixSpan<uint32_t>& out) {
  NUMSIM_REQUIRE(
      bits >= 1 && bits <= 32, "RandomBitsArray: {} random bits, expected 1 to 32", bits);
  NUMSIM_REQUIRE(
      out.Contiguous(), "RandomBitsArray: a stride of {}, expected {}", out.stride, out.cols);
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!out.place.IsHost()) return cuda::RandomBitsArray(random, bits, out);
    if (UsesDevice()) {
      return InChunks(MatrixSpan<const uint32_t>(), out, [&](size_t begin, auto, auto to) {
        cuda::RandomBitsArray(Advance(random, begin), bits, to);
      });
    }
  }
  ParallelFor(out.Elements(), kGrain, [&](size_t begin, size_t end) {
    if (!UsesScalarReference()) {
      return RandomBitsSimd(Advance(random, begin), bits, end - begin, out.data + begin);
    }
    for (size_t i = begin; i < end; ++i) {
      out.data[i] = RandomBits(random.stream, random.first_index + i, bits);
    }
  });
}

}  // namespace numsim
