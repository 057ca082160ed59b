#include "numsim/oracle/answers.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "numsim/base/parallel.h"
#include "tests/oracle/made_up_operation.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

class AnswerTextTest : public IoTest {
 protected:
  std::string Answers(const std::string& text) const {
    const std::filesystem::path path = Put("cases.txt", text);
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::string answers;
    AnswerText total(operation_, [&](std::string_view part) { answers += part; });
    TallyText(descriptor, "cases", InputColumnsOf(operation_), false, total);
    ::close(descriptor);
    return answers;
  }

  const MadeUpOperation operation_;
};

TEST_F(AnswerTextTest, CompletesLines) {
  EXPECT_EQ(Answers("3 4\n\n 0xff\t02\r\n"), "03 04 07 1 03\nFF 02 01 1 1F\n");
}

TEST_F(AnswerTextTest, KeepsTheOrderOnAnyNumberOfThreads) {
  std::string text, expected;
  for (uint64_t i = 0; text.size() < (size_t{5} << 20); ++i) {
    const uint64_t a = i % 251, b = i % 256;
    text += fmt::format("{:02X} {:02X}\n", a, b);
    expected += fmt::format("{:02X} {:02X} {:02X} {} {:02X}\n", a, b, (a + b) % 256, a % 2, a % 32);
  }
  const int threads = ThreadCount();
  for (const int count : {1, 3}) {
    SetThreadCount(count);
    EXPECT_TRUE(Answers(text) == expected) << count << " threads";
  }
  SetThreadCount(threads);
}

TEST_F(AnswerTextTest, TakesInputsAlone) {
  ExpectMessage(ErrorOf([&] { Answers("03 04 07\n"); }),
                {"cases: line 1, column 3 is unexpected after a b"});
  ExpectMessage(ErrorOf([&] { Answers("03\n"); }), {"line 1, column 2 (b) is missing"});
  ExpectMessage(ErrorOf([&] { Answers("\n"); }), {"cases: no cases, expected lines of a b"});
}

}  // namespace
}  // namespace numsim
