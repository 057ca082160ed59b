#include "numsim/base/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace numsim {
namespace {

std::string OnOneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return text;
}

}  // namespace

Error::Error(const std::string& message) : std::runtime_error(OnOneLine(message)) {}

void AbortOnBrokenContract(const char* file,
                           int line,
                           const char* condition,
                           const std::string& values) {
  std::fprintf(stderr, "%s:%d: broken contract: %s (%s)\n", file, line, condition, values.c_str());
  std::abort();
}

}  // namespace numsim
