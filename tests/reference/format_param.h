// For tests that run once per format: readable parameter names.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <string>

#include "tests/reference/formats.h"

namespace oracle {

inline void PrintTo(const Format& format, std::ostream* os) { *os << format.name; }

// A name that GoogleTest accepts: e4m3_bias_147 for e4m3:bias=147.
inline std::string ParamName(const testing::TestParamInfo<Format>& info) {
  std::string name = info.param.name;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '-' && i > 0 && name[i - 1] == '=') {
      name[i] = 'm';  // bias=-90 and bias=90 keep different names
    } else if (!std::isalnum(static_cast<unsigned char>(name[i]))) {
      name[i] = '_';
    }
  }
  return name;
}

}  // namespace oracle
