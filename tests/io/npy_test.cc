#include "numsim/io/npy.h"

#include <cstring>
#include <numeric>

#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using NpyTest = IoTest;

// A version 1.0 file with that dict, not padded: the format only recommends it.
std::string FileOf(std::string_view dict, std::string_view data, char major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += major;
  bytes += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) bytes += static_cast<char>(dict.size() >> 8 * i);
  return bytes.append(dict).append(data);
}

std::string Dict(std::string_view descr, std::string_view shape, bool fortran = false) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n",
                     descr,
                     fortran ? "True" : "False",
                     shape);
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

template <typename T>
std::vector<T> ValuesOf(const Array& array) {
  std::vector<T> values(array.Elements());
  EXPECT_EQ(array.bytes.size(), values.size() * sizeof(T));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

Array Counting(ElementType type, std::vector<size_t> shape) {
  Array array{type, std::move(shape), {}};
  array.bytes.resize(array.Elements() * ElementBytes(type));
  for (size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<std::byte>(i * 7);
  return array;
}

TEST_F(NpyTest, RoundTripsEveryTypeAndRank) {
  for (const ElementType type : {ElementType::kF16,
                                 ElementType::kF32,
                                 ElementType::kF64,
                                 ElementType::kU8,
                                 ElementType::kU16,
                                 ElementType::kU32}) {
    const std::vector<std::vector<size_t>> shapes = {
        {}, {0}, {7}, {2, 3}, {3, 0, 2}, {1, 1, 1, 1, 1, 2}};
    for (const auto& shape : shapes) {
      const Array written = Counting(type, shape);
      WriteNpy(Path("a.npy"), written);
      const Array read = ReadNpy(Path("a.npy"));
      EXPECT_EQ(read.type, type);
      EXPECT_EQ(read.shape, shape);
      EXPECT_EQ(read.bytes, written.bytes);
      EXPECT_EQ(ReadNpyHeader(Path("a.npy")).data_offset % 64, 0u);
    }
  }
}

// The header that NumPy 2.4 writes for numpy.save(f, numpy.zeros((2, 3), numpy.float32)).
TEST_F(NpyTest, HeaderIsTheOneNumPyWrites) {
  WriteNpy(Path("a.npy"), Array{ElementType::kF32, {2, 3}, std::vector<std::byte>(24)});
  std::string expected("\x93NUMPY\1\0\x76\0", 10);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  expected.resize(127, ' ');
  expected += '\n';
  EXPECT_EQ(Bytes(Path("a.npy")), expected + std::string(24, '\0'));
}

TEST_F(NpyTest, LongHeaderBecomesVersion2) {
  const Array written = Counting(ElementType::kU8, std::vector<size_t>(30000, 1));
  WriteNpy(Path("a.npy"), written);
  EXPECT_EQ(Bytes(Path("a.npy"))[6], 2);
  const Array read = ReadNpy(Path("a.npy"));
  EXPECT_EQ(read.shape, written.shape);
  EXPECT_EQ(read.bytes, written.bytes);
  EXPECT_EQ(ReadNpyHeader(Path("a.npy")).data_offset % 64, 0u);
}

TEST_F(NpyTest, VersionsTwoAndThreeAreRead) {
  const std::string data = BytesOf<float>({1, 2});
  for (const char version : {1, 2, 3}) {
    const Array array = ReadNpy(Put("a.npy", FileOf(Dict("<f4", "(2,)"), data, version)));
    EXPECT_EQ(ValuesOf<float>(array), (std::vector<float>{1, 2}));
  }
}

TEST_F(NpyTest, FortranOrderComesOutInCOrder) {
  // The array has a[i][j][k] = 100 i + 10 j + k; in the file i runs fastest.
  std::vector<uint16_t> in_file, expected;
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) in_file.push_back(100 * i + 10 * j + k);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) expected.push_back(100 * i + 10 * j + k);
  const Array array =
      ReadNpy(Put("a.npy", FileOf(Dict("<u2", "(2, 3, 4)", true), BytesOf(in_file))));
  EXPECT_EQ(array.shape, (std::vector<size_t>{2, 3, 4}));
  EXPECT_EQ(ValuesOf<uint16_t>(array), expected);
}

TEST_F(NpyTest, FortranOrderOfFlatAndEmptyArraysIsCOrder) {
  const std::string data = BytesOf<float>({1, 2, 3});
  EXPECT_EQ(ValuesOf<float>(ReadNpy(Put("a.npy", FileOf(Dict("<f4", "(3,)", true), data)))),
            (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(ValuesOf<float>(ReadNpy(Put("a.npy", FileOf(Dict("<f4", "(3, 1)", true), data)))),
            (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(ReadNpy(Put("a.npy", FileOf(Dict("<f4", "(3, 0, 2)", true), ""))).Elements(), 0u);
  EXPECT_EQ(ReadNpy(Put("a.npy", FileOf(Dict("<f8", "()", true), BytesOf<double>({5})))).Elements(),
            1u);
}

TEST_F(NpyTest, BigEndianBytesAreSwapped) {
  const Array u2 = ReadNpy(Put("a.npy", FileOf(Dict(">u2", "(2,)"), "\x01\x02\x03\x04")));
  EXPECT_EQ(ValuesOf<uint16_t>(u2), (std::vector<uint16_t>{0x0102, 0x0304}));
  const Array f4 = ReadNpy(Put("a.npy", FileOf(Dict(">f4", "(1,)"), {"\x3f\x80\0\0", 4})));
  EXPECT_EQ(ValuesOf<float>(f4), std::vector<float>{1});
  const Array f8 = ReadNpy(Put("a.npy", FileOf(Dict(">f8", "(1,)"), {"\x40\0\0\0\0\0\0\0", 8})));
  EXPECT_EQ(ValuesOf<double>(f8), std::vector<double>{2});
}

TEST_F(NpyTest, EveryByteOrderOfOneByteTypesIsTheSame) {
  for (const char* const descr : {"|u1", "<u1", ">u1", "=u1"}) {
    EXPECT_EQ(ValuesOf<uint8_t>(ReadNpy(Put("a.npy", FileOf(Dict(descr, "(1,)"), "x")))),
              std::vector<uint8_t>{'x'});
  }
}

TEST_F(NpyTest, DictMayHaveAnyOrderQuotesAndSpacing) {
  for (const char* const dict : {"{\"shape\":(2,),'fortran_order':False,\"descr\":'<f4'}",
                                 "  { 'fortran_order' :False , 'shape' : ( 2 , ), 'descr':'=f4' ,}",
                                 "{'descr': '<f4',\n'fortran_order': False, 'shape': (2, )}  \n"}) {
    EXPECT_EQ(ValuesOf<float>(ReadNpy(Put("a.npy", FileOf(dict, BytesOf<float>({1, 2}))))),
              (std::vector<float>{1, 2}))
        << dict;
  }
}

struct BadDict {
  std::string dict;
  std::string message;
};

TEST_F(NpyTest, DictsThatAreNotStrictlyRightAreErrors) {
  const std::string order = "'fortran_order': False, ";
  const std::vector<BadDict> cases = {
      {"", "expected a dict"},
      {"[]", "expected a dict"},
      {"{}", "'descr' is missing"},
      {"{'descr': '<f4', 'shape': (2,)}", "'fortran_order' is missing"},
      {"{'descr': '<f4', 'fortran_order': False}", "'shape' is missing"},
      {"{'descr': '<f4', 'descr': '<f4', " + order + "'shape': (2,)}", "'descr' appears twice"},
      {"{'descr': '<f4', " + order + "'shape': (2,), 'shape': (2,)}", "'shape' appears twice"},
      {"{'descr': '<f4', " + order + "'shape': (2,), 'x': 1}", "unknown key 'x'"},
      {"{'descr': [('a', '<f4')], " + order + "'shape': (2,)}", "not a structured one"},
      {"{'descr': '<f4' " + order + "'shape': (2,)}", "',' or '}'"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "True or False"},
      {"{'descr': '<f4', 'fortran_order': Falsey, 'shape': (2,)}", "',' or '}'"},
      {"{'descr': '<f4', " + order + "'shape': (2)}", "',' after the only extent"},
      {"{'descr': '<f4', " + order + "'shape': 2}", "a tuple"},
      {"{'descr': '<f4', " + order + "'shape': [2]}", "a tuple"},
      {"{'descr': '<f4', " + order + "'shape': (,)}", "an extent"},
      {"{'descr': '<f4', " + order + "'shape': (-2,)}", "an extent from 0"},
      {"{'descr': '<f4', " + order + "'shape': (2.0,)}", "',' after the only extent"},
      {"{'descr': '<f4', " + order + "'shape': (99999999999999999999,)}", "an extent from 0"},
      {"{'descr': '<f4', " + order + "'shape': (9223372036854775808,)}", "an extent from 0"},
      {"{'descr': '<f4', " + order + "'shape': (9223372036854775807,)}", "too large"},
      {"{'descr': '<f4', " + order + "'shape': (4294967296, 4294967296)}", "too large"},
      {"{'descr': '<f4', " + order + "'shape': (0, 4294967296, 4294967296)}", "too large"},
      {"{'descr': '<f4', " + order + "'shape': (2,)} x", "nothing after the dict"},
      {"{'descr': '<f4', " + order + "'shape': (2,)", "found its end"},
      {"{'descr': '<f4", "a closing quote"},
      {"{'de\\x73cr': '<f4'}", "without escapes"},
  };
  for (const BadDict& bad : cases) {
    const auto path = Put("bad.npy", FileOf(bad.dict, std::string(8, '\0')));
    ExpectMessage(ErrorOf([&] { ReadNpy(path); }), {path.string(), bad.message});
  }
}

TEST_F(NpyTest, OtherElementTypesAreErrorsThatNameThem) {
  for (const char* const descr : {"|O",
                                  "<i3",
                                  "<f16",
                                  "|b1",
                                  "<V4",
                                  "|V3",
                                  "V2",
                                  "|i2",
                                  "<c8",
                                  "<U3",
                                  "",
                                  "f",
                                  "f4",
                                  "|f4",
                                  "<<f4",
                                  "!f4",
                                  "<f"}) {
    const auto path = Put("bad.npy", FileOf(Dict(descr, "(2,)"), std::string(8, '\0')));
    ExpectMessage(ErrorOf([&] { ReadNpy(path); }), {path.string(), fmt::format("'{}'", descr)});
  }
}

TEST_F(NpyTest, DataOfAnotherLengthIsAnError) {
  const std::string good = FileOf(Dict("<f4", "(2,)"), std::string(8, '\0'));
  const auto error_of = [&](std::string_view bytes) {
    return ErrorOf([&] { ReadNpy(Put("bad.npy", bytes)); });
  };
  EXPECT_EQ(error_of(good), "no error");
  ExpectMessage(error_of(good + "x"), {"9 bytes of data, expected 8 for float32 (2,)"});
  ExpectMessage(error_of(good.substr(0, good.size() - 1)), {"7 bytes of data, expected 8"});
  // Says 512 PiB, has 8 bytes: must be refused before memory is asked for.
  ExpectMessage(error_of(FileOf(Dict("|u1", "(576460752303423488,)"), std::string(8, '\0'))),
                {"expected 576460752303423488"});
}

TEST_F(NpyTest, PreamblesThatAreNotRightAreErrors) {
  const auto error_of = [&](std::string_view bytes) {
    return ErrorOf([&] { ReadNpy(Put("bad.npy", bytes)); });
  };
  ExpectMessage(error_of(""), {"not a .npy file"});
  ExpectMessage(error_of("PK\3\4 a zip file"), {"not a .npy file"});
  ExpectMessage(error_of({"\x93NUMPY\4\0\1\0\0\0\0", 13}), {"version 4.0"});
  ExpectMessage(error_of({"\x93NUMPY\1\1\1\0\0\0\0", 13}), {"version 1.1"});
  ExpectMessage(error_of({"\x93NUMPY\1\0\1", 9}), {"ends within the npy header"});
  ExpectMessage(error_of({"\x93NUMPY\1\0\xff\xff{", 11}), {"beyond the file's end"});
  ExpectMessage(error_of({"\x93NUMPY\2\0\xff\xff\xff\xff{", 13}), {"4294967295 bytes, expected"});
}

TEST_F(NpyTest, DirectoriesAndMissingFilesAreErrors) {
  ExpectMessage(ErrorOf([&] { ReadNpy(Directory()); }), {Directory().string(), "directory"});
  ExpectMessage(ErrorOf([&] { ReadNpy(Path("no.npy")); }), {"no.npy", "No such file"});
  ExpectMessage(ErrorOf([&] { ReadNpy("/dev/null"); }), {"not a regular file"});
}

TEST_F(NpyTest, TypesThatNpyCannotNameAreNotWritten) {
  for (const ElementType type : {ElementType::kBf16, ElementType::kF8E4M3, ElementType::kF8E5M2}) {
    ExpectMessage(ErrorOf([&] { WriteNpy(Path("a.npy"), Counting(type, {2})); }),
                  {"a.npy", std::string(ToString(type))});
  }
  EXPECT_TRUE(Names().empty());
}

// Any file must be read or refused with an Error; a crash is what the test is about.
TEST_F(NpyTest, NoTruncationIsRead) {
  const std::string good = FileOf(Dict("<f4", "(2, 2)", true), std::string(16, 'x'));
  for (size_t size = 0; size < good.size(); ++size) {
    const auto path = Put("bad.npy", good.substr(0, size));
    ExpectMessage(ErrorOf([&] { ReadNpy(path); }), {path.string()});
  }
}

TEST_F(NpyTest, NoChangedHeaderByteCrashes) {
  for (const char version : {1, 2}) {
    const std::string good = FileOf(Dict("<f4", "(2, 2)", true), std::string(16, 'x'), version);
    for (size_t i = 0; i < good.size() - 16; ++i) {
      for (const int value : {0, 1, 2, 9, 10, 39, 40, 41, 44, 45, 48, 57, 123, 125, 128, 255}) {
        std::string bad = good;
        bad[i] = static_cast<char>(value);
        const std::string message = ErrorOf([&] { ReadNpy(Put("bad.npy", bad)); });
        EXPECT_THAT(message, Not(HasSubstr("\n")));
      }
    }
  }
}

TEST_F(NpyTest, BytesThatDoNotMakeTheShapeThrow) {
  const Array array{
      .type = ElementType::kF32, .shape = {2, 3}, .bytes = std::vector<std::byte>(20)};
  EXPECT_EQ(ErrorOf([&] { WriteNpy(Path("x.npy"), array); }),
            "WriteNpy: 20 bytes do not make an array of float32 (2, 3)");
  EXPECT_FALSE(std::filesystem::exists(Path("x.npy")));
}

}  // namespace
}  // namespace numsim
