// Casts: arrays of float32 and float64 to codes, and back.
#include <optional>
#include <span>

#include "libnumsim/python/src/bindings.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/cast/cast.h"
#include "numsim/rounding/rounding_modes.h"
#include "numsim/rounding/unrounded.h"

namespace numsim::python {
namespace {

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
                     std::span<const uint32_t> words) {
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

// The caller's random bits of a call, one word per element; without, those of the stream.
using RandomWords = std::optional<PlacedInput>;

void EncodeInto(const EncodePlan& plan,
                const PlacedInput& x,
                const PlacedOutput& codes,
                const ArrayRandom& random,
                const RandomWords& words,
                DeviceContext* context) {
  const Place place = PlaceOf(context);
  WithFloatType("encode", x.dtype(), [&]<typename Float>(Float) {
    WithCodeType("encode", codes.dtype(), [&]<typename Code>(Code) {
      const auto in = ElementsAt<const Float>(place, "encode", x);
      const auto out = ElementsAt<Code>(place, "encode", codes);
      MatrixSpan<const uint32_t> bits;
      if (words) bits = ElementsAt<const uint32_t>(place, "random bits", *words);
      const ArrayCall call;
      if (words) return EncodeWithBits<Float, Code>(plan, in, out, bits);
      Encode(plan, in, out, random);
    });
  });
}

void RoundInto(const EncodePlan& plan,
               const PlacedInput& x,
               const PlacedOutput& out,
               const ArrayRandom& random,
               const RandomWords& words,
               DeviceContext* context) {
  const Place place = PlaceOf(context);
  WithFloatType("round", x.dtype(), [&]<typename Float>(Float) {
    const auto in = ElementsAt<const Float>(place, "round", x);
    const auto rounded = ElementsAt<Float>(place, "round", out);
    MatrixSpan<const uint32_t> bits;
    if (words) bits = ElementsAt<const uint32_t>(place, "random bits", *words);
    const ArrayCall call;
    if (words) return FakeQuantizeWithBits<Float>(plan, in, rounded, bits);
    FakeQuantize(plan, in, rounded, random);
  });
}

void DecodeInto(const FormatSpec& format,
                const PlacedInput& codes,
                const PlacedOutput& out,
                DeviceContext* context) {
  const Place place = PlaceOf(context);
  WithCodeType("decode", codes.dtype(), [&]<typename Code>(Code) {
    const auto in = ElementsAt<const Code>(place, "decode", codes);
    const auto values = ElementsAt<float>(place, "decode", out);
    const ArrayCall call;
    Decode(format, in, values);
  });
}

void EncodeExactInto(const EncodePlan& plan,
                     const InputOf<uint64_t>& words,
                     const InputOf<int32_t>& exponents,
                     const Output& codes,
                     const ArrayRandom& random,
                     const std::optional<InputOf<uint32_t>>& random_bits) {
  std::span<const uint32_t> bits;
  if (random_bits) bits = Elements(*random_bits);
  RequireSize(codes.size(), words.size(), "encode", "codes");
  RequireSize(exponents.size(), words.size(), "encode", "exponents");
  if (random_bits) RequireSize(bits.size(), words.size(), "encode", "random_bits");
  for (const int32_t exponent : Elements(exponents)) {
    if (exponent <= -ExactNumbers::kNan || exponent > ExactNumbers::kNan) {
      throw Error::Format("exponent {}, expected a magnitude below 2^20", exponent);
    }
  }
  WithCodes("encode", codes, [&](auto out) {
    const ArrayCall call;
    EncodeEachExact(plan, {Elements(words), Elements(exponents)}, out, random, bits);
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
        nb::arg("random_bits").noconvert() = nb::none(),
        nb::arg("context") = nb::none());
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
        nb::arg("random_bits").noconvert() = nb::none(),
        nb::arg("context") = nb::none());
  m.def("decode",
        &DecodeInto,
        nb::arg("format"),
        nb::arg("codes").noconvert(),
        nb::arg("out").noconvert(),
        nb::arg("context") = nb::none());
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
