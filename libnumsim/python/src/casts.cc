// Casts: arrays of float32 and float64 to codes, and back.
#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#include "libnumsim/python/src/bindings.h"
#include "numsim/base/parallel.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/decode.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/rounding_modes.h"
#include "numsim/rounding/unrounded.h"

namespace numsim::python {
namespace {

constexpr size_t kPiece = size_t{1} << 18;  // elements of a temporary array

// The caller's random bits, one word per element; empty: those of the stream.
using RandomWords = std::span<const uint32_t>;

uint32_t EncodeOne(const EncodePlan& plan, float x, uint32_t random) {
  return EncodeF32(plan, std::bit_cast<uint32_t>(x), random);
}
uint32_t EncodeOne(const EncodePlan& plan, double x, uint32_t random) {
  return EncodeF64(plan, std::bit_cast<uint64_t>(x), random);
}

void RequireSizes(size_t in, size_t out, RandomWords words) {
  if (in != out) throw Error::Format("expected {} elements in out, found {}", in, out);
  if (!words.empty() && words.size() != in) {
    throw Error::Format("random_bits: expected {} elements, found {}", in, words.size());
  }
}

// Writes the codes of `in` under the caller's random bits.
template <typename Float, typename Code>
void EncodeUnderWords(const EncodePlan& plan,
                      std::span<const Float> in,
                      std::span<Code> codes,
                      RandomWords words) {
  ParallelFor(in.size(), 1 << 12, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      codes[i] = static_cast<Code>(EncodeOne(plan, in[i], words[i]));
    }
  });
}

template <typename Float, typename Code>
void EncodeArray(const EncodePlan& plan,
                 std::span<const Float> in,
                 std::span<Code> codes,
                 const ArrayRandom& random,
                 RandomWords words) {
  if (plan.format.StorageBytes() != sizeof(Code)) RefuseType("encode");
  if (!words.empty()) {
    EncodeUnderWords(plan, in, codes, words);
  } else {
    Encode(plan, in, codes, random);
  }
}

// Writes the value that each number of `in` rounds to. `in` and `out` may be the same.
template <typename Float>
void RoundArray(const EncodePlan& plan,
                std::span<const Float> in,
                std::span<Float> out,
                const ArrayRandom& random,
                RandomWords words) {
  if constexpr (std::is_same_v<Float, float>) {
    if (words.empty()) return FakeQuantize(plan, in, out, random);
  }
  std::vector<uint32_t> codes(std::min(in.size(), kPiece));
  for (size_t begin = 0; begin < in.size(); begin += kPiece) {
    const size_t n = std::min(kPiece, in.size() - begin);
    const std::span<uint32_t> piece = std::span(codes).first(n);
    if (words.empty()) {
      if constexpr (std::is_same_v<Float, double>) {
        Encode(plan, in.subspan(begin, n), piece, {random.stream, random.first_index + begin});
      }
    } else {
      EncodeUnderWords(plan, in.subspan(begin, n), piece, words.subspan(begin, n));
    }
    ParallelFor(n, 1 << 12, [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) {
        out[begin + i] = Decode(plan.format, piece[i] & plan.format.CodeMask());
      }
    });
  }
}

// Numbers of Python that no float holds: the magnitude of each is significand * 2^exponent, exact or
// rounded to odd as in Unrounded, and the top bit of its word is the sign.
struct ExactNumbers {
  static constexpr int32_t kNan = 1 << 20, kInfinity = kNan - 1;  // in place of exponents
  static constexpr uint64_t kSign = uint64_t{1} << 63;

  std::span<const uint64_t> words;
  std::span<const int32_t> exponents;

  Unrounded operator[](size_t i) const {
    Unrounded x{.negative = (words[i] & kSign) != 0};
    if (exponents[i] == kNan) x.kind = NumberKind::kNan;
    if (exponents[i] == kInfinity) x.kind = NumberKind::kInfinity;
    if (x.kind != NumberKind::kFinite) return x;
    x.exponent = exponents[i];
    x.significand = words[i] & ~kSign;
    return x;
  }
};

template <typename Code>
void EncodeEachExact(const EncodePlan& plan,
                     const ExactNumbers& in,
                     std::span<Code> codes,
                     const ArrayRandom& random,
                     RandomWords words) {
  if (plan.format.StorageBytes() != sizeof(Code)) RefuseType("encode");
  const int bits = plan.rounding.mode == RoundingMode::kStochastic ? plan.rounding.random_bits : 0;
  ParallelFor(codes.size(), 1 << 10, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      uint32_t word = 0;
      if (bits > 0) {
        word = words.empty() ? RandomBits(random.stream, random.first_index + i, bits) : words[i];
      }
      codes[i] = static_cast<Code>(EncodeUnrounded(plan, in[i], word).code);
    }
  });
}

EncodePlan MakePlan(const FormatSpec& format,
                    std::string_view rounding,
                    std::string_view overflow,
                    int bits,
                    std::string_view variant) {
  const Rounding how{ParseRoundingMode(rounding), ParseStochasticVariant(variant), bits};
  return MakeEncodePlan(format, how, ParseOverflow(overflow));
}

RandomWords WordsOf(const std::optional<InputOf<uint32_t>>& words) {
  return words ? Elements(*words) : RandomWords();
}

void EncodeInto(const EncodePlan& plan,
                const Input& in,
                const Output& codes,
                const ArrayRandom& random,
                const std::optional<InputOf<uint32_t>>& random_bits) {
  const RandomWords words = WordsOf(random_bits);
  RequireSizes(in.size(), codes.size(), words);
  const bool single = in.dtype() == nb::dtype<float>();
  if (!single && in.dtype() != nb::dtype<double>()) RefuseType("encode");
  WithCodes("encode", codes, [&](auto out) {
    const ArrayCall call;
    if (single) {
      EncodeArray(plan, Elements<float>(in), out, random, words);
    } else {
      EncodeArray(plan, Elements<double>(in), out, random, words);
    }
  });
}

void EncodeExactInto(const EncodePlan& plan,
                     const InputOf<uint64_t>& words,
                     const InputOf<int32_t>& exponents,
                     const Output& codes,
                     const ArrayRandom& random,
                     const std::optional<InputOf<uint32_t>>& random_bits) {
  RequireSizes(words.size(), codes.size(), WordsOf(random_bits));
  RequireSizes(words.size(), exponents.size(), {});
  for (const int32_t exponent : Elements(exponents)) {
    if (exponent <= -ExactNumbers::kNan || exponent > ExactNumbers::kNan) {
      throw Error::Format("exponent {}, expected a magnitude below 2^20", exponent);
    }
  }
  WithCodes("encode", codes, [&](auto out) {
    const ArrayCall call;
    EncodeEachExact(
        plan, {Elements(words), Elements(exponents)}, out, random, WordsOf(random_bits));
  });
}

void RoundInto(const EncodePlan& plan,
               const Input& in,
               const Output& out,
               const ArrayRandom& random,
               const std::optional<InputOf<uint32_t>>& random_bits) {
  const RandomWords words = WordsOf(random_bits);
  RequireSizes(in.size(), out.size(), words);
  if (in.dtype() != out.dtype()) RefuseType("round");
  if (in.dtype() == nb::dtype<float>()) {
    const ArrayCall call;
    RoundArray(plan, Elements<float>(in), Elements<float>(out), random, words);
  } else if (in.dtype() == nb::dtype<double>()) {
    const ArrayCall call;
    RoundArray(plan, Elements<double>(in), Elements<double>(out), random, words);
  } else {
    RefuseType("round");
  }
}

void DecodeInto(const FormatSpec& format, const Input& codes, const OutputOf<float>& out) {
  RequireSizes(codes.size(), out.size(), {});
  WithCodes("decode", codes, [&](auto in) {
    const ArrayCall call;
    Decode(format, in, Elements(out));
  });
}

}  // namespace

void BindCasts(nb::module_& m) {
  // Bound before the calls that take it as a default.
  nb::class_<ArrayRandom>(m, "ArrayRandom")
      .def(
          "__init__",
          [](ArrayRandom* self, uint64_t seed, uint64_t stream, uint64_t first_index) {
            new (self) ArrayRandom{{seed, stream}, first_index};
          },
          nb::arg("seed"),
          nb::arg("stream"),
          nb::arg("first_index"));
  nb::class_<EncodePlan>(m, "EncodePlan")
      .def(
          "__init__",
          [](EncodePlan* self,
             const FormatSpec& format,
             std::string_view rounding,
             std::string_view overflow,
             int bits,
             std::string_view variant) {
            new (self) EncodePlan(MakePlan(format, rounding, overflow, bits, variant));
          },
          nb::arg("format"),
          nb::arg("rounding"),
          nb::arg("overflow"),
          nb::arg("bits") = 32,
          nb::arg("variant") = "a")
      .def_ro("format", &EncodePlan::format);
  // (name, draws random bits, rounds, at a tie) of each mode.
  m.def("rounding_modes", [] {
    nb::list rows;
    for (const RoundingModeRow& row : kRoundingModes) {
      rows.append(nb::make_tuple(row.name, row.draws, row.rounds, row.at_tie));
    }
    return rows;
  });
  m.def("encode",
        &EncodeInto,
        nb::arg("plan"),
        nb::arg("x").noconvert(),
        nb::arg("codes").noconvert(),
        nb::arg("random") = ArrayRandom(),
        nb::arg("random_bits").noconvert() = nb::none());
  m.def("encode_exact",
        &EncodeExactInto,
        nb::arg("plan"),
        nb::arg("words").noconvert(),
        nb::arg("exponents").noconvert(),
        nb::arg("codes").noconvert(),
        nb::arg("random") = ArrayRandom(),
        nb::arg("random_bits").noconvert() = nb::none());
  m.def("round",
        &RoundInto,
        nb::arg("plan"),
        nb::arg("x").noconvert(),
        nb::arg("out").noconvert(),
        nb::arg("random") = ArrayRandom(),
        nb::arg("random_bits").noconvert() = nb::none());
  m.def("decode",
        &DecodeInto,
        nb::arg("format"),
        nb::arg("codes").noconvert(),
        nb::arg("out").noconvert());
  m.def(
      "random_bits",
      [](const ArrayRandom& random, int bits, const OutputOf<uint32_t>& out) {
        const ArrayCall call;
        RandomBitsArray(random, bits, Elements(out));
      },
      nb::arg("random"),
      nb::arg("bits"),
      nb::arg("out").noconvert());
}

}  // namespace numsim::python
