// Shared by the tests of the C interface.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "numsim/arith/arith.h"
#include "numsim/capi/numsim.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/rounding_modes.h"

namespace numsim::capi_test {

// A format that must exist.
inline numsim_format_t CFormat(const std::string& name) {
  numsim_format_t format = {};
  char message[200];
  EXPECT_EQ(numsim_format_by_name(name.c_str(), &format, message, sizeof message), NUMSIM_OK)
      << message;
  return format;
}

struct NamedFormat {
  std::string name;
  FormatSpec spec;
  numsim_format_t c;
};

// The whole table, and custom formats of odd widths.
inline std::vector<NamedFormat> Formats() {
  std::vector<NamedFormat> formats;
  for (const FormatEntry& entry : FormatTable()) {
    formats.push_back({std::string(entry.name), entry.spec, CFormat(std::string(entry.name))});
  }
  for (const char* text : {"e5m3:bias=20", "ue4m4", "e2m0:inf=none,nan=none", "e8m22"}) {
    formats.push_back({text, ParseFormat(text).spec, CFormat(text)});
  }
  return formats;
}

// A rounding as both sides have it.
struct BothRoundings {
  numsim_rounding_t c;
  Rounding rounding;
  Overflow overflow;
  Tininess tininess;

  EncodePlan Plan(const FormatSpec& format) const {
    EncodePlan plan = MakeEncodePlan(format, rounding, overflow);
    plan.tininess = tininess;
    return plan;
  }
};

// Every mode and variant, each with one policy and one tininess; every one of these comes up.
inline std::vector<BothRoundings> Roundings() {
  std::vector<BothRoundings> all;
  const auto add = [&all](RoundingMode mode, StochasticVariant variant, int bits) {
    const int i = static_cast<int>(all.size());
    BothRoundings both;
    both.rounding = {mode, variant, bits};
    both.overflow = static_cast<Overflow>(i % 3);
    both.tininess = static_cast<Tininess>(i % 2);
    both.c = numsim_rounding_default();
    both.c.mode = static_cast<int32_t>(mode);
    both.c.variant = static_cast<int32_t>(variant);
    both.c.random_bits = bits;
    both.c.overflow = i % 3;
    both.c.tininess = i % 2;
    all.push_back(both);
  };
  for (const RoundingMode mode : kDeterministicModes) add(mode, StochasticVariant::kA, 32);
  add(RoundingMode::kStochastic, StochasticVariant::kA, 32);
  add(RoundingMode::kStochastic, StochasticVariant::kB, 5);
  add(RoundingMode::kStochastic, StochasticVariant::kC, 16);
  return all;
}

}  // namespace numsim::capi_test
