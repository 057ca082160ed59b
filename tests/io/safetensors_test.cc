#include "numsim/io/safetensors.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using SafetensorsTest = IoTest;

std::string SafetensorsOf(std::string_view json, std::string_view data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(json.size() >> 8 * i & 0xFF);
  return bytes.append(json).append(data);
}

std::string Tensor(std::string_view name,
                   std::string_view dtype,
                   std::string_view shape,
                   std::string_view offsets) {
  return fmt::format(
      R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

TEST_F(SafetensorsTest, TensorsAreListedInTheOrderOfTheirData) {
  const std::string json = "{" + Tensor("b", "F32", "[2]", "[6,14]") + "," +
                           Tensor("a", "BF16", "[1,3]", "[0,6]") +
                           R"(,"__metadata__":{"format":"pt","z":""},)" +
                           Tensor("scalar", "F64", "[]", "[14,22]") + "}   ";
  const SafetensorsFile file(Put("x.safetensors", SafetensorsOf(json, std::string(22, 'd'))));
  ASSERT_EQ(file.Tensors().size(), 3u);
  EXPECT_EQ(file.Tensors()[0].name, "a");
  EXPECT_EQ(file.Tensors()[0].dtype, "BF16");
  EXPECT_EQ(file.Tensors()[0].type, ElementType::kBf16);
  EXPECT_EQ(file.Tensors()[0].shape, (std::vector<size_t>{1, 3}));
  EXPECT_EQ(file.Tensors()[1].name, "b");
  EXPECT_EQ(file.Tensors()[2].name, "scalar");
  EXPECT_TRUE(file.Tensors()[2].shape.empty());
  using Texts = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(file.Metadata(), (Texts{{"format", "pt"}, {"z", ""}}));
}

TEST_F(SafetensorsTest, ReadsEverySupportedType) {
  const std::vector<std::pair<std::string, ElementType>> types = {
      {"F64", ElementType::kF64},
      {"F32", ElementType::kF32},
      {"F16", ElementType::kF16},
      {"BF16", ElementType::kBf16},
      {"F8_E4M3", ElementType::kF8E4M3},
      {"F8_E5M2", ElementType::kF8E5M2},
      {"U8", ElementType::kU8},
      {"U16", ElementType::kU16},
      {"U32", ElementType::kU32},
  };
  std::string json = "{", data;
  for (const auto& [dtype, type] : types) {
    const size_t begin = data.size();
    for (size_t i = 0; i < 3 * ElementBytes(type); ++i) data += static_cast<char>(data.size() * 3);
    json += (json.size() > 1 ? "," : "") +
            Tensor("t" + dtype, dtype, "[3]", fmt::format("[{},{}]", begin, data.size()));
  }
  const SafetensorsFile file(Put("x.safetensors", SafetensorsOf(json + "}", data)));
  std::string joined;
  for (const auto& [dtype, type] : types) {
    const Array array = file.Read("t" + dtype);
    EXPECT_EQ(array.type, type);
    EXPECT_EQ(array.shape, std::vector<size_t>{3});
    joined.append(array.Data<char>(), array.bytes.size());
  }
  EXPECT_EQ(joined, data);
}

TEST_F(SafetensorsTest, EmptyFilesAndEmptyTensorsAreFine) {
  EXPECT_TRUE(SafetensorsFile(Put("x", SafetensorsOf("{}", ""))).Tensors().empty());
  const std::string json = "{" + Tensor("full", "U8", "[2]", "[0,2]") + "," +
                           Tensor("e", "F32", "[0,4]", "[0,0]") + "," +
                           Tensor("f", "F32", "[0]", "[2,2]") + "}";
  const SafetensorsFile file(Put("x", SafetensorsOf(json, "ab")));
  EXPECT_EQ(file.Read("e").bytes.size(), 0u);
  EXPECT_EQ(file.Read("f").shape, std::vector<size_t>{0});
  EXPECT_EQ(file.Read("full").bytes.size(), 2u);
}

TEST_F(SafetensorsTest, OtherTypesAreListedButNotRead) {
  const std::string json = "{" + Tensor("waves", "C64", "[1]", "[0,8]") + "," +
                           Tensor("new", "F5_NEW", "[8]", "[8,13]") + "," +
                           Tensor("steps", "I64", "[1]", "[13,21]") + "}";
  const SafetensorsFile file(Put("x.safetensors", SafetensorsOf(json, std::string(21, 'd'))));
  EXPECT_EQ(file.Tensors().size(), 3u);
  EXPECT_FALSE(file.Tensors()[0].type);
  ExpectMessage(ErrorOf([&] { file.Read("waves"); }), {"x.safetensors", "'waves'", "C64"});
  ExpectMessage(ErrorOf([&] { file.Read("new"); }), {"'new'", "F5_NEW"});
  ExpectMessage(ErrorOf([&] { file.Read("no\n"); }), {"no tensor 'no\\x0a'"});
  EXPECT_EQ(file.Read("steps").type, ElementType::kI64);
}

// Packed codes start at the lowest bit of a byte. The bits are those of the bytes 0x21 0x43 0x65.
TEST_F(SafetensorsTest, PackedCodesGetAByteEach) {
  const auto read = [&](const char* dtype, const char* shape) {
    const std::string json = "{" + Tensor("x", dtype, shape, "[0,3]") + "}";
    const Array array = SafetensorsFile(Put("x", SafetensorsOf(json, "\x21\x43\x65"))).Read("x");
    std::vector<int> codes;
    for (const std::byte code : array.bytes) codes.push_back(std::to_integer<int>(code));
    return codes;
  };
  EXPECT_EQ(read("F4", "[2,3]"), (std::vector<int>{1, 2, 3, 4, 5, 6}));
  const std::vector<int> six = {0b100001, 0b001100, 0b010100, 0b011001};
  EXPECT_EQ(read("F6_E2M3", "[4]"), six);
  EXPECT_EQ(read("F6_E3M2", "[4]"), six);
}

struct BadJson {
  std::string json;
  std::string message;
};

// Each with 8 bytes of data.
TEST_F(SafetensorsTest, HeadersThatAreNotStrictlyRightAreErrors) {
  const std::string good = Tensor("a", "F32", "[2]", "[0,8]");
  const std::vector<BadJson> cases = {
      {"", "does not begin"},
      {" {" + good + "}", "does not begin"},
      {"\xef\xbb\xbf{" + good + "}", "does not begin"},
      {"[]", "does not begin"},
      {"{" + good, "not valid JSON"},
      {"{" + good + "}x", "not valid JSON"},
      {"{" + good + "}{}", "not valid JSON"},
      {"{" + good + ",}", "not valid JSON"},
      {std::string("{\"a\xff\":1}"), "not valid JSON"},
      {"{" + good + "," + good + "}", "'a' appears twice"},
      {"{" + good + R"(,"__metadata__":{},"__metadata__":{}})", "'__metadata__' appears twice"},
      {"{" + good + R"(,"__metadata__":{"k":"1","k":"2"}})", "'k' appears twice"},
      {"{" + good + R"(,"__metadata__":{"k":1}})", "__metadata__ 'k' is a number"},
      {"{" + good + R"(,"__metadata__":{"k":{}}})", "__metadata__ 'k' is an object"},
      {"{" + good + R"(,"__metadata__":null})", "'__metadata__' is null"},
      {R"({"a":3})", "'a' is a number"},
      {R"({"a":[]})", "a list"},
      {R"({"a":{}})", "tensor 'a': dtype is missing"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "data_offsets is missing"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", "shape is missing"},
      {R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "appears twice"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", "unknown field 'x'"},
      {R"({"a":{"dtype":3,"shape":[2],"data_offsets":[0,8]}})", "dtype has a number"},
      {R"({"a":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})", "a list"},
      {R"({"a":{"dtype":"F32","shape":"2","data_offsets":[0,8]}})", "shape has a string"},
      {R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", "shape has a number"},
      {"{" + Tensor("a", "F32", "[[2]]", "[0,8]") + "}", "shape has a list"},
      {"{" + Tensor("a", "F32", "[{}]", "[0,8]") + "}", "shape has an object"},
      {"{" + Tensor("a", "F32", "[-2]", "[0,8]") + "}", "negative"},
      {"{" + Tensor("a", "F32", "[2.0]", "[0,8]") + "}", "not an integer"},
      {"{" + Tensor("a", "F32", "[true]", "[0,8]") + "}", "a boolean"},
      {"{" + Tensor("a", "F32", "[null]", "[0,8]") + "}", "null"},
      {"{" + Tensor("a", "F32", "[99999999999999999999]", "[0,8]") + "}", "not an integer"},
      {"{" + Tensor("a", "F32", "[4294967296,4294967296]", "[0,8]") + "}", "too large"},
      {"{" + Tensor("a", "F32", "[0,4294967296,4294967296]", "[0,0]") + "}", "too large"},
      {"{" + Tensor("a", "F32", "[2]", "[0]") + "}", "too few"},
      {"{" + Tensor("a", "F32", "[2]", "[]") + "}", "too few"},
      {"{" + Tensor("a", "F32", "[2]", "[0,8,9]") + "}", "a number"},
      {"{" + Tensor("a", "F32", "[3]", "[0,8]") + "}", "span 8 bytes, expected 12 for F32 (3,)"},
      {"{" + Tensor("a", "F4", "[3]", "[0,1]") + "}", "expected 1.5"},
      {"{" + Tensor("a", "F32", "[2]", "[8,0]") + "}", "do not lie within"},
      {"{" + Tensor("a", "F32", "[2]", "[4,12]") + "}", "do not lie within"},
      {"{" + Tensor("a", "F32", "[2]", "[18446744073709551608,18446744073709551615]") + "}",
       "do not lie within"},
      {"{" + Tensor("a", "F32", "[1]", "[4,8]") + "}", "begin at 4, expected 0"},
      {"{" + Tensor("a", "F32", "[1]", "[0,4]") + "}", "cover 4 bytes of data, found 8"},
      {"{}", "cover 0 bytes of data, found 8"},
      {"{" + good + "," + Tensor("b", "F32", "[1]", "[4,8]") + "}", "begin at 4, expected 8"},
      {"{" + good + "," + Tensor("b", "F32", "[2]", "[0,8]") + "}", "begin at 0, expected 8"},
  };
  for (const BadJson& bad : cases) {
    const auto path = Put("bad.safetensors", SafetensorsOf(bad.json, "12345678"));
    SCOPED_TRACE(bad.json);
    ExpectMessage(ErrorOf([&] { SafetensorsFile file(path); }), {path.string(), bad.message});
  }
}

TEST_F(SafetensorsTest, LengthsThatDoNotFitTheFileAreErrors) {
  const auto error_of = [&](std::string_view bytes) {
    return ErrorOf([&] { SafetensorsFile file(Put("bad", bytes)); });
  };
  ExpectMessage(error_of(""), {"0 bytes, too short"});
  ExpectMessage(error_of("1234567"), {"7 bytes, too short"});
  ExpectMessage(error_of({"\3\0\0\0\0\0\0\0{}", 10}), {"header of 3 bytes goes beyond"});
  ExpectMessage(error_of({"\1\xe1\xf5\5\0\0\0\0{}", 10}),
                {"100000001, expected at most 100000000"});
  ExpectMessage(error_of("\xff\xff\xff\xff\xff\xff\xff\xff{}"), {"18446744073709551615"});
  ExpectMessage(ErrorOf([&] { SafetensorsFile file(Path("no")); }), {"No such file"});
  ExpectMessage(ErrorOf([&] { SafetensorsFile file(Directory()); }), {"directory"});
}

// A recursive parser would run out of stack on these.
TEST_F(SafetensorsTest, DeepNestingIsAnErrorAndNoCrash) {
  for (const std::string& opening : {std::string("["), std::string("{\"a\":")}) {
    std::string json = "{\"a\":{\"shape\":";
    for (int i = 0; i < 1000000; ++i) json += opening;
    ExpectMessage(ErrorOf([&] { SafetensorsFile file(Put("bad", SafetensorsOf(json, ""))); }),
                  {"'a'"});
  }
  const std::string metadata = "{\"__metadata__\":" + std::string(1000000, '[');
  ExpectMessage(ErrorOf([&] { SafetensorsFile file(Put("bad", SafetensorsOf(metadata, ""))); }),
                {"__metadata__"});
}

// Any file must be read or refused with an Error; a crash is what the test is about.
TEST_F(SafetensorsTest, NoTruncationIsReadAndNoChangedByteCrashes) {
  const std::string good =
      SafetensorsOf(R"({"__metadata__":{"k":"v"},)" + Tensor("a", "F16", "[2,2]", "[0,8]") + "," +
                        Tensor("b", "U8", "[3]", "[8,11]") + "}",
                    "12345678abc");
  for (size_t size = 0; size < good.size(); ++size) {
    const auto path = Put("bad", good.substr(0, size));
    ExpectMessage(ErrorOf([&] { SafetensorsFile file(path); }), {path.string()});
  }
  for (size_t i = 0; i < good.size() - 11; ++i) {
    for (const int value : {0, 1, 10, 34, 44, 45, 46, 48, 57, 58, 91, 92, 93, 123, 125, 128, 255}) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      const auto path = Put("bad", bad);
      const std::string message = ErrorOf([&] {
        const SafetensorsFile file(path);
        for (const TensorInfo& tensor : file.Tensors()) file.Read(tensor.name);
      });
      EXPECT_THAT(message, Not(HasSubstr("\n")));
    }
  }
}

TEST_F(SafetensorsTest, ReadsARealModel) {
  const char* const data = std::getenv("NUMSIM_DATA_DIR");
  if (data == nullptr) GTEST_SKIP() << "NUMSIM_DATA_DIR is not set";
  const auto path = std::filesystem::path(data) / "tensors" / "silero_vad_16k.safetensors";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const SafetensorsFile file(path);
  EXPECT_EQ(file.Tensors().size(), 15u);
  for (const TensorInfo& tensor : file.Tensors()) {
    EXPECT_EQ(tensor.dtype, "F32") << tensor.name;
    const Array array = file.Read(tensor.name);
    EXPECT_EQ(array.bytes.size(), 4 * array.Elements());
    double sum = 0;
    for (size_t i = 0; i < array.Elements(); ++i) {
      float value;
      std::memcpy(&value, array.bytes.data() + 4 * i, 4);
      sum += std::abs(value);
    }
    const double mean = sum / static_cast<double>(array.Elements());
    EXPECT_TRUE(mean > 1e-4 && mean < 100) << tensor.name << " " << mean;
  }
}

}  // namespace
}  // namespace numsim
