// Products of the device against the processor's under the same mode, bit for bit.
#include "numsim/gemm/gemm_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/gemm/internal/gemm_inner_parts.h"
#include "numsim/gemm/internal/gemm_kernels_device.h"
#include "numsim/gemm/internal/gemm_prepare_device.h"
#include "tests/support/device_factor.h"
#include "tests/support/device_test.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

constexpr NamedProduct kProducts[] = {{"int8", "int8", "exact"},
                                      {"e4m3fn", "e4m3fn", "hopper-fp8-fast"},
                                      {"e4m3fn", "e5m2", "hopper-fp8-fast"},
                                      {"e5m2", "e4m3fn", "hopper-fp8-fast"},
                                      {"e4m3fn", "e4m3fn", "hopper-fp8"},
                                      {"e4m3fn", "e5m2", "hopper-fp8"},
                                      {"e5m2", "e4m3fn", "hopper-fp8"},
                                      {"bf16", "bf16", "hopper-bf16"},
                                      {"fp16", "fp16", "hopper-fp16"},
                                      {"bf16", "bf16", "trunc:25,16,128"},
                                      {"fp16", "fp16", "trunc:25,16,3072"}};

class DeviceGemm : public DeviceTestOf<NamedProduct> {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    const NamedProduct p = GetParam();
    if (!MultipliesOnDevice(p.FormatA(), p.FormatB(), p.Rule())) {
      GTEST_SKIP() << Device().name << " does not follow rule " << p.mode;
    }
  }

  Factor Left(size_t rows, size_t inner, Spread spread) {
    return Factor::Random(GetParam().FormatA(), rows, inner, spread, Side::kLeft, random_);
  }
  Factor Right(size_t rows, size_t inner, Spread spread) {
    return Factor::Random(GetParam().FormatB(), rows, inner, spread, Side::kRight, random_);
  }
  bool HasOwn() const {
    return Device().IsHopper() && (std::string_view(GetParam().mode) == "exact" ||
                                   std::string_view(GetParam().mode) == "hopper-fp8-fast");
  }

  // Every engine and output gives what the processor does.
  void ExpectSame(
      const Factor& a, const Factor& b, bool transposed_a, bool transposed_b, size_t offset = 0) {
    ExpectSame(a, b, HostProduct(a, b, GetParam().Rule()), transposed_a, transposed_b, offset);
  }
  void ExpectSame(const Factor& a,
                  const Factor& b,
                  const std::vector<float>& want,
                  bool transposed_a,
                  bool transposed_b,
                  size_t offset = 0) {
    const AccumulationMode mode = GetParam().Rule();
    const DeviceFactor left(a, transposed_a, offset), right(b, transposed_b, offset);
    for (const Element element : {Element::kFloat32, Element::kBfloat16}) {
      for (const DeviceGemmEngine engine :
           {DeviceGemmEngine::kAuto, DeviceGemmEngine::kLibrary, DeviceGemmEngine::kOwn}) {
        if (engine == DeviceGemmEngine::kOwn && !HasOwn()) continue;
        const std::vector<uint32_t> got =
            DeviceProduct(left.Get(), right.Get(), mode, element, engine, offset);
        EXPECT_TRUE(SameBits(got, BitsOf(want, element), b.rows()))
            << "engine " << ToString(engine) << (element == Element::kBfloat16 ? ", bf16" : "")
            << (transposed_a ? ", a transposed" : "") << (transposed_b ? ", b transposed" : "")
            << "\na: " << a.Describe() << "\nb: " << b.Describe();
      }
    }
  }

  oracle::TestRandom random_{20261121};
};

struct Shape {
  size_t rows_a, rows_b, inner;
};

// True if the device computes that product of matrices of the host.
bool IsOffloaded(const Factor& a, const Factor& b, const AccumulationMode& mode) {
  std::vector<float> out(a.rows() * b.rows());
  return cuda::GemmOffloaded(a.Get(), b.Get(), mode, HostMatrix(out, {a.rows(), b.rows()}));
}

// One scratch for shapes that grow, shrink and change their order.
TEST_P(DeviceGemm, EqualsTheRuleForEveryShapeAndOrder) {
  constexpr Shape kShapes[] = {{1, 1, 1},
                               {1, 1, 16},
                               {1, 40, 7},
                               {5, 3, 48},
                               {16, 16, 16},
                               {17, 33, 65},
                               {33, 48, 129},
                               {48, 24, 272},
                               {128, 256, 64},
                               {300, 520, 1040},
                               {136, 264, 1000}};
  size_t count = 0;
  for (const Shape& shape : kShapes) {
    const Spread spread = kSpreads[count % std::size(kSpreads)];
    Factor a = Left(shape.rows_a, shape.inner, spread);
    Factor b = Right(shape.rows_b, shape.inner, spread);
    PutScales(a, kScalesFor[count % 3], random_);
    PutScales(b, kScalesFor[count / 3 % 3], random_);
    ++count;
    const std::vector<float> want = HostProduct(a, b, GetParam().Rule());
    for (const bool transposed_a : {false, true}) {
      for (const bool transposed_b : {false, true}) {
        ExpectSame(a, b, want, transposed_a, transposed_b);
      }
    }
  }
}

TEST_P(DeviceGemm, EqualsTheRuleUnderEveryPairOfScales) {
  for (const ScalesFor scales_a : kScalesFor) {
    for (const ScalesFor scales_b : kScalesFor) {
      for (const Spread spread : kSpreads) {
        Factor a = Left(64, 272, spread), b = Right(80, 272, spread);
        PutScales(a, scales_a, random_);
        PutScales(b, scales_b, random_);
        ExpectSame(a, b, false, false);
      }
    }
  }
}

// Results and scales that overflow, underflow and are subnormal.
TEST_P(DeviceGemm, EqualsTheRuleUnderExtremeScales) {
  constexpr float kExtremes[] = {0x1.8p-149f,
                                 0x1.23456p-126f,
                                 0x1.fffffep127f,
                                 -0x1.0p-70f,
                                 0.0f,
                                 std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN(),
                                 0x1.3p90f};
  Factor a = Left(64, 64, Spread::kExponents), b = Right(48, 64, Spread::kExponents);
  std::vector<float> scales_a, scales_b;
  for (size_t i = 0; i < a.rows(); ++i) scales_a.push_back(kExtremes[i % std::size(kExtremes)]);
  for (size_t i = 0; i < b.rows(); ++i) scales_b.push_back(kExtremes[i / 2 % std::size(kExtremes)]);
  a.SetScales(scales_a, {.row_stride = 1});
  b.SetScales(scales_b, {.row_stride = 1});
  ExpectSame(a, b, false, false);
}

TEST_P(DeviceGemm, EqualsTheRuleAtAnyAddress) {
  for (const size_t offset : {size_t{1}, size_t{8}, size_t{16}}) {
    Factor a = Left(48, 160, Spread::kNormal), b = Right(64, 160, Spread::kNormal);
    ExpectSame(a, b, false, false, offset);
    PutScales(a, ScalesFor::kRows, random_);
    PutScales(b, ScalesFor::kTensor, random_);
    ExpectSame(a, b, false, true, offset);
  }
}

// Where cuBLASLt would split the inner dimension, and tiles of every size.
TEST_P(DeviceGemm, EqualsTheRuleForLongSums) {
  constexpr Shape kShapes[] = {
      {32, 32, 16384}, {64, 256, 8192}, {512, 512, 4096}, {48, 2048, 4096}};
  for (const Shape& shape : kShapes) {
    // cuBLASLt 13.1 promotes sums that long, of so few results, only if it may cut them.
    if (GetParam().mode == std::string_view("hopper-fp8") && shape.inner > 4096) continue;
    for (const Spread spread : {Spread::kNormal, Spread::kCancelling}) {
      ExpectSame(Left(shape.rows_a, shape.inner, spread),
                 Right(shape.rows_b, shape.inner, spread),
                 false,
                 false);
    }
  }
}

TEST_P(DeviceGemm, NothingGivesNothingAndNoProductsGiveZero) {
  const Factor empty = Left(0, 16, Spread::kNormal), b = Right(16, 16, Spread::kNormal);
  ExpectSame(empty, b, false, false);
  ExpectSame(Left(5, 0, Spread::kNormal), Right(7, 0, Spread::kNormal), false, false);
}

TEST_P(DeviceGemm, Bf16ResultsAreTheNumbersOfTheHost) {
  for (const Spread spread : kSpreads) {
    Factor a = Left(33, 129, spread), b = Right(48, 129, spread);
    PutScales(a, ScalesFor::kRows, random_);
    PutScales(b, ScalesFor::kTensor, random_);
    const DeviceFactor left(a, false), right(b, false);
    FloatBuffer out(place(), Element::kBfloat16), want(Place(), Element::kBfloat16);
    Gemm(left.Get(), right.Get(), GetParam().Rule(), out.Renew(a.rows(), b.rows()));
    a.Store(Storage::kCodes, false);
    b.Store(Storage::kCodes, false);
    Gemm(a.Get(), b.Get(), GetParam().Rule(), want.Renew(a.rows(), b.rows()));
    EXPECT_TRUE(SameMatrix(ToVector(out.View()), ToVector(want.View()), b.rows())) << a.Describe();
  }
}

TEST_P(DeviceGemm, HostCallsRunOnTheDevice) {
  const ExecutionState state;
  const AccumulationMode mode = GetParam().Rule();
  size_t count = 0;
  for (const Shape& shape : {Shape{33, 48, 129}, Shape{5, 3, 48}, Shape{128, 256, 64}}) {
    for (const bool transposed : {false, true}) {
      for (const Storage storage : {Storage::kCodes, Storage::kValues}) {
        Factor a = Left(shape.rows_a, shape.inner, kSpreads[count % std::size(kSpreads)]);
        Factor b = Right(shape.rows_b, shape.inner, kSpreads[count % std::size(kSpreads)]);
        PutScales(a, kScalesFor[count % 3], random_);
        PutScales(b, kScalesFor[++count % 3], random_);
        const std::vector<float> want = HostProduct(a, b, mode);
        a.Store(storage, transposed);
        b.Store(storage, !transposed);
        EXPECT_TRUE(IsOffloaded(a, b, mode));
        ForceBackend("cuda");
        EXPECT_TRUE(SameMatrix(GemmResult(a, b, mode), want, b.rows())) << a.Describe() << "\n"
                                                                        << b.Describe();
        ForceBackend(AvailableBackends().front());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Products, DeviceGemm, testing::ValuesIn(kProducts));

// A factor at a place, stored as columns of a wider matrix.
class StridedFactor {
 public:
  StridedFactor(const Factor& factor, Storage storage, bool transposed, Place place) {
    Factor stored = factor;
    stored.Store(storage, transposed);
    operand_ = stored.Get();
    Widen(operand_.values, values_, place);
    Widen(operand_.codes8, codes8_, place);
    Widen(operand_.codes16, codes16_, place);
    scales_ = CopyAt(operand_.scales.data, place);
    operand_.scales.data = scales_.View();
  }

  const GemmOperand& Get() const { return operand_; }

 private:
  template <typename T>
  void Widen(MatrixSpan<const T>& view, Buffer<T>& memory, Place place) const {
    if (view.data == nullptr) return;
    constexpr size_t kBefore = 3, kBehind = 2;
    const auto [rows, cols] = operand_.Stored();
    const size_t stride = kBefore + cols + kBehind;
    std::vector<T> wide(rows * stride, T{77});
    for (size_t i = 0; i < rows * cols; ++i) {
      wide[i / cols * stride + kBefore + i % cols] = view.data[i];
    }
    memory = CopyAt(wide, place);
    view = memory.View().As(rows, stride).Columns(kBefore, cols);
  }

  Buffer<float> values_, scales_;
  Buffer<uint8_t> codes8_;
  Buffer<uint16_t> codes16_;
  GemmOperand operand_;
};

class DeviceGemmCall : public DeviceTest {
 protected:
  // An operand without memory: for calls that are refused before they read it.
  GemmOperand Operand(const char* format, size_t rows, size_t inner) {
    return cuda::WithCodes({.format = ParseFormat(format).spec},
                           reinterpret_cast<const void*>(size_t{256}),
                           rows,
                           inner,
                           false,
                           place());
  }
  std::string Refusal(const GemmOperand& a,
                      const GemmOperand& b,
                      const char* mode,
                      DeviceGemmEngine engine = DeviceGemmEngine::kAuto) {
    Buffer<float> out(place(), a.rows * b.rows);
    return ErrorOf([&] { Gemm(a, b, ParseAccumulationMode(mode), out.View(), engine); });
  }

  oracle::TestRandom random_{7};
};

TEST_F(DeviceGemmCall, RefusesWhatTheDeviceDoesNotCompute) {
  const auto expect = [&](const std::string& message, const char* part) {
    EXPECT_THAT(message, HasSubstr(part));
  };
  expect(Refusal(Operand("e5m2", 16, 16), Operand("e5m2", 16, 16), "hopper-fp8-fast"),
         "no product of 16 x 16 of e5m2 by 16 x 16 of e5m2 under mode hopper-fp8-fast");
  expect(Refusal(Operand("bf16", 16, 16), Operand("fp16", 16, 16), "hopper-bf16"), "no product");
  for (const char* const mode : {"trunc:24,16,8192", "trunc:25,8,8192"}) {
    expect(Refusal(Operand("bf16", 16, 16), Operand("bf16", 16, 16), mode), "trunc:25,16,PROMOTE");
  }
  // Kernels that take one product after another belong to no engine.
  for (const DeviceGemmEngine engine : {DeviceGemmEngine::kLibrary, DeviceGemmEngine::kOwn}) {
    expect(Refusal(Operand("e4m3fn", 16, 16), Operand("e4m3fn", 16, 16), "fp32", engine),
           "has no product e4m3fn 16 x 16 times e4m3fn 16 x 16 under mode fp32");
    expect(Refusal(Operand("int8", 16, 131072), Operand("int8", 16, 131072), "exact", engine),
           "has no product int8 16 x 131072");
  }
  expect(
      Refusal(Operand("bf16", 16, 16), Operand("bf16", 16, 16), "library", DeviceGemmEngine::kOwn),
      "engine own");
  Buffer<int32_t> sums(place(), 256);
  expect(ErrorOf([&] {
           (void)GemmInt32(Operand("int8", 16, 131072), Operand("int8", 16, 131072), sums.View());
         }),
         "GemmInt32: 131072 products, expected at most 131071 on a device");
}

TEST_F(DeviceGemmCall, OperandsMayBeColumnsOfWiderMatrices) {
  for (const NamedProduct& p : {NamedProduct{"e4m3fn", "e5m2", "fp32"},
                                NamedProduct{"bf16", "fp16", "fp64"},
                                NamedProduct{"int8", "int8", "exact"},
                                NamedProduct{"e4m3fn", "e5m2", "hopper-fp8-fast"},
                                NamedProduct{"bf16", "bf16", "hopper-bf16"}}) {
    const bool tensor_cores = std::string_view(p.mode).starts_with("hopper");
    if (tensor_cores && !Device().IsHopper()) continue;
    for (const Shape& shape : {Shape{1, 40, 7}, Shape{17, 33, 65}, Shape{48, 64, 160}}) {
      Factor a = Factor::Random(
          p.FormatA(), shape.rows_a, shape.inner, Spread::kNormal, Side::kLeft, random_);
      Factor b = Factor::Random(
          p.FormatB(), shape.rows_b, shape.inner, Spread::kNormal, Side::kRight, random_);
      PutScales(a, ScalesFor::kRows, random_);
      PutScales(b, ScalesFor::kTensor, random_);
      const std::vector<float> want = HostProduct(a, b, p.Rule());
      for (const Storage storage : {Storage::kCodes, Storage::kValues}) {
        if (tensor_cores && storage == Storage::kValues) continue;  // a device does not encode them
        for (const bool transposed_a : {false, true}) {
          for (const bool transposed_b : {false, true}) {
            for (const Place at : {Place(), place()}) {
              const StridedFactor left(a, storage, transposed_a, at);
              const StridedFactor right(b, storage, transposed_b, at);
              FloatBuffer out(at);
              Gemm(left.Get(), right.Get(), p.Rule(), out.Renew(a.rows(), b.rows()));
              EXPECT_TRUE(SameMatrix(ToVector(out.View()), want, b.rows()))
                  << p.mode << " on the " << ToString(at) << (transposed_a ? ", a transposed" : "")
                  << (transposed_b ? ", b transposed" : "") << "\na: " << a.Describe();
            }
          }
        }
      }
    }
  }
  // Integers too.
  const Factor a = Factor::Random(kInt8, 17, 65, Spread::kAllCodes, Side::kLeft, random_);
  const Factor b = Factor::Random(kInt8, 33, 65, Spread::kAllCodes, Side::kRight, random_);
  std::vector<int32_t> sums[2];
  for (const Place at : {Place(), place()}) {
    const StridedFactor left(a, Storage::kCodes, true, at), right(b, Storage::kCodes, false, at);
    Buffer<int32_t> out(at, a.rows() * b.rows());
    EXPECT_TRUE(GemmInt32(left.Get(), right.Get(), out.View()));
    sums[at.IsHost() ? 0 : 1] = ToVector(out.View());
  }
  EXPECT_EQ(sums[1], sums[0]);
}

TEST_F(DeviceGemmCall, IntegerSumsAreExactUpToTheLargest) {
  const size_t inner = kMostProductsOfAnyInt8;
  for (const auto& [code, sum] : {std::pair{0x81u, 2114044159}, std::pair{0x80u, 2147467264}}) {
    const Factor a(kInt8, 3, inner, std::vector<uint32_t>(3 * inner, code));
    const Factor b(kInt8, 2, inner, std::vector<uint32_t>(2 * inner, code));
    const DeviceFactor left(a, false), right(b, true);
    Buffer<int32_t> out(place(), 6);
    EXPECT_TRUE(GemmInt32(left.Get(), right.Get(), out.View()));
    EXPECT_EQ(ToVector(out.View()), std::vector<int32_t>(6, sum));
  }
}

TEST_F(DeviceGemmCall, IntegerSumsAreThoseOfTheProcessor) {
  for (const Shape& shape : {Shape{64, 48, 272}, Shape{17, 33, 65}, Shape{1, 1, 1}}) {
    Factor a =
        Factor::Random(kInt8, shape.rows_a, shape.inner, Spread::kAllCodes, Side::kLeft, random_);
    Factor b =
        Factor::Random(kInt8, shape.rows_b, shape.inner, Spread::kAllCodes, Side::kRight, random_);
    a.Store(Storage::kCodes, false);
    b.Store(Storage::kCodes, false);
    std::vector<int32_t> want(a.rows() * b.rows());
    ASSERT_TRUE(GemmInt32(a.Get(), b.Get(), want));
    const DeviceFactor left(a, true), right(b, false);
    Buffer<int32_t> out(place(), want.size());
    EXPECT_TRUE(GemmInt32(left.Get(), right.Get(), out.View()));
    EXPECT_EQ(ToVector(out.View()), want);
    const ExecutionState state;
    ForceBackend("cuda");
    std::vector<int32_t> staged(want.size());
    EXPECT_TRUE(GemmInt32(a.Get(), b.Get(), staged));
    EXPECT_EQ(staged, want);
  }
}

// Parts of the inner dimension: none, one, several, and a shorter last one.
TEST_F(DeviceGemmCall, SumsInPartsEqualTheCpuAtEveryLength) {
  if (!Device().IsHopper()) GTEST_SKIP() << Device().name << " is no Hopper";
  for (const FormatSpec& format : {kBf16, kFp16}) {
    for (const size_t promote : {size_t{16}, size_t{144}, size_t{8192}}) {
      const AccumulationMode mode = ParseAccumulationMode(fmt::format("trunc:25,16,{}", promote));
      for (const size_t inner :
           {promote - 1, promote, promote + 1, promote + 16, 2 * promote, 4 * promote + 7}) {
        const Spread spread = kSpreads[inner % std::size(kSpreads)];
        Factor a = Factor::Random(format, 40, inner, spread, Side::kLeft, random_);
        Factor b = Factor::Random(format, 48, inner, spread, Side::kRight, random_);
        if (inner % 2 != 0) PutScales(a, ScalesFor::kRows, random_);
        const std::vector<float> want = HostProduct(a, b, mode);
        for (const bool transposed : {false, true}) {
          const DeviceFactor left(a, transposed), right(b, transposed);
          for (const Element element : {Element::kFloat32, Element::kBfloat16}) {
            const std::vector<uint32_t> got =
                DeviceProduct(left.Get(), right.Get(), mode, element, DeviceGemmEngine::kAuto);
            EXPECT_TRUE(SameBits(got, BitsOf(want, element), b.rows()))
                << ToString(mode) << (transposed ? ", transposed" : "") << "\na: " << a.Describe();
          }
        }
      }
    }
  }
}

// More sums than the memory for them holds: added in several groups, and nothing is allocated again.
TEST_F(DeviceGemmCall, SumsOfManyPartsTakeBoundedMemory) {
  if (!Device().IsHopper()) GTEST_SKIP() << Device().name << " is no Hopper";
  const size_t rows = 2048, columns = 2064, inner = 20 * 32 + 16;  // 21 parts of 16 MiB
  const AccumulationMode mode = ParseAccumulationMode("trunc:25,16,32");
  ASSERT_EQ(cuda::PartSlots(inner, 32, 4 * rows * columns), 15u);
  Factor a = Factor::Random(kBf16, rows, inner, Spread::kNormal, Side::kLeft, random_);
  const Factor b = Factor::Random(kBf16, columns, inner, Spread::kNormal, Side::kRight, random_);
  PutScales(a, ScalesFor::kRows, random_);
  const std::vector<float> want = HostProduct(a, b, mode);
  const DeviceFactor left(a, true), right(b, true);
  size_t allocated = 0;
  for (const Element element : {Element::kFloat32, Element::kBfloat16}) {
    const std::vector<uint32_t> got =
        DeviceProduct(left.Get(), right.Get(), mode, element, DeviceGemmEngine::kAuto);
    EXPECT_TRUE(SameBits(got, BitsOf(want, element), b.rows()));
    EXPECT_TRUE(allocated == 0 || AllocatedDeviceBytes() == allocated);
    allocated = AllocatedDeviceBytes();
  }
}

// Its bits are its own; they are near the exact sums.
TEST_F(DeviceGemmCall, RuleLibraryIsNearTheExactProduct) {
  for (const char* const format : {"bf16", "fp16", "e4m3fn"}) {
    const FormatSpec spec = ParseFormat(format).spec;
    for (const ScalesFor scales : kScalesFor) {
      Factor a = Factor::Random(spec, 64, 512, Spread::kNormal, Side::kLeft, random_);
      Factor b = Factor::Random(spec, 96, 512, Spread::kNormal, Side::kRight, random_);
      PutScales(a, scales, random_);
      PutScales(b, scales, random_);
      const std::vector<float> want = HostProduct(a, b, ParseAccumulationMode("fp64"));
      const DeviceFactor left(a, false), right(b, false);
      const std::vector<uint32_t> got = DeviceProduct(left.Get(),
                                                      right.Get(),
                                                      ParseAccumulationMode("library"),
                                                      Element::kFloat32,
                                                      DeviceGemmEngine::kAuto);
      double error = 0, norm = 0;
      for (size_t i = 0; i < want.size(); ++i) {
        const double x = std::bit_cast<float>(got[i]), y = want[i];
        error += (x - y) * (x - y);
        norm += y * y;
      }
      const double bound = spec.StorageBytes() == 1 ? 2e-3 : 1e-6;
      EXPECT_LE(std::sqrt(error / norm), bound) << format << ", scales " << int(scales);
    }
  }
}

// A view without elements may have an address; every kernel then scales by 1.
TEST_F(DeviceGemmCall, ScalesWithoutElementsAreNone) {
  const Factor a = Factor::Random(kInt8, 17, 65, Spread::kAllCodes, Side::kLeft, random_);
  const Factor b = Factor::Random(kInt8, 33, 65, Spread::kAllCodes, Side::kRight, random_);
  const std::vector<uint32_t> want =
      BitsOf(HostProduct(a, b, AccumulationMode{}), Element::kFloat32);
  const DeviceFactor left(a, false), right(b, false);
  const Buffer<float> seven = CopyAt(std::vector<float>{7}, place());
  GemmOperand x = left.Get(), y = right.Get();
  x.scales.data = y.scales.data = seven.View().Columns(0, 0);
  for (const DeviceGemmEngine engine : {DeviceGemmEngine::kAuto, DeviceGemmEngine::kLibrary}) {
    const std::vector<uint32_t> got =
        DeviceProduct(x, y, AccumulationMode{}, Element::kFloat32, engine);
    EXPECT_TRUE(SameBits(got, want, b.rows())) << ToString(engine);
  }
}

// Modes that take one product after another have kernels for any format and any scales.
TEST_F(DeviceGemmCall, HostCallsOfOrderedModesRunOnTheDevice) {
  const ExecutionState state;
  for (const char* const name : {"fp32", "fp64", "fp32-chunked:16"}) {
    for (const char* const format : {"e2m1fn", "int8", "bf16"}) {
      const AccumulationMode mode = ParseAccumulationMode(name);
      const FormatSpec spec = ParseFormat(format).spec;
      Factor a = Factor::Random(spec, 9, 96, Spread::kNormal, Side::kLeft, random_);
      const Factor b = Factor::Random(spec, 7, 96, Spread::kNormal, Side::kRight, random_);
      a.SetScales(std::vector<float>(27, 0.375f),
                  {.row_stride = 3, .segment = 32, .segment_stride = 1});
      ForceBackend(AvailableBackends().front());
      const std::vector<float> want = HostProduct(a, b, mode);
      EXPECT_TRUE(IsOffloaded(a, b, mode)) << name << " " << format;
      ForceBackend("cuda");
      EXPECT_TRUE(SameMatrix(GemmResult(a, b, mode), want, b.rows())) << name << " " << format;
    }
  }
}

// The processor serves what the device does not.
TEST_F(DeviceGemmCall, ScalesAlongTheInnerDimensionStayOnTheProcessor) {
  Factor a = Factor::Random(kE4M3fn, 8, 64, Spread::kNormal, Side::kLeft, random_);
  const Factor b = Factor::Random(kE4M3fn, 8, 64, Spread::kNormal, Side::kRight, random_);
  a.SetScales({2, 3}, {.segment = 32, .segment_stride = 1});
  const AccumulationMode mode = ParseAccumulationMode("hopper-fp8-fast");
  EXPECT_FALSE(IsOffloaded(a, b, mode));
  const std::vector<float> want = DefinedProduct(a, b, mode);
  const ExecutionState state;
  ForceBackend("cuda");
  EXPECT_TRUE(SameMatrix(GemmResult(a, b, mode), want, b.rows()));
}

TEST(DeviceGemmEngineNames, AreReadBack) {
  for (const char* const name : {"auto", "library", "own"}) {
    EXPECT_EQ(ToString(ParseDeviceGemmEngine(name)), name);
  }
  EXPECT_THROW(ParseDeviceGemmEngine("fast"), Error);
}

}  // namespace
}  // namespace numsim
