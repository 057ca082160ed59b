// quantize_device.h against quantize.h on the CPU, bit for bit.
#include "numsim/quantize/quantize_device.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "tests/reference/inputs.h"
#include "tests/support/device_test.h"
#include "tests/support/special_values.h"

namespace numsim {
namespace {

constexpr ArrayRandom kRandom = {{.seed = 3, .stream = 4}, 1000};

constexpr MatrixShape kShapes[] = {{1, 1},
                                   {1, 999},
                                   {999, 1},
                                   {3, 5},
                                   {17, 33},
                                   {16, 8},
                                   {48, 72},
                                   {64, 1024},
                                   {129, 4097},
                                   {144, 200},
                                   {400, 136}};
constexpr const char* kLayouts[] = {"tensor",
                                    "row",
                                    "column",
                                    "block:1",
                                    "block:7",
                                    "block:32",
                                    "block:1000000",
                                    "tile:3x24",
                                    "tile:64x1",
                                    "tile:1000x1",
                                    "tile:128x128"};

// Values of a tensor on the host, as it stores them and as the float32 that they are.
struct Tensor {
  Element element;
  std::vector<float> values;
  std::vector<uint16_t> bf16;
};

// Numbers of many sizes, with zeros, subnormals, and where `all`, infinities and NaNs of both
// signs.
Tensor Numbers(size_t n, Element element, uint64_t seed, bool all = true) {
  oracle::TestRandom random(seed);
  Tensor tensor = {element, std::vector<float>(n), {}};
  for (float& x : tensor.values) {
    const uint64_t kind = random.Below(256);
    x = std::ldexp(static_cast<float>(random.Next32() >> 8), -24 - static_cast<int>(kind % 12));
    if (kind < 4) x = 0;
    if (kind == 4) x = std::bit_cast<float>(random.Next32() & 0x7FFFFFu);
    if (kind == 5) x = std::bit_cast<float>(0x70000000u | (random.Next32() >> 8));
    if (all && kind == 6) x = kInfinity;
    if (all && kind == 7) x = std::bit_cast<float>(0x7F800001u | (random.Next32() >> 9));
    if (random.Below(2) == 1) x = -x;
    if (element == Element::kBfloat16) {
      const uint32_t upper = std::bit_cast<uint32_t>(x) >> 16;
      tensor.bf16.push_back(static_cast<uint16_t>(upper));
      x = std::bit_cast<float>(upper << 16);
    }
  }
  return tensor;
}

// The tensor on the device, `offset` elements behind an aligned address.
class Uploaded {
 public:
  Uploaded(const Tensor& tensor, MatrixShape shape, size_t offset, DeviceStream& stream)
      : memory_(offset * BytesOf(tensor.element) + tensor.values.size() * BytesOf(tensor.element)) {
    const size_t skipped = offset * BytesOf(tensor.element);
    const void* from = tensor.values.data();
    if (tensor.element == Element::kBfloat16) from = tensor.bf16.data();
    device_memory::CopyIn(from, memory_.data() + skipped, memory_.size() - skipped, stream);
    matrix_ = FloatMatrix(memory_.data() + skipped, tensor.element, shape, ThreadPlace());
  }
  In<float> matrix() const { return matrix_; }

 private:
  DeviceArray<uint8_t> memory_;
  In<float> matrix_;
};

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float x : values) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

// Factors about 2^exponent, and where `all`, ones of every kind but NaN: which of two NaN a product
// keeps is not the same on all CPU backends.
std::vector<float> Factors(size_t n, int exponent, bool all) {
  oracle::TestRandom random(n);
  std::vector<float> factors(n);
  for (float& x : factors) {
    x = std::ldexp(1 + static_cast<float>(random.Next32() >> 9) * 0x1p-23f, exponent);
    if (!all) continue;
    const uint64_t kind = random.Below(12);
    if (kind == 0) x = 0;
    if (kind == 1) x = kInfinity;
    if (kind == 2) x = -x;
    if (kind == 3) x = 0x1p-140f;
  }
  return factors;
}

std::string Describe(MatrixShape shape, const char* layout, Element element) {
  return fmt::format("{} x {} {} {}",
                     shape.rows,
                     shape.cols,
                     layout,
                     element == Element::kBfloat16 ? "bf16" : "fp32");
}

// act(shape, layout, tensor, its upload) for shapes, layouts, elements and alignments.
template <typename Act>
void ForEachCase(DeviceStream& stream, const Act& act) {
  for (const MatrixShape shape : kShapes) {
    for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
      const Tensor tensor = Numbers(shape.Elements(), element, shape.Elements());
      for (const size_t offset : {size_t{0}, size_t{1}}) {
        const Uploaded uploaded(tensor, shape, offset, stream);
        for (const char* text : kLayouts) {
          SCOPED_TRACE(Describe(shape, text, element) + fmt::format(" offset {}", offset));
          act(shape, ParseScaleLayout(text), tensor, uploaded.matrix());
        }
      }
    }
  }
}

class AbsmaxDevice : public DeviceTest {};
class QuantizeDevice : public DeviceTest {};
class DequantizeDevice : public DeviceTest {};
class TransposeDevice : public DeviceTest {};
class ConvertDevice : public DeviceTest {};

TEST_F(AbsmaxDevice, EqualsTheCpu) {
  ForEachCase(
      stream(),
      [&](MatrixShape shape, const ScaleLayout& layout, const Tensor& tensor, In<float> in) {
        std::vector<float> expected(layout.Count(shape.rows, shape.cols));
        Absmax(tensor.values, shape, layout, expected);
        DeviceArray<float> absmax(expected.size());
        device_memory::FillBytes(absmax.data(), 0x7F, 4 * absmax.size(), stream());
        Absmax(in, layout, absmax.span());
        EXPECT_EQ(BitsOf(OnHost(DeviceSpan<const float>(absmax.span()), stream())),
                  BitsOf(expected));
      });
}

TEST_F(AbsmaxDevice, FindsOneNumberAmongManyThatAreNotFinite) {
  for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
    for (const char* layout : {"tensor", "row", "column", "block:64"}) {
      const MatrixShape shape{9, 640};
      Tensor tensor = {element, std::vector<float>(shape.Elements(), -kInfinity), {}};
      for (size_t i = 0; i < shape.Elements(); i += 2) tensor.values[i] = -kNaN;
      tensor.values[3 * 640 + 77] = -0x1p-133f;
      for (const float x : tensor.values) {
        tensor.bf16.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16));
      }
      const Uploaded in(tensor, shape, 0, stream());
      const ScaleLayout scale_layout = ParseScaleLayout(layout);
      std::vector<float> expected(scale_layout.Count(shape.rows, shape.cols));
      Absmax(tensor.values, shape, scale_layout, expected);
      DeviceArray<float> absmax(expected.size());
      Absmax(in.matrix(), scale_layout, absmax.span());
      EXPECT_EQ(OnHost(DeviceSpan<const float>(absmax.span()), stream()), expected);
    }
  }
}

TEST_F(AbsmaxDevice, OfAllCountsInfinitiesAndKeepsNan) {
  for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
    for (const size_t n : {size_t{1}, size_t{13}, size_t{100000}}) {
      for (const float special : {0.0f, 7.0f, -kInfinity, kNaN, -kNaN}) {
        Tensor tensor = Numbers(n, element, n, false);
        tensor.values[n / 2] = special;
        if (element == Element::kBfloat16) {
          tensor.bf16[n / 2] = static_cast<uint16_t>(std::bit_cast<uint32_t>(special) >> 16);
        }
        for (const size_t offset : {size_t{0}, size_t{1}}) {
          const Uploaded in(tensor, {1, n}, offset, stream());
          DeviceArray<float> absmax(1);
          AbsmaxOfAll(in.matrix(), absmax.span());
          EXPECT_EQ(BitsOf(OnHost(DeviceSpan<const float>(absmax.span()), stream())),
                    BitsOf({AbsmaxOfAll(tensor.values)}));
        }
      }
    }
  }
}

// Codes of both orders equal those of the CPU.
template <typename Code>
void ExpectCodes(const EncodePlan& plan,
                 const Tensor& tensor,
                 In<float> in,
                 const ScaleLayout& layout,
                 const std::vector<float>& factors,
                 DeviceStream& stream) {
  const size_t n = tensor.values.size();
  std::vector<Code> expected(n), expected_transposed(n);
  Quantize(plan, tensor.values, in.Shape(), layout, factors, std::span(expected), kRandom);
  Quantize(plan,
           tensor.values,
           in.Shape(),
           layout,
           factors,
           std::span(expected_transposed),
           kRandom,
           true);
  const DeviceArray<float> inv_scales = OnDevice(std::span(factors), stream);
  for (const int wanted : {1, 2, 3}) {
    SCOPED_TRACE(fmt::format("{} {}", ToString(layout), wanted));
    DeviceArray<Code> codes(n), transposed(n);
    void* to = (wanted & 1) != 0 ? codes.data() : nullptr;
    void* to_transposed = (wanted & 2) != 0 ? transposed.data() : nullptr;
    Quantize(plan, in, layout, inv_scales.span(), to, to_transposed, kRandom);
    if (to != nullptr) {
      EXPECT_TRUE(OnHost(DeviceSpan<const Code>(codes.span()), stream) == expected);
    }
    if (to_transposed != nullptr) {
      EXPECT_TRUE(OnHost(DeviceSpan<const Code>(transposed.span()), stream) == expected_transposed);
    }
  }
}

EncodePlan Plan(const char* format,
                const Rounding& rounding = {},
                Overflow overflow = Overflow::kSaturate) {
  return MakeEncodePlan(ParseFormat(format).spec, rounding, overflow);
}

Rounding Stochastic(int bits, StochasticVariant variant) {
  return {RoundingMode::kStochastic, variant, bits};
}

TEST_F(QuantizeDevice, EqualsTheCpuForFormatsWithAQuickEncoder) {
  for (const char* format : {"int8", "e4m3fn", "e5m2"}) {
    SCOPED_TRACE(format);
    const EncodePlan plan = Plan(format);
    ForEachCase(
        stream(),
        [&](MatrixShape shape, const ScaleLayout& layout, const Tensor& tensor, In<float> in) {
          const size_t count = layout.Count(shape.rows, shape.cols);
          ExpectCodes<uint8_t>(plan, tensor, in, layout, Factors(count, 8, false), stream());
        });
  }
}

TEST_F(QuantizeDevice, EqualsTheCpuForFactorsOfEveryKind) {
  for (const char* format : {"int8", "e4m3fn", "e5m2"}) {
    SCOPED_TRACE(format);
    for (const char* text : {"tensor", "row", "column", "block:8", "tile:16x16"}) {
      for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
        const MatrixShape shape{144, 200};
        const Tensor tensor = Numbers(shape.Elements(), element, 9);
        const Uploaded in(tensor, shape, 0, stream());
        const ScaleLayout layout = ParseScaleLayout(text);
        const size_t count = layout.Count(shape.rows, shape.cols);
        ExpectCodes<uint8_t>(
            Plan(format), tensor, in.matrix(), layout, Factors(count, 8, true), stream());
        if (count != 1) continue;
        for (const float factor : {0.0f, -1.0f, kInfinity, -kInfinity}) {
          ExpectCodes<uint8_t>(Plan(format), tensor, in.matrix(), layout, {factor}, stream());
        }
      }
    }
  }
}

TEST_F(QuantizeDevice, EqualsTheCpuForOtherFormatsAndRoundings) {
  const MatrixShape shape{50, 88};
  const struct {
    const char* format;
    Rounding rounding;
    Overflow overflow;
  } kPlans[] = {{"e4m3fn", {}, Overflow::kNonsaturate},
                {"e5m2", {}, Overflow::kNonsaturate},
                {"int8", Stochastic(8, StochasticVariant::kA), Overflow::kSaturate},
                {"e4m3fn", Stochastic(20, StochasticVariant::kC), Overflow::kSaturate},
                {"e5m2", {RoundingMode::kTowardZero}, Overflow::kSaturate},
                {"e2m1fn", {}, Overflow::kSaturate},
                {"e4m3fnuz", {RoundingMode::kUp}, Overflow::kNonsaturate},
                {"bnb-e4m3", {}, Overflow::kSaturate},
                {"e8m0fnu", {}, Overflow::kSaturate},
                {"bf16", {}, Overflow::kNonsaturate},
                {"fp16", Stochastic(13, StochasticVariant::kB), Overflow::kNonsaturate}};
  for (const auto& made : kPlans) {
    const EncodePlan plan = Plan(made.format, made.rounding, made.overflow);
    for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
      const Tensor tensor = Numbers(shape.Elements(), element, 5);
      const Uploaded in(tensor, shape, 0, stream());
      for (const char* text : kLayouts) {
        SCOPED_TRACE(fmt::format("{} {} {}", made.format, ToString(made.rounding.mode), text));
        const ScaleLayout layout = ParseScaleLayout(text);
        const std::vector<float> factors = Factors(layout.Count(shape.rows, shape.cols), 3, true);
        if (plan.format.StorageBytes() == 1) {
          ExpectCodes<uint8_t>(plan, tensor, in.matrix(), layout, factors, stream());
        } else {
          ExpectCodes<uint16_t>(plan, tensor, in.matrix(), layout, factors, stream());
        }
      }
    }
  }
}

// Parts of 2^23 elements, which end within rows; random words and scales go on.
TEST_F(QuantizeDevice, EqualsTheCpuForMatricesOfManyParts) {
  const MatrixShape shape{2049, 8200};
  for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
    const Tensor tensor = Numbers(shape.Elements(), element, 4);
    const Uploaded in(tensor, shape, 0, stream());
    for (const char* text : {"row", "tile:16x100"}) {
      const ScaleLayout layout = ParseScaleLayout(text);
      const std::vector<float> factors = Factors(layout.Count(shape.rows, shape.cols), 3, true);
      const EncodePlan bytes = Plan("e4m3fn", Stochastic(16, StochasticVariant::kA));
      ExpectCodes<uint8_t>(bytes, tensor, in.matrix(), layout, factors, stream());
      ExpectCodes<uint16_t>(Plan("fp16"), tensor, in.matrix(), layout, factors, stream());
    }
  }
}

TEST_F(QuantizeDevice, QuickEncodersAreExactAroundEveryCode) {
  for (const char* name : {"int8", "e4m3fn", "e5m2"}) {
    SCOPED_TRACE(name);
    const EncodePlan plan = Plan(name);
    Tensor tensor = {Element::kFloat32, {}, {}};
    for (uint32_t code = 0; code < 256; ++code) {
      const float x = Decode(plan.format, code);
      for (const float y : {x, Decode(plan.format, (code + 1) & 255)}) {
        const float middle = 0.5f * (x + y);
        for (const float z : {y, middle}) {
          tensor.values.push_back(z);
          tensor.values.push_back(std::nextafter(z, kInfinity));
          tensor.values.push_back(std::nextafter(z, -kInfinity));
        }
      }
    }
    for (const uint32_t bits : oracle::SpecialF32()) {
      tensor.values.push_back(std::bit_cast<float>(bits));
      tensor.values.push_back(-std::bit_cast<float>(bits));
    }
    const MatrixShape shape{1, tensor.values.size()};
    const Uploaded in(tensor, shape, 0, stream());
    ExpectCodes<uint8_t>(plan, tensor, in.matrix(), {}, {1.0f}, stream());
  }
}

TEST_F(DequantizeDevice, EqualsTheCpu) {
  for (const char* name : {"int8", "e4m3fn", "e5m2", "e2m1fn", "bnb-e5m2", "e8m0fnu", "fp16"}) {
    const FormatSpec format = ParseFormat(name).spec;
    const EncodePlan to_bf16 = MakeEncodePlan(ParseFormat("bf16").spec);
    for (const MatrixShape shape : kShapes) {
      oracle::TestRandom random(shape.cols);
      std::vector<uint16_t> wide(shape.Elements());
      for (uint16_t& code : wide) code = static_cast<uint16_t>(random.Next32() & format.CodeMask());
      const std::vector<uint8_t> narrow(wide.begin(), wide.end());
      for (const char* text : kLayouts) {
        SCOPED_TRACE(fmt::format("{} {} x {} {}", name, shape.rows, shape.cols, text));
        const ScaleLayout layout = ParseScaleLayout(text);
        const std::vector<float> scales = Factors(layout.Count(shape.rows, shape.cols), -7, true);
        const bool one_byte = format.StorageBytes() == 1;
        std::vector<float> expected(wide.size());
        if (one_byte) {
          Dequantize(format, std::span(narrow), shape, layout, scales, expected);
        } else {
          Dequantize(format, std::span(wide), shape, layout, scales, expected);
        }
        const DeviceArray<float> factors = OnDevice(std::span(scales), stream());
        const DeviceArray<uint8_t> codes8 = OnDevice(std::span(narrow), stream());
        const DeviceArray<uint16_t> codes16 = OnDevice(std::span<const uint16_t>(wide), stream());
        const void* codes = one_byte ? static_cast<const void*>(codes8.data()) : codes16.data();
        DeviceArray<float> out(wide.size());
        DeviceArray<uint16_t> out_bf16(wide.size());
        Dequantize(format,
                   codes,
                   layout,
                   factors.span(),
                   FloatMatrix(out.data(), Element::kFloat32, shape, place()));
        Dequantize(format,
                   codes,
                   layout,
                   factors.span(),
                   FloatMatrix(out_bf16.data(), Element::kBfloat16, shape, place()));
        EXPECT_TRUE(BitsOf(OnHost(DeviceSpan<const float>(out.span()), stream())) ==
                    BitsOf(expected));
        std::vector<uint16_t> expected_bf16;
        for (const float x : expected) {
          const uint32_t bits = std::bit_cast<uint32_t>(x);
          expected_bf16.push_back(static_cast<uint16_t>(EncodeF32(to_bf16, bits, 0)));
        }
        EXPECT_TRUE(OnHost(DeviceSpan<const uint16_t>(out_bf16.span()), stream()) == expected_bf16);
      }
    }
  }
}

template <typename T>
void ExpectTransposed(MatrixShape shape, size_t offset, DeviceStream& stream) {
  oracle::TestRandom random(shape.cols);
  std::vector<T> in(shape.Elements() + offset), expected(shape.Elements());
  for (T& x : in) x = static_cast<T>(random.Next32());
  for (size_t r = 0; r < shape.rows; ++r) {
    for (size_t c = 0; c < shape.cols; ++c) {
      expected[c * shape.rows + r] = in[offset + r * shape.cols + c];
    }
  }
  const DeviceArray<T> from = OnDevice(std::span<const T>(in), stream);
  DeviceArray<T> to(shape.Elements());
  Transpose(from.data() + offset, shape, sizeof(T), to.data(), stream);
  EXPECT_TRUE(OnHost(DeviceSpan<const T>(to.span()), stream) == expected);
}

TEST_F(TransposeDevice, PutsEveryElementInItsPlace) {
  for (const MatrixShape shape : kShapes) {
    for (const size_t offset : {size_t{0}, size_t{1}}) {
      SCOPED_TRACE(fmt::format("{} x {} offset {}", shape.rows, shape.cols, offset));
      ExpectTransposed<uint8_t>(shape, offset, stream());
      ExpectTransposed<uint16_t>(shape, offset, stream());
    }
  }
}

TEST_F(ConvertDevice, RoundsToBf16AsTheRule) {
  const EncodePlan plan = MakeEncodePlan(ParseFormat("bf16").spec);
  for (const size_t n : {size_t{1}, size_t{77}, size_t{100000}}) {
    Tensor tensor = Numbers(n, Element::kFloat32, n);
    for (size_t i = 0; i < n; i += 5) {  // ties
      const uint32_t bits = std::bit_cast<uint32_t>(tensor.values[i]);
      tensor.values[i] = std::bit_cast<float>((bits & 0xFFFF0000u) | 0x8000u);
    }
    std::vector<uint16_t> expected;
    for (const float x : tensor.values) {
      const uint32_t code = EncodeF32(plan, std::bit_cast<uint32_t>(x), 0);
      expected.push_back(static_cast<uint16_t>(code));
    }
    for (const size_t offset : {size_t{0}, size_t{1}}) {
      const Uploaded in(tensor, {1, n}, offset, stream());
      DeviceArray<uint16_t> out(n);
      Convert(in.matrix(), FloatMatrix(out.data(), Element::kBfloat16, {n, 1}, place()));
      EXPECT_EQ(OnHost(DeviceSpan<const uint16_t>(out.span()), stream()), expected);
    }
  }
}

TEST_F(ConvertDevice, WidensAndCopies) {
  for (const size_t n : {size_t{1}, size_t{77}, size_t{100000}}) {
    const Tensor tensor = Numbers(n, Element::kBfloat16, n);
    for (const size_t offset : {size_t{0}, size_t{1}}) {
      const Uploaded in(tensor, {1, n}, offset, stream());
      DeviceArray<float> out(n);
      Convert(in.matrix(), FloatMatrix(out.data(), Element::kFloat32, {1, n}, place()));
      EXPECT_EQ(BitsOf(OnHost(DeviceSpan<const float>(out.span()), stream())),
                BitsOf(tensor.values));
      DeviceArray<uint16_t> copy(n);
      Convert(in.matrix(), FloatMatrix(copy.data(), Element::kBfloat16, {1, n}, place()));
      EXPECT_EQ(OnHost(DeviceSpan<const uint16_t>(copy.span()), stream()), tensor.bf16);
    }
  }
}

}  // namespace
}  // namespace numsim
