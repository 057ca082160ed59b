// Golden files of lines: what a test found, compared with tests/FOLDER/golden/NAME.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace numsim {

// Expects that the file has these lines and names those that differ. NUMSIM_UPDATE_GOLDEN=1 writes the
// file instead: look at what git then shows.
inline void ExpectGoldenLines(const std::string& file, const std::string& lines) {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "NUMSIM_SOURCE_DIR is not set";
  const std::filesystem::path path = std::filesystem::path(root) / "tests" / file;
  if (std::getenv("NUMSIM_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << lines;
    return;
  }
  const auto split = [](std::istream&& text) {
    std::set<std::string> found;
    for (std::string line; std::getline(text, line);) found.insert(line);
    return found;
  };
  std::ifstream golden(path, std::ios::binary);
  const std::string expected(std::istreambuf_iterator<char>(golden), {});
  if (lines == expected) return;
  const std::set<std::string> is = split(std::istringstream(lines)),
                              was = split(std::istringstream(expected));
  std::string difference;
  for (const std::string& line : was) {
    if (!is.contains(line)) difference += "- " + line + "\n";
  }
  for (const std::string& line : is) {
    if (!was.contains(line)) difference += "+ " + line + "\n";
  }
  ADD_FAILURE() << path.string() << ": NUMSIM_UPDATE_GOLDEN=1 writes it anew\n"
                << (difference.empty() ? "only the order of lines differs\n" : difference);
}

}  // namespace numsim
