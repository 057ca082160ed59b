#include "numsim/io/tensor_file.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "numsim/io/npy.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using TensorFileTest = IoTest;

template <typename T>
Array ArrayOf(ElementType type, const std::vector<T>& values) {
  Array array{type, {values.size()}, std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

std::string TwoTensors() {
  const std::string json = R"({"w":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},)"
                           R"("n":{"dtype":"F5_NEW","shape":[1],"data_offsets":[2,3]}})";
  return static_cast<char>(json.size()) + std::string(7, '\0') + json + std::string("\0\x3c\1", 3);
}

TEST_F(TensorFileTest, NpyIsOneTensorNamedAfterTheFile) {
  WriteNpy(Path("layer.0.npy"), ArrayOf<float>(ElementType::kF32, {1.5f, -2}));
  const TensorFile file(Path("layer.0.npy"));
  ASSERT_EQ(file.Tensors().size(), 1u);
  EXPECT_EQ(file.Tensors()[0].name, "layer.0");
  EXPECT_EQ(file.Tensors()[0].dtype, "float32");
  EXPECT_EQ(file.Tensors()[0].shape, std::vector<size_t>{2});
  EXPECT_EQ(ToFloat32(file.Read(""), "x"), (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(ToFloat32(file.Read("layer.0"), "x"), (std::vector<float>{1.5f, -2}));
}

TEST_F(TensorFileTest, SafetensorsAreReadByName) {
  const TensorFile file(Put("x.SafeTensors", TwoTensors()));
  EXPECT_EQ(file.Tensors().size(), 2u);
  EXPECT_EQ(ToFloat32(file.Read("w"), "w"), std::vector<float>{1});
  EXPECT_EQ(file.Describe(file.Find("w")), Path("x.SafeTensors").string() + ": tensor 'w'");
}

TEST_F(TensorFileTest, WrongNamesAndExtensionsAreErrorsThatOfferTheRightOnes) {
  const TensorFile file(Put("x.safetensors", TwoTensors()));
  ExpectMessage(ErrorOf([&] { file.Find("v"); }), {"x.safetensors", "no tensor 'v'", "w, n"});
  ExpectMessage(ErrorOf([&] { file.Find(""); }), {"must be named", "w, n"});
  ExpectMessage(ErrorOf([&] { file.Read("n"); }), {"'n'", "F5_NEW"});
  ExpectMessage(ErrorOf([&] { TensorFile(Put("x.bin", "")); }),
                {"x.bin", "'.bin'", ".safetensors"});
  ExpectMessage(ErrorOf([&] { TensorFile(Path("no.npy")); }), {"no.npy", "No such file"});
}

TEST(ToFloat32, WidensEveryFloatExactly) {
  const std::vector<float> f16 = ToFloat32(
      ArrayOf<uint16_t>(ElementType::kF16, {0x3C00, 0x0001, 0xFBFF, 0x8000, 0x7C00}), "a");
  EXPECT_EQ(f16, (std::vector<float>{1, 0x1p-24f, -65504, -0.0f, HUGE_VALF}));
  EXPECT_TRUE(std::signbit(f16[3]));
  EXPECT_EQ(ToFloat32(ArrayOf<uint16_t>(ElementType::kBf16, {0x3F80, 0x0001, 0xFF80}), "a"),
            (std::vector<float>{1, 0x1p-133f, -HUGE_VALF}));
  EXPECT_EQ(ToFloat32(ArrayOf<uint8_t>(ElementType::kF8E4M3, {0x38, 0x01, 0x7E, 0xFE}), "a"),
            (std::vector<float>{1, 0x1p-9f, 448, -448}));
  EXPECT_EQ(ToFloat32(ArrayOf<uint8_t>(ElementType::kF8E5M2, {0x3C, 0x01, 0x7B, 0xFC}), "a"),
            (std::vector<float>{1, 0x1p-16f, 57344, -HUGE_VALF}));
  EXPECT_TRUE(std::isnan(ToFloat32(ArrayOf<uint8_t>(ElementType::kF8E4M3, {0x7F}), "a")[0]));
}

TEST(ToFloat32, KeepsTheBitsOfFloat32) {
  const std::vector<uint32_t> bits = {0x7FC12345, 0xFFC00001, 0x00000001, 0x80000000};
  const std::vector<float> values = ToFloat32(ArrayOf(ElementType::kF32, bits), "a");
  for (size_t i = 0; i < bits.size(); ++i) EXPECT_EQ(std::bit_cast<uint32_t>(values[i]), bits[i]);
}

TEST(ToFloat64, TakesFloat64AndWidensTheRest) {
  EXPECT_EQ(ToFloat64(ArrayOf<double>(ElementType::kF64, {0.1, 1e300}), "a"),
            (std::vector<double>{0.1, 1e300}));
  EXPECT_EQ(ToFloat64(ArrayOf<float>(ElementType::kF32, {0.1f}), "a"), std::vector<double>{0.1f});
  EXPECT_EQ(ToFloat64(ArrayOf<uint8_t>(ElementType::kF8E5M2, {0x01}), "a"),
            std::vector<double>{0x1p-16});
}

TEST(ToFloat32, TakesFloat64ThatItHoldsExactly) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> wide = {1.5, -0.0, 0x1p-149, infinity, std::nan("")};
  const std::vector<float> narrow = ToFloat32(ArrayOf<double>(ElementType::kF64, wide), "a");
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(static_cast<double>(narrow[i]), wide[i]);
  EXPECT_TRUE(std::signbit(narrow[1]));
  EXPECT_TRUE(std::isnan(narrow[4]));
  for (const double other : {0x1p-150, 1e39, 1 + 0x1p-24, 0x1p128}) {
    EXPECT_NE(ErrorOf([&] { ToFloat32(ArrayOf<double>(ElementType::kF64, {other}), "a"); }), "");
  }
}

TEST(ToFloat, IntegersAreTakenIfTheyAreHeldExactly) {
  const int64_t wide = (int64_t{1} << 60) + (int64_t{1} << 37);  // 24 bits
  const std::vector<int64_t> held = {0, -3, wide, INT64_MIN};
  const Array array = ArrayOf<int64_t>(ElementType::kI64, held);
  const std::vector<float> values = ToFloat32(array, "a");
  EXPECT_EQ(values, (std::vector<float>{0, -3, static_cast<float>(wide), -0x1p63f}));
  EXPECT_EQ(ToFloat64(ArrayOf<int16_t>(ElementType::kI16, {-7}), "a"), std::vector<double>{-7});
  EXPECT_EQ(ToFloat32(ArrayOf<uint64_t>(ElementType::kU64, {uint64_t{1} << 63}), "a"),
            std::vector<float>{0x1p63f});
  ExpectMessage(ErrorOf([] {
                  ToFloat32(ArrayOf<int32_t>(ElementType::kI32, {1, 16777217}), "in.npy");
                }),
                {"in.npy", "int32", "element 1", "16777217", "float32"});
  EXPECT_EQ(ToFloat64(ArrayOf<int32_t>(ElementType::kI32, {16777217}), "a"),
            std::vector<double>{16777217});
  ExpectMessage(
      ErrorOf([] { ToFloat64(ArrayOf<uint64_t>(ElementType::kU64, {~uint64_t{0}}), "in.npy"); }),
      {"in.npy", "uint64", "element 0", "18446744073709551615", "float64"});
}

TEST(ToFloat, CodesAndTooWideFloatsAreErrorsThatNameTheArray) {
  for (const ElementType type : {ElementType::kU8, ElementType::kU16, ElementType::kU32}) {
    const Array array{type, {0}, {}};
    ExpectMessage(ErrorOf([&] { ToFloat32(array, "in.npy"); }), {"in.npy", "uint", "codes"});
    ExpectMessage(ErrorOf([&] { ToFloat64(array, "in.npy"); }), {"in.npy", "uint", "codes"});
  }
  ExpectMessage(ErrorOf([] {
                  ToFloat32(ArrayOf<double>(ElementType::kF64, {1.5, 0.1}), "in.npy");
                }),
                {"in.npy", "float64", "element 1", "0.1", "exactly"});
}

}  // namespace
}  // namespace numsim
