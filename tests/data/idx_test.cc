#include "numsim/data/internal/idx.h"

#include "tests/data/data_fixture.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using IdxTest = IoTest;

// 2 x 3 x 4 elements 0 to 23.
std::string CountingFile() {
  std::string bytes = IdxHeader({2, 3, 4});
  for (char i = 0; i < 24; ++i) bytes += i;
  return bytes;
}

void ExpectCounting(const IdxArray& array) {
  EXPECT_EQ(array.shape, (std::vector<size_t>{2, 3, 4}));
  ASSERT_EQ(array.bytes.size(), 24u);
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(array.bytes[i], i);
}

TEST_F(IdxTest, ReadsPlainFiles) { ExpectCounting(ReadIdx(Put("a", CountingFile()), 3)); }

TEST_F(IdxTest, TellsCompressionByContentAndNotByName) {
  ExpectCounting(ReadIdx(Put("plain.gz", CountingFile()), 3));
  ExpectCounting(ReadIdx(Put("compressed", Gzip(CountingFile())), 3));
}

TEST_F(IdxTest, ReadsCompressedBlocks) {
  // gzip -9 of 40 labels i mod 5, by another program.
  const std::string file(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x63\x60\xe0\x60\x64\x60\x60\xd0\x60\x60\x64\x62"
      "\x66\x21\x82\x00\x00\xca\x0c\x9d\x6f\x30\x00\x00\x00",
      35);
  const IdxArray array = ReadIdx(Put("labels.gz", file), 1);
  ASSERT_EQ(array.shape, std::vector<size_t>{40});
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(array.bytes[i], i % 5);
}

TEST_F(IdxTest, ReadsFilesLongerThanABufferAlike) {
  constexpr uint32_t kRows = 3000, kCols = 1111;
  std::string bytes = IdxHeader({kRows, kCols});
  for (uint32_t i = 0; i < kRows * kCols; ++i) bytes += static_cast<char>(i * 2654435761u >> 24);
  const IdxArray plain = ReadIdx(Put("plain", bytes), 2);
  const IdxArray compressed = ReadIdx(Put("compressed", Gzip(bytes)), 2);
  EXPECT_EQ(std::string(plain.bytes.begin(), plain.bytes.end()), bytes.substr(12));
  EXPECT_EQ(compressed.bytes, plain.bytes);
  EXPECT_EQ(compressed.shape, plain.shape);
}

TEST_F(IdxTest, JoinsMembersThatFollowEachOther) {
  const std::string bytes = CountingFile();
  for (const size_t cut : {size_t{0}, size_t{2}, size_t{16}, size_t{17}, bytes.size()}) {
    ExpectCounting(ReadIdx(Put("a", Gzip(bytes.substr(0, cut)) + Gzip(bytes.substr(cut))), 3));
  }
}

TEST_F(IdxTest, ReadsEmptyExtents) {
  const IdxArray array = ReadIdx(Put("a", IdxHeader({0, 28, 28})), 3);
  EXPECT_EQ(array.shape, (std::vector<size_t>{0, 28, 28}));
  EXPECT_TRUE(array.bytes.empty());
}

TEST_F(IdxTest, RefusesWhatIsNoIdxFile) {
  const auto message = [&](std::string_view bytes) {
    return ErrorOf([&] { ReadIdx(Put("file", bytes), 1); });
  };
  ExpectMessage(message("\x93NUMPY"), {Path("file").string(), "begins with bytes 93 4e", "00 00"});
  ExpectMessage(message(std::string("\0\1\x08\1", 4)), {"begins with bytes 00 01"});
  ExpectMessage(message(""), {Path("file").string(), "ends within the idx header"});
  ExpectMessage(message(std::string("\0\0\x08", 3)), {"ends within the idx header"});
  ExpectMessage(message(IdxHeader({5}).substr(0, 7)), {"ends within the idx header"});
  ExpectMessage(message(Gzip(IdxHeader({5}).substr(0, 7))), {"ends within the idx header"});
  ExpectMessage(ErrorOf([&] { ReadIdx(Path("absent"), 1); }), {Path("absent").string()});
  ExpectMessage(ErrorOf([&] { ReadIdx(Directory(), 1); }), {"directory"});
}

TEST_F(IdxTest, NamesOtherTypesAndDimensions) {
  const auto message = [&](std::string_view bytes) {
    return ErrorOf([&] { ReadIdx(Put("file", bytes), 3); });
  };
  ExpectMessage(message(IdxHeader({1, 1, 1}, 0x0D) + "1234"),
                {Path("file").string(), "0x0d (float32)", "expected 0x08 (uint8)"});
  ExpectMessage(message(IdxHeader({1, 1, 1}, 0x09) + "1"), {"0x09 (int8)"});
  ExpectMessage(message(IdxHeader({1, 1, 1}, 0x07) + "1"), {"0x07 (unknown)"});
  ExpectMessage(message(IdxHeader({1}) + "1"),
                {Path("file").string(), "dimensions 1", "expected 3"});
}

TEST_F(IdxTest, RefusesOtherSizesThanTheHeaderPromises) {
  for (const bool compress : {false, true}) {
    const auto message = [&](const std::string& bytes) {
      return ErrorOf([&] { ReadIdx(Put("file", compress ? Gzip(bytes) : bytes), 3); });
    };
    const std::string good = CountingFile();
    ExpectMessage(message(good.substr(0, good.size() - 1)),
                  {Path("file").string(), "ends after 23 bytes", "expected 24 for (2, 3, 4)"});
    ExpectMessage(message(good.substr(0, 16)), {"ends after 0 bytes", "expected 24"});
    ExpectMessage(message(good + "x"), {Path("file").string(), "more than the 24 bytes"});
    ExpectMessage(message(IdxHeader({0, 3, 4}) + "x"), {"more than the 0 bytes"});
  }
}

TEST_F(IdxTest, RefusesSizesBeyondTheLimitBeforeReadingThem) {
  const auto message = [&](const std::vector<uint32_t>& shape) {
    const size_t dimensions = shape.size();
    return ErrorOf([&] { ReadIdx(Put("file", IdxHeader(shape)), dimensions); });
  };
  const uint32_t most = ~uint32_t{0};
  ExpectMessage(message({most, most}), {Path("file").string(), "too large", "at most 4294967296"});
  // 2^64 elements and 2^64 + 2^32: products that a 64-bit word shows as 0 and as 2^32.
  ExpectMessage(message({1u << 31, 1u << 31, 4}), {"too large"});
  ExpectMessage(message({65537, 1u << 16, most, 1}), {"too large"});
  ExpectMessage(message({65536, 65537}), {"too large"});
  // At the limit, and more than memory would hold were the promise believed.
  ExpectMessage(message({65536, 65536}), {"ends after 0 bytes", "expected 4294967296"});
}

TEST_F(IdxTest, NamesDamagedCompressedData) {
  const std::string good = Gzip(CountingFile());
  const auto message = [&](const std::string& bytes) {
    return ErrorOf([&] { ReadIdx(Put("file", bytes), 3); });
  };
  ASSERT_EQ(message(good), "no error");
  // Header of 10 bytes, block of 5 + 40, CRC, length.
  const auto changed = [&](size_t at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    return bytes;
  };
  ExpectMessage(message(changed(2)), {Path("file").string(), "damaged gzip data"});
  ExpectMessage(message(changed(12)), {"damaged gzip data", "stored block"});
  ExpectMessage(message(changed(40)), {"damaged gzip data", "data check"});
  ExpectMessage(message(changed(56)), {"damaged gzip data", "data check"});
  ExpectMessage(message(changed(60)), {"damaged gzip data", "length check"});
  ExpectMessage(message(good + "rubbish"), {"damaged gzip data", "header"});
  ExpectMessage(message(good + std::string(3, '\0')), {Path("file").string()});
}

TEST_F(IdxTest, NamesEveryTruncationOfCompressedData) {
  const std::string good = Gzip(CountingFile());
  for (size_t size = 0; size < good.size(); ++size) {
    const std::string message = ErrorOf([&] { ReadIdx(Put("file", good.substr(0, size)), 3); });
    ExpectMessage(message, {Path("file").string(), size < 2 ? "idx" : "cut short"});
  }
}

TEST_F(IdxTest, AnyChangedByteOfCompressedDataGivesOneLineOrTheSameBytes) {
  const std::string good = Gzip(CountingFile());
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {0x01, 0x10, 0x80, 0xFF}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      std::vector<uint8_t> bytes;
      const std::string message = ErrorOf([&] { bytes = ReadIdx(Put("file", bad), 3).bytes; });
      if (message == "no error") {
        EXPECT_LE(at, 10u);  // fields that say nothing of the data: time, system, padding bits
        ASSERT_EQ(bytes.size(), 24u) << at;
        for (size_t i = 0; i < 24; ++i) EXPECT_EQ(bytes[i], i);
      }
      EXPECT_THAT(message, Not(HasSubstr("\n")));
    }
  }
}

}  // namespace
}  // namespace numsim
