// Diff and the references against all 2^32 patterns.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>

#include "numsim/base/parallel.h"
#include "tests/profiles/differences.h"
#include "tests/reference/profiles/conversions.h"

namespace numsim {
namespace {

const Pair kPairs[] = {
    {"cuda-13", "hip-host", "e4m3fn"},
    {"cuda-13", "hip-host", "e5m2"},
    {"ml-dtypes", "torch-2.11", "e8m0fnu"},
    {"cuda-13", "qpytorch", "e4m3fn"},
    {"cuda-13", "qpytorch", "e5m2"},
    {"cuda-13", "cuda-13-rz-satfinite", "e8m0fnu"},
    {"cuda-13", "ml-dtypes", "e2m1fn"},
    {"cuda-13-rz", "ml-dtypes", "e2m3fn"},
    {"cuda-13-rz", "ocp-saturate", "e3m2fn"},
    {"hip-host", "onnx-cast-23", "e4m3fnuz"},
    {"hip-host-satfinite", "onnx-cast-24", "e5m2fnuz"},
    {"cpfloat", "qpytorch", "e4m3fn"},
    {"bitsandbytes", "rule:rne,nonsaturate", "bnb-e4m3"},
    {"ptx-rs", "amd-sr", "e4m3fn", 0x9E37'79B9},
    {"amd-sr-host", "amd-sr", "e5m2", 0x1234'5678},
    {"p3109-v4-satfinite", "p3109-v4-satnone", "binary8p3se"},
};

class BruteForce : public testing::TestWithParam<Pair> {};

TEST_P(BruteForce, AgreesWithDiff) {
  const Pair& pair = GetParam();
  const ProfileConversion a = FromFloat32(pair.a, pair.target);
  const ProfileConversion b = FromFloat32(pair.b, pair.target);
  const Difference quick = Diff(a, b, pair.word);
  const Difference all = DiffByBruteForce(a, b, pair.word);
  EXPECT_EQ(quick, all) << Describe(quick) << "\n" << Describe(all);
}

INSTANTIATE_TEST_SUITE_P(All, BruteForce, testing::ValuesIn(kPairs), ParamName);

// The rules that are no correct rounding, each worked out a second time, on every pattern.
class EveryPattern : public testing::TestWithParam<Pair> {};

TEST_P(EveryPattern, EqualsTheReference) {
  const Pair& pair = GetParam();
  const ProfileConversion actual = FromFloat32(pair.a, pair.target);
  const reference::Conversion& expected = reference::FindConversion(pair.a, pair.target);
  std::atomic<uint64_t> mismatches{0}, example{0};
  ParallelFor(size_t{1} << 32, size_t{1} << 20, [&](size_t begin, size_t end) {
    for (uint64_t pattern = begin; pattern < end; ++pattern) {
      if (actual.Encode(pattern) == expected.encode(pattern, 0).code) continue;
      ++mismatches;
      example = pattern;
    }
  });
  EXPECT_EQ(mismatches, 0u) << fmt::format("such as 0x{:08X}", example.load());
}

const Pair kRules[] = {{"hip-host", "", "e4m3fn"},
                       {"hip-host-satfinite", "", "e5m2"},
                       {"hip-host", "", "e4m3fnuz"},
                       {"hip-host", "", "e5m2fnuz"},
                       {"qpytorch", "", "e4m3fn"},
                       {"qpytorch", "", "e5m2"},
                       {"torch-2.11", "", "e8m0fnu"},
                       {"cuda-13", "", "e8m0fnu"},
                       {"cuda-13-rz-satfinite", "", "e8m0fnu"},
                       {"cpfloat", "", "e4m3fn"}};

INSTANTIATE_TEST_SUITE_P(All, EveryPattern, testing::ValuesIn(kRules), ParamName);

}  // namespace
}  // namespace numsim
