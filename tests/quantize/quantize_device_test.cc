// quantize.h on a device against the CPU, bit for bit.
#include "numsim/quantize/internal/quantize_device.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/quantize.h"
#include "numsim/quantize/shared/transpose_device.h"
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
  Uploaded(const Tensor& tensor, MatrixShape shape, size_t offset) : memory_(ThreadPlace()) {
    const size_t bytes = BytesOf(tensor.element, memory_.place()), n = tensor.values.size();
    uint8_t* const to = memory_.Renew((offset + n) * bytes).data + offset * bytes;
    const void* from = tensor.values.data();
    if (tensor.element == Element::kBfloat16) from = tensor.bf16.data();
    device_memory::CopyIn(from, to, n * bytes, ThreadStream());
    matrix_ = {to, shape, memory_.place(), tensor.element};
  }
  ConstFloatSpan matrix() const { return matrix_; }

 private:
  Buffer<uint8_t> memory_;
  ConstFloatSpan matrix_;
};

std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float x : values) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

// Each number rounded by the scalar rule.
std::vector<uint16_t> Bf16CodesOf(const std::vector<float>& values) {
  const EncodePlan plan = MakeEncodePlan(ParseFormat("bf16").spec);
  std::vector<uint16_t> codes;
  for (const float x : values) {
    codes.push_back(static_cast<uint16_t>(EncodeF32(plan, std::bit_cast<uint32_t>(x), 0)));
  }
  return codes;
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
void ForEachCase(const Act& act) {
  for (const MatrixShape shape : kShapes) {
    for (const Element element : {Element::kBfloat16, Element::kFloat32}) {
      const Tensor tensor = Numbers(shape.Elements(), element, shape.Elements());
      for (const size_t offset : {size_t{0}, size_t{1}}) {
        const Uploaded uploaded(tensor, shape, offset);
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
      [&](MatrixShape shape, const ScaleLayout& layout, const Tensor& tensor, ConstFloatSpan in) {
        std::vector<float> expected(layout.Count(shape.rows, shape.cols));
        Absmax(HostMatrix(tensor.values, shape), layout, expected);
        Buffer<float> absmax(place(), expected.size());
        device_memory::FillBytes(absmax.View().data, 0x7F, absmax.View().Bytes(), stream());
        Absmax(in, layout, absmax.View());
        EXPECT_EQ(BitsOf(ToVector(absmax.View())), BitsOf(expected));
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
      const Uploaded in(tensor, shape, 0);
      const ScaleLayout scale_layout = ParseScaleLayout(layout);
      std::vector<float> expected(scale_layout.Count(shape.rows, shape.cols));
      Absmax(HostMatrix(tensor.values, shape), scale_layout, expected);
      Buffer<float> absmax(place(), expected.size());
      Absmax(in.matrix(), scale_layout, absmax.View());
      EXPECT_EQ(ToVector(absmax.View()), expected);
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
          const Uploaded in(tensor, {1, n}, offset);
          Buffer<float> absmax(place(), 1);
          AbsmaxOfAll(in.matrix(), absmax.View());
          EXPECT_EQ(BitsOf(ToVector(absmax.View())), BitsOf({AbsmaxOfAll(tensor.values)}));
        }
      }
    }
  }
}

// Codes of either order, and of both at once, equal those of the CPU.
template <typename Code>
void ExpectCodes(const EncodePlan& plan,
                 const Tensor& tensor,
                 ConstFloatSpan in,
                 const ScaleLayout& layout,
                 const std::vector<float>& factors) {
  const size_t n = tensor.values.size();
  const Buffer<float> inv_scales = CopyAt(factors, ThreadPlace());
  Buffer<Code> codes[2] = {{ThreadPlace(), n}, {ThreadPlace(), n}};
  std::vector<Code> expected[2];
  const auto expect_same = [&](bool transpose, const char* order) {
    MatrixSpan<Code> got = codes[transpose].View();
    EXPECT_TRUE(ToVector(got) == expected[transpose])
        << ToString(layout) << ", " << order << (transpose ? ", transposed" : "");
    device_memory::FillBytes(got.data, 0xA5, got.Bytes(), ThreadStream());
  };
  for (const bool transpose : {false, true}) {
    std::vector<Code>& want = expected[transpose];
    want.resize(n);
    const auto matrix = HostMatrix(tensor.values, in.Shape());
    Quantize(plan, matrix, layout, factors, want, kRandom, transpose);
    Quantize(plan, in, layout, inv_scales.View(), codes[transpose].View(), kRandom, transpose);
    expect_same(transpose, "one order");
  }
  cuda::Quantize(
      plan, in, layout, inv_scales.View(), codes[0].View().data, codes[1].View().data, kRandom);
  for (const bool transpose : {false, true}) expect_same(transpose, "both orders");
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
        [&](MatrixShape shape, const ScaleLayout& layout, const Tensor& tensor, ConstFloatSpan in) {
          const size_t count = layout.Count(shape.rows, shape.cols);
          ExpectCodes<uint8_t>(plan, tensor, in, layout, Factors(count, 8, false));
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
        const Uploaded in(tensor, shape, 0);
        const ScaleLayout layout = ParseScaleLayout(text);
        const size_t count = layout.Count(shape.rows, shape.cols);
        ExpectCodes<uint8_t>(Plan(format), tensor, in.matrix(), layout, Factors(count, 8, true));
        if (count != 1) continue;
        for (const float factor : {0.0f, -1.0f, kInfinity, -kInfinity}) {
          ExpectCodes<uint8_t>(Plan(format), tensor, in.matrix(), layout, {factor});
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
      const Uploaded in(tensor, shape, 0);
      for (const char* text : kLayouts) {
        SCOPED_TRACE(fmt::format("{} {} {}", made.format, ToString(made.rounding.mode), text));
        const ScaleLayout layout = ParseScaleLayout(text);
        const std::vector<float> factors = Factors(layout.Count(shape.rows, shape.cols), 3, true);
        if (plan.format.StorageBytes() == 1) {
          ExpectCodes<uint8_t>(plan, tensor, in.matrix(), layout, factors);
        } else {
          ExpectCodes<uint16_t>(plan, tensor, in.matrix(), layout, factors);
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
    const Uploaded in(tensor, shape, 0);
    for (const char* text : {"row", "tile:16x100"}) {
      const ScaleLayout layout = ParseScaleLayout(text);
      const std::vector<float> factors = Factors(layout.Count(shape.rows, shape.cols), 3, true);
      const EncodePlan bytes = Plan("e4m3fn", Stochastic(16, StochasticVariant::kA));
      ExpectCodes<uint8_t>(bytes, tensor, in.matrix(), layout, factors);
      ExpectCodes<uint16_t>(Plan("fp16"), tensor, in.matrix(), layout, factors);
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
    const Uploaded in(tensor, shape, 0);
    ExpectCodes<uint8_t>(plan, tensor, in.matrix(), {}, {1.0f});
  }
}

// The values of codes, as float32 and as bf16, equal those of the CPU; the numbers of bf16 also
// where the CPU holds them as float32.
template <typename Code>
void ExpectValues(const FormatSpec& format,
                  const std::vector<Code>& codes,
                  MatrixShape shape,
                  const ScaleLayout& layout,
                  const std::vector<float>& scales) {
  std::vector<float> expected(codes.size()), numbers(codes.size());
  Dequantize(format, codes, layout, scales, HostMatrix(expected, shape));
  const FloatSpan of_bf16(numbers.data(), shape, Place(), Element::kBfloat16);
  Dequantize(format, codes, layout, scales, of_bf16);
  const Buffer<Code> there = CopyAt(codes, ThreadPlace());
  const Buffer<float> factors = CopyAt(scales, ThreadPlace());
  FloatBuffer out(ThreadPlace()), out_bf16(ThreadPlace(), Element::kBfloat16);
  for (FloatBuffer* to : {&out, &out_bf16}) {
    to->Renew(shape.rows, shape.cols);
    Dequantize(format, there.View(), layout, factors.View(), to->View());
  }
  EXPECT_TRUE(BitsOf(ToVector(out.View())) == BitsOf(expected));
  EXPECT_TRUE(ToVector(out_bf16.View().Bf16()) == Bf16CodesOf(expected));
  EXPECT_TRUE(BitsOf(ToVector(out_bf16.View())) == BitsOf(numbers));
}

TEST_F(DequantizeDevice, EqualsTheCpu) {
  for (const char* name : {"int8", "e4m3fn", "e5m2", "e2m1fn", "bnb-e5m2", "e8m0fnu", "fp16"}) {
    const FormatSpec format = ParseFormat(name).spec;
    for (const MatrixShape shape : kShapes) {
      oracle::TestRandom random(shape.cols);
      std::vector<uint16_t> wide(shape.Elements());
      for (uint16_t& code : wide) code = static_cast<uint16_t>(random.Next32() & format.CodeMask());
      const std::vector<uint8_t> narrow(wide.begin(), wide.end());
      for (const char* text : kLayouts) {
        SCOPED_TRACE(fmt::format("{} {} x {} {}", name, shape.rows, shape.cols, text));
        const ScaleLayout layout = ParseScaleLayout(text);
        const std::vector<float> scales = Factors(layout.Count(shape.rows, shape.cols), -7, true);
        if (format.StorageBytes() == 1) {
          ExpectValues(format, narrow, shape, layout, scales);
        } else {
          ExpectValues(format, wide, shape, layout, scales);
        }
      }
    }
  }
}

template <typename T>
void ExpectTransposed(MatrixShape shape, size_t offset) {
  oracle::TestRandom random(shape.cols);
  std::vector<T> in(shape.Elements() + offset), expected(shape.Elements());
  for (T& x : in) x = static_cast<T>(random.Next32());
  for (size_t r = 0; r < shape.rows; ++r) {
    for (size_t c = 0; c < shape.cols; ++c) {
      expected[c * shape.rows + r] = in[offset + r * shape.cols + c];
    }
  }
  const Buffer<T> from = CopyAt(in, ThreadPlace());
  Buffer<T> to(ThreadPlace(), shape.Elements());
  cuda::Transpose(from.View().data + offset, shape, sizeof(T), to.View().data, ThreadStream());
  EXPECT_TRUE(ToVector(to.View()) == expected);
}

TEST_F(TransposeDevice, PutsEveryElementInItsPlace) {
  for (const MatrixShape shape : kShapes) {
    for (const size_t offset : {size_t{0}, size_t{1}}) {
      SCOPED_TRACE(fmt::format("{} x {} offset {}", shape.rows, shape.cols, offset));
      ExpectTransposed<uint8_t>(shape, offset);
      ExpectTransposed<uint16_t>(shape, offset);
    }
  }
}

TEST_F(ConvertDevice, RoundsToBf16AsTheRule) {
  for (const size_t n : {size_t{1}, size_t{77}, size_t{100000}}) {
    Tensor tensor = Numbers(n, Element::kFloat32, n);
    for (size_t i = 0; i < n; i += 5) {  // ties
      const uint32_t bits = std::bit_cast<uint32_t>(tensor.values[i]);
      tensor.values[i] = std::bit_cast<float>((bits & 0xFFFF0000u) | 0x8000u);
    }
    const std::vector<uint16_t> expected = Bf16CodesOf(tensor.values);
    std::vector<float> numbers(n);  // of bf16 on the host
    const FloatSpan of_bf16(numbers.data(), {n, 1}, Place(), Element::kBfloat16);
    Convert(tensor.values, of_bf16);
    for (const size_t offset : {size_t{0}, size_t{1}}) {
      const Uploaded in(tensor, {1, n}, offset);
      FloatBuffer out(place(), Element::kBfloat16);
      Convert(in.matrix(), out.Renew(n, 1));
      EXPECT_EQ(ToVector(out.View().Bf16()), expected);
      EXPECT_EQ(BitsOf(ToVector(out.View())), BitsOf(numbers));
    }
  }
}

TEST_F(ConvertDevice, WidensAndCopies) {
  for (const size_t n : {size_t{1}, size_t{77}, size_t{100000}}) {
    const Tensor tensor = Numbers(n, Element::kBfloat16, n);
    for (const size_t offset : {size_t{0}, size_t{1}}) {
      const Uploaded in(tensor, {1, n}, offset);
      FloatBuffer out(place()), copy(place(), Element::kBfloat16);
      Convert(in.matrix(), out.Renew(1, n));
      EXPECT_EQ(BitsOf(ToVector(out.View())), BitsOf(tensor.values));
      Convert(in.matrix(), copy.Renew(1, n));
      EXPECT_EQ(ToVector(copy.View().Bf16()), tensor.bf16);
    }
  }
}

}  // namespace
}  // namespace numsim
