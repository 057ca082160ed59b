#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

std::string Text(const std::vector<std::string>& arguments) {
  std::string text = "numsim";
  for (const std::string& argument : arguments) text += " '" + argument + "'";
  return text;
}

}  // namespace

std::map<std::string, std::string> BadInputTest::Contents() const {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Directory())) {
    contents[entry.path().string()] = entry.is_regular_file() ? Bytes(entry.path()) : "(dir)";
  }
  return contents;
}

void BadInputTest::Expect(const BadCase& bad) const {
  const std::map<std::string, std::string> before = Contents();
  const Outcome outcome = Numsim(bad.arguments, bad.environment);
  const std::string what = Text(bad.arguments) + "\n" + outcome.err;
  EXPECT_EQ(outcome.exit_code, 2) << what;
  EXPECT_EQ(outcome.out, "") << what;
  EXPECT_TRUE(outcome.err.starts_with("numsim: ")) << what;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << what;
  EXPECT_TRUE(outcome.err.ends_with('\n')) << what;
  for (const std::string& text : bad.named) {
    EXPECT_THAT(outcome.err, HasSubstr(text)) << Text(bad.arguments);
  }
  EXPECT_EQ(Contents(), before) << what;
}

}  // namespace numsim::apps
