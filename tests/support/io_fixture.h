// For the tests of io: files in a directory of the test's own, and what an Error says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/base/error.h"
#include "tests/support/error_of.h"

namespace numsim {

using ::testing::HasSubstr;
using ::testing::Not;

class IoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 fmt::format("numsim-io-{}-{}-{}", test->test_suite_name(), test->name(), getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  const std::filesystem::path& Directory() const { return directory_; }
  std::filesystem::path Path(std::string_view name) const { return directory_ / name; }

  std::filesystem::path Put(std::string_view name, std::string_view bytes) const {
    std::ofstream(Path(name), std::ios::binary).write(bytes.data(), bytes.size());
    return Path(name);
  }

  static std::string Bytes(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  // Names in the test's directory, hidden ones too, sorted.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path directory_;
};

// The message is one line that contains each of the texts.
inline void ExpectMessage(const std::string& message, const std::vector<std::string>& texts) {
  EXPECT_THAT(message, Not(HasSubstr("\n")));
  for (const std::string& text : texts) {
    EXPECT_THAT(message, HasSubstr(text));
  }
}

}  // namespace numsim
