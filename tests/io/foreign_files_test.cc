// One file of each kind that NumPy and the safetensors library write, from tests/io/recorded.
#include <cstdlib>
#include <map>
#include <set>

#include "numsim/io/npy.h"
#include "numsim/io/safetensors.h"
#include "numsim/io/tensor_file.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A folder or "" if the tests do not know where the repository is.
fs::path Recorded() {
  const char* const source = std::getenv("NUMSIM_SOURCE_DIR");
  return source == nullptr ? fs::path() : fs::path(source) / "tests/io/recorded";
}

class ForeignFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Recorded().empty()) GTEST_SKIP() << "NUMSIM_SOURCE_DIR is not set";
  }
};

double ElementOf(const Array& array, size_t i) {
  switch (array.type) {
    case ElementType::kI8:
    case ElementType::kU8:
      return array.Data<uint8_t>()[i];
    case ElementType::kU16:
      return array.Data<uint16_t>()[i];
    case ElementType::kU32:
      return array.Data<uint32_t>()[i];
    case ElementType::kU64:
      return static_cast<double>(array.Data<uint64_t>()[i]);
    default:
      return ToFloat64(array, "x")[i];
  }
}

struct ReadableNpy {
  ElementType type;
  std::vector<size_t> shape;
};

// The elements of these files are 0, 1, 2, ... in C order.
const std::map<std::string, ReadableNpy>& ReadableNpys() {
  static const std::vector<size_t> matrix = {2, 3};
  static const std::map<std::string, ReadableNpy> files = {
      {"float16", {ElementType::kF16, matrix}},
      {"float32", {ElementType::kF32, matrix}},
      {"float64", {ElementType::kF64, matrix}},
      {"int8", {ElementType::kI8, matrix}},
      {"int16", {ElementType::kI16, matrix}},
      {"int32", {ElementType::kI32, matrix}},
      {"int64", {ElementType::kI64, matrix}},
      {"uint8", {ElementType::kU8, matrix}},
      {"uint16", {ElementType::kU16, matrix}},
      {"uint32", {ElementType::kU32, matrix}},
      {"uint64", {ElementType::kU64, matrix}},
      {"big-float16", {ElementType::kF16, matrix}},
      {"big-float32", {ElementType::kF32, matrix}},
      {"big-float64", {ElementType::kF64, matrix}},
      {"big-uint16", {ElementType::kU16, matrix}},
      {"big-uint32", {ElementType::kU32, matrix}},
      {"big-uint64", {ElementType::kU64, matrix}},
      {"fortran", {ElementType::kF32, matrix}},
      {"fortran-3d", {ElementType::kF64, {2, 3, 4}}},
      {"empty", {ElementType::kF32, {0, 3}}},
      {"rank-9", {ElementType::kF32, {1, 2, 1, 2, 1, 2, 1, 1, 1}}},
      {"version-1", {ElementType::kF32, matrix}},
      {"version-2", {ElementType::kF32, matrix}},
      {"version-3", {ElementType::kF32, matrix}},
  };
  return files;
}

// And these are refused, with this in the message.
const std::map<std::string, std::string>& RefusedFiles() {
  static const std::string structured = "expected a simple element type, not a structured one";
  static const std::map<std::string, std::string> files = {
      {"bool.npy", "descr is '|b1'"},
      {"longdouble.npy", "descr is '<f16'"},
      {"complex64.npy", "descr is '<c8'"},
      {"complex128.npy", "descr is '<c16'"},
      {"bytes.npy", "descr is '|S2'"},
      {"unicode.npy", "descr is '<U2'"},
      {"datetime.npy", "descr is '<M8[D]'"},
      {"timedelta.npy", "descr is '<m8[s]'"},
      {"object.npy", "descr is '|O'"},
      {"void.npy", "descr is '|V3'"},
      {"structured.npy", structured},
      {"structured-utf8.npy", structured},
      {"subarray.npy", structured},
      {"archive.npz", ".npz is an archive of .npy files"},
      {"model.safetensors.index.json", "give one of the .safetensors files that it lists"},
  };
  return files;
}

// The dtypes of .safetensors files by the name of the file, and whether numsim reads them. Their
// bytes are 0, 1, 2, ...
const std::map<std::string, std::pair<std::string, bool>>& Dtypes() {
  static const std::map<std::string, std::pair<std::string, bool>> dtypes = {
      {"float64", {"F64", true}},
      {"float32", {"F32", true}},
      {"float16", {"F16", true}},
      {"bfloat16", {"BF16", true}},
      {"float8_e4m3fn", {"F8_E4M3", true}},
      {"float8_e5m2", {"F8_E5M2", true}},
      {"uint8", {"U8", true}},
      {"uint16", {"U16", true}},
      {"uint32", {"U32", true}},
      {"uint64", {"U64", true}},
      {"int8", {"I8", true}},
      {"int16", {"I16", true}},
      {"int32", {"I32", true}},
      {"int64", {"I64", true}},
      {"bool", {"BOOL", true}},
      {"complex64", {"C64", false}},
      {"float8_e8m0fnu", {"F8_E8M0", true}},
      {"float4_e2m1fn_x2", {"F4", true}},
  };
  return dtypes;
}

TEST_F(ForeignFiles, NumpysArraysAreRead) {
  for (const auto& [name, expected] : ReadableNpys()) {
    SCOPED_TRACE(name);
    const Array array = ReadNpy(Recorded() / (name + ".npy"));
    EXPECT_EQ(array.type, expected.type);
    EXPECT_EQ(array.shape, expected.shape);
    for (size_t i = 0; i < array.Elements(); ++i) EXPECT_EQ(ElementOf(array, i), i);
  }
  const Array scalar = ReadNpy(Recorded() / "zero-dimensional.npy");
  EXPECT_TRUE(scalar.shape.empty());
  EXPECT_EQ(ElementOf(scalar, 0), 3);
}

// NumPy writes bfloat16 of ml_dtypes as V2, without its name. The numbers are 0, 1, 2, ...
TEST_F(ForeignFiles, BytesOfAFormatThatNumpyDoesNotKnowAreRead) {
  const Array array = ReadNpy(Recorded() / "bfloat16.npy");
  EXPECT_EQ(array.type, ElementType::kRaw16);
  EXPECT_THAT(ErrorOf([&] { ToFloat32(array, "x"); }), HasSubstr("the file does not name"));
  const Array named{ElementType::kBf16, array.shape, array.bytes};
  EXPECT_EQ(ToFloat32(named, "x"), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST_F(ForeignFiles, OthersAreRefusedWithTheReason) {
  for (const auto& [name, message] : RefusedFiles()) {
    const fs::path path = Recorded() / name;
    EXPECT_THAT(ErrorOf([&] { TensorFile(path).Read(""); }),
                ::testing::AllOf(HasSubstr(path.string() + ": "), HasSubstr(message)));
  }
}

TEST_F(ForeignFiles, EveryDtypeOfSafetensorsIsReadOrRefused) {
  for (const auto& [name, dtype] : Dtypes()) {
    SCOPED_TRACE(name);
    const SafetensorsFile file(Recorded() / (name + ".safetensors"));
    ASSERT_EQ(file.Tensors().size(), 1u);
    EXPECT_EQ(file.Tensors()[0].dtype, dtype.first);
    EXPECT_EQ(file.Metadata().size(), 1u);
    if (!dtype.second) {
      EXPECT_THAT(ErrorOf([&] { file.Read("x"); }),
                  HasSubstr("has dtype " + dtype.first + ", which numsim does not read"));
      continue;
    }
    const Array array = file.Read("x");
    const bool packed = array.type == ElementType::kF4E2M1;  // two codes per byte in the file
    EXPECT_EQ(array.shape, (std::vector<size_t>{2, packed ? 6u : 3u}));
    for (size_t i = 0; i < array.bytes.size(); ++i) {
      const size_t byte = packed ? (i % 2 == 0 ? i / 2 % 16 : i / 2 / 16) : i;
      EXPECT_EQ(array.bytes[i], std::byte(byte));
    }
  }
}

TEST_F(ForeignFiles, ScalarsEmptyTensorsAndUnicodeNamesAreRead) {
  const SafetensorsFile file(Recorded() / "many.safetensors");
  EXPECT_EQ(file.Tensors().size(), 5u);
  EXPECT_TRUE(file.Read("scalar").shape.empty());
  EXPECT_EQ(file.Read("empty").shape, (std::vector<size_t>{0, 4}));
  EXPECT_EQ(file.Read("\xC3\xA9").Elements(), 2u);
  EXPECT_TRUE(SafetensorsFile(Recorded() / "none.safetensors").Tensors().empty());
}

// A file that is added without an expectation would not be tested.
TEST_F(ForeignFiles, EachFileIsInOneTable) {
  std::set<std::string> expected = {"bfloat16.npy",
                                    "make_files.py",
                                    "zero-dimensional.npy",
                                    "many.safetensors",
                                    "none.safetensors"};
  for (const auto& [name, file] : ReadableNpys()) expected.insert(name + ".npy");
  for (const auto& [name, message] : RefusedFiles()) expected.insert(name);
  for (const auto& [name, dtype] : Dtypes()) expected.insert(name + ".safetensors");
  std::set<std::string> found;
  for (const auto& entry : fs::directory_iterator(Recorded())) {
    found.insert(entry.path().filename().string());
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace numsim
