// Pages of docs/, for tests that compare them with the code.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace numsim {

inline std::filesystem::path SourceRoot() {
  const char* const root = std::getenv("NUMSIM_SOURCE_DIR");
  return root == nullptr ? "NUMSIM_SOURCE_DIR is not set" : root;
}

// The text of a file of the repository; empty where there is none.
inline std::string SourceText(const std::filesystem::path& path) {
  std::ifstream file(SourceRoot() / path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns the text between the lines "<!-- table: NAME -->" and "<!-- end -->".
inline std::string TableOf(const std::string& page, const std::string& name) {
  const std::string begin = "<!-- table: " + name + " -->\n";
  const size_t mark = page.find(begin);
  if (mark == std::string::npos) return "no table " + name;
  const size_t first = mark + begin.size();
  return page.substr(first, page.find("<!-- end -->", first) - first);
}

}  // namespace numsim
