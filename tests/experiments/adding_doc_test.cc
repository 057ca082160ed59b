// The code on the page about adding an experiment is that of the folder that it says to copy.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

namespace numsim::experiments {
namespace {

namespace fs = std::filesystem;

fs::path Root() { return std::getenv("NUMSIM_SOURCE_DIR"); }

std::string TextOf(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string WithoutBlanks(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ') result += c;
  }
  return result;
}

TEST(AddingAnExperiment, EveryLineOfCodeIsInTheExample) {
  std::string code;
  for (const auto& entry : fs::recursive_directory_iterator(Root() / "docs/examples/experiment")) {
    if (entry.is_regular_file()) code += TextOf(entry.path());
  }
  code = WithoutBlanks(code);
  std::istringstream page(TextOf(Root() / "docs/adding-an-experiment.md"));
  bool inside = false;
  size_t lines = 0;
  for (std::string line; std::getline(page, line);) {
    if (std::string_view(line).starts_with("```")) {
      inside = line == "```cpp";
    } else if (inside && !line.empty()) {
      EXPECT_NE(code.find(WithoutBlanks(line) + "\n"), std::string::npos) << line;
      ++lines;
    }
  }
  EXPECT_GT(lines, 30u);
}

}  // namespace
}  // namespace numsim::experiments
