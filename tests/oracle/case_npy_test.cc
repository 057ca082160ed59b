#include "numsim/oracle/case_npy.h"

#include <gtest/gtest.h>

#include "numsim/io/npy.h"
#include "tests/oracle/made_up_operation.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

using Case = RememberingTally::Case;

class CaseNpyTest : public IoTest {
 protected:
  // Writes an array of that type and shape and reads its cases.
  template <typename T>
  std::vector<Case> Read(ElementType type,
                         const std::vector<size_t>& shape,
                         const std::vector<T>& elements,
                         bool require_flags = false) const {
    Array array;
    array.type = type;
    array.shape = shape;
    const auto bytes = std::as_bytes(std::span(elements));
    array.bytes.assign(bytes.begin(), bytes.end());
    WriteNpy(Path("cases.npy"), array);
    RememberingTally total;
    TallyNpy(Path("cases.npy"), columns_, require_flags, total);
    return total.cases;
  }

  const MadeUpOperation operation_;
  const CaseColumns columns_ = ColumnsOf(operation_);
};

TEST_F(CaseNpyTest, ArrayHoldsTheRowsOfALevel) {
  const CaseRows rows(operation_, {CaseLevel::Kind::kFull, 0, 0}, true);
  const Array array = CaseArray(rows, "out.npy");
  EXPECT_EQ(array.type, ElementType::kU8);
  ASSERT_EQ(array.shape, (std::vector<size_t>{65536, 5}));
  std::vector<uint64_t> row(5);
  for (size_t i = 0; i < 65536; ++i) {
    rows.Row(i, row);
    const uint8_t* const elements = array.Data<uint8_t>() + 5 * i;
    ASSERT_EQ(std::vector<uint64_t>(elements, elements + 5), row) << i;
    ASSERT_EQ(row[2], (row[0] + row[1]) % 256) << i;
    ASSERT_EQ(row[4], row[0] % 32) << i;
  }
  const CaseRows inputs(operation_, {CaseLevel::Kind::kFull, 0, 0}, false);
  EXPECT_EQ(CaseArray(inputs, "out.npy").shape, (std::vector<size_t>{65536, 2}));
}

TEST_F(CaseNpyTest, WrittenArraysAreReadBackInOrder) {
  const CaseRows rows(operation_, {CaseLevel::Kind::kFull, 0, 0}, true);
  WriteNpy(Path("cases.npy"), CaseArray(rows, "cases.npy"));
  RememberingTally total;
  TallyNpy(Path("cases.npy"), columns_, true, total);
  ASSERT_EQ(total.cases.size(), 65536u);
  std::vector<uint64_t> row(5);
  for (size_t i = 0; i < 65536; ++i) {
    rows.Row(i, row);
    ASSERT_EQ(total.cases[i], (Case{i, row}));
  }
}

TEST_F(CaseNpyTest, ReadsEveryUnsignedType) {
  const std::vector<Case> expected = {{0, {1, 2, 3, 1}}, {1, {255, 0, 255, 1}}};
  EXPECT_EQ(Read<uint8_t>(ElementType::kU8, {2, 4}, {1, 2, 3, 1, 255, 0, 255, 1}), expected);
  EXPECT_EQ(Read<uint16_t>(ElementType::kU16, {2, 4}, {1, 2, 3, 1, 255, 0, 255, 1}), expected);
  EXPECT_EQ(Read<uint32_t>(ElementType::kU32, {2, 4}, {1, 2, 3, 1, 255, 0, 255, 1}), expected);
}

TEST_F(CaseNpyTest, NamesWhatIsWrong) {
  using Bytes = std::vector<uint8_t>;
  const auto u8 = ElementType::kU8;
  ExpectMessage(ErrorOf([&] { Read(u8, {4}, Bytes(4)); }), {"cases.npy", "(4,)", "(cases, 4)"});
  ExpectMessage(ErrorOf([&] { Read(u8, {2, 3}, Bytes(6)); }), {"(2, 3)", "a b sum bit"});
  ExpectMessage(ErrorOf([&] { Read(u8, {1, 6}, Bytes(6)); }), {"(1, 6)", "or one more column"});
  ExpectMessage(ErrorOf([&] { Read(u8, {1, 4}, Bytes(4), true); }), {"(cases, 5)", "flags"});
  ExpectMessage(ErrorOf([&] { Read(u8, {0, 4}, Bytes()); }), {"cases.npy: no cases"});
  ExpectMessage(ErrorOf([&] {
                  Read(u8, {2, 4}, Bytes{0, 0, 0, 0, 0, 0, 0, 2});
                }),
                {"cases.npy: row 1, column 4 (bit): 2 does not fit into 1 bits"});
  ExpectMessage(ErrorOf([&] {
                  Read<uint32_t>(ElementType::kU32, {1, 4}, {0, 0x1FF, 0, 0});
                }),
                {"row 0, column 2 (b): 1FF does not fit into 8 bits"});
  ExpectMessage(ErrorOf([&] {
                  Read<float>(ElementType::kF32, {1, 4}, {0, 0, 0, 0});
                }),
                {"float32", "unsigned integers"});
}

// An answer of 32 bits in an array of 8 or 16 bits was cut when the array was made.
TEST_F(CaseNpyTest, TooNarrowElementsAreRefused) {
  const auto dot = MakeOperation({.op = "dot", .format = "e4m3fn", .to = "fp32", .length = 2});
  const CaseColumns columns = ColumnsOf(*dot);
  RememberingTally total;
  for (const ElementType type : {ElementType::kU8, ElementType::kU16, ElementType::kU32}) {
    Array array;
    array.type = type;
    array.shape = {3, 5};
    array.bytes.resize(15 * ElementBytes(type));
    WriteNpy(Path("answers.npy"), array);
    const std::string error =
        ErrorOf([&] { TallyNpy(Path("answers.npy"), columns, false, total); });
    if (type == ElementType::kU32) {
      EXPECT_EQ(error, kNoError);
    } else {
      ExpectMessage(error,
                    {"answers.npy",
                     std::string(ToString(type)),
                     "column result of 32 bits",
                     "expected uint32"});
    }
  }
  EXPECT_EQ(total.cases.size(), 3u);
}

TEST_F(CaseNpyTest, AnswersCompleteTheRowsOfAnArray) {
  Array cases;
  cases.type = ElementType::kU16;
  cases.shape = {3, 2};
  const uint16_t inputs[] = {3, 4, 0xFF, 2, 0, 0};
  const auto bytes = std::as_bytes(std::span(inputs));
  cases.bytes.assign(bytes.begin(), bytes.end());
  WriteNpy(Path("cases.npy"), cases);
  const Array answers = AnswerArray(Path("cases.npy"), operation_);
  EXPECT_EQ(answers.type, ElementType::kU8);
  ASSERT_EQ(answers.shape, (std::vector<size_t>{3, 5}));
  const uint8_t* const elements = answers.Data<uint8_t>();
  EXPECT_EQ(std::vector<uint8_t>(elements, elements + 15),
            (std::vector<uint8_t>{3, 4, 7, 1, 3, 0xFF, 2, 1, 1, 0x1F, 0, 0, 0, 0, 0}));
  const uint16_t large[] = {3, 4, 0x100, 2, 0, 0};
  const auto large_bytes = std::as_bytes(std::span(large));
  cases.bytes.assign(large_bytes.begin(), large_bytes.end());
  WriteNpy(Path("cases.npy"), cases);
  ExpectMessage(ErrorOf([&] { AnswerArray(Path("cases.npy"), operation_); }),
                {"cases.npy: row 1, column 1 (a): 100 does not fit into 8 bits"});
  cases.shape = {2, 3};
  WriteNpy(Path("cases.npy"), cases);
  ExpectMessage(ErrorOf([&] { AnswerArray(Path("cases.npy"), operation_); }),
                {"shape (2, 3), expected (cases, 2) for a b"});
}

TEST_F(CaseNpyTest, FirstFaultOfManyRowsIsNamed) {
  std::vector<uint8_t> elements(4 * 100000, 0);
  for (const size_t row : {70001, 30000, 99999}) elements[4 * row + 3] = 7;
  ExpectMessage(ErrorOf([&] {
                  Read(ElementType::kU8, {100000, 4}, elements);
                }),
                {"row 30000, column 4"});
}

}  // namespace
}  // namespace numsim
