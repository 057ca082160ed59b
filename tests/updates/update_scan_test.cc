// The scan of weights and update that comes before a step or goes with it.
#include "numsim/updates/internal/update_scan.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "numsim/random/distributions.h"
#include "numsim/updates/step_sums.h"
#include "numsim/updates/update_rule.h"
#include "tests/support/every_backend.h"
#include "tests/support/special_values.h"
#include "tests/updates/update_cases.h"

namespace numsim {
namespace {

using update_cases::Apply;
using update_cases::ApplyInPlace;
using update_cases::Case;
using update_cases::DrawNormal;
using update_cases::ExpectIdenticalOutcome;
using update_cases::ExpectSameBits;
using update_cases::MakeCase;
using update_reference::Result;

std::vector<float> Normal(size_t n, uint64_t stream) {
  std::vector<float> x(n);
  FillNormal({9, stream}, 0, x);
  return x;
}

uint32_t Magnitude(float x) { return std::bit_cast<uint32_t>(std::abs(x)); }

TEST(ScanBlock, FindsTheLargestMagnitudeAtEveryPlaceOfEveryLength) {
  for (const float special : {-7.0f, kInfinity, -kInfinity, kNaN}) {
    for (size_t n = 1; n <= 40; ++n) {
      for (size_t at = 0; at < n; ++at) {
        std::vector<float> small(n, 0.5f), large = small;
        large[at] = special;
        WithEachBackend([&] {
          const Scan weights = ScanBlock(large.data(), small.data(), n);
          EXPECT_EQ(weights.weights, Magnitude(special)) << n << " " << at;
          EXPECT_EQ(weights.update, Magnitude(0.5f));
          EXPECT_EQ(weights.Finite(), special == -7.0f);
          const Scan update = ScanBlock(small.data(), large.data(), n);
          EXPECT_EQ(update.update, Magnitude(special)) << n << " " << at;
          EXPECT_EQ(update.weights, Magnitude(0.5f));
          EXPECT_EQ(update.Finite(), special == -7.0f);
        });
      }
    }
  }
}

TEST(ScanBlock, AddsTheSquaresOfTheUpdateAsSquaredSumDoes) {
  for (const size_t n : {0u, 1u, 7u, 8u, 9u, 100u, 4096u}) {
    const std::vector<float> weights = Normal(n, 1), update = Normal(n, 2);
    WithEachBackend([&] {
      const Scan scan = ScanBlock(weights.data(), update.data(), n);
      EXPECT_EQ(scan.update_square, SquaredSumOfBlock(update.data(), n)) << n;
    });
  }
}

constexpr size_t kLong = 3 * kSumBlock + 5;

const char* const kSomeRules[] = {
    "naive", "stochastic", "stochastic:8", "kahan", "projection-matched"};

// Blocks before and after the one with the number are finite.
TEST(ApplyUpdate, ANumberThatIsNotFiniteStopsAllBlocks) {
  UpdateOutcome refused;
  refused.status = UpdateStatus::kNonfinite;
  for (const std::string rule : kSomeRules) {
    for (const size_t at : {size_t{3}, kSumBlock + 9, kLong - 1}) {
      for (const bool weight : {false, true}) {
        Case c = MakeCase("bf16", rule, DrawNormal("bf16", kLong, 81), 0.3f);
        (weight ? c.arrays.weights : c.arrays.update)[at] = weight ? -kInfinity : kNaN;
        WithEachBackend([&] {
          for (const Result& result : {Apply(c), ApplyInPlace(c)}) {
            ExpectSameBits(result.weights, c.arrays.weights);
            ExpectIdenticalOutcome(result.outcome, refused);
          }
        });
      }
    }
  }
}

// Nothing is said about weights that are not values of the format, or negative zeros.
TEST(ApplyUpdate, AnUpdateOfZerosKeepsTheBitsOfAllBlocks) {
  for (const std::string rule : kSomeRules) {
    Case c = MakeCase("e4m3fnuz", rule, {Normal(kLong, 3), std::vector<float>(kLong)}, 0.3f);
    c.arrays.weights[kLong - 1] = -0.0f;
    WithEachBackend([&] {
      for (const Result& result : {Apply(c), ApplyInPlace(c)}) {
        EXPECT_EQ(result.outcome.status, UpdateStatus::kZeroUpdate) << rule;
        ExpectSameBits(result.weights, c.arrays.weights);
      }
    });
  }
}

// The largest weight and the largest update need not be in the same block.
TEST(ApplyUpdate, SaturatedWeightsOfEveryBlockAreCounted) {
  for (const std::string rule : {"naive", "stochastic", "kahan"}) {
    Case c = MakeCase(
        "e4m3fn", rule, {std::vector<float>(kLong, 1), std::vector<float>(kLong, 0x1p-7f)}, 1);
    c.arrays.weights[5] = 448;                // 448 + 2^-7: yes
    c.arrays.update[kSumBlock + 2] = 447.5f;  // 448.5: yes
    c.arrays.update[kSumBlock + 3] = -449;    // -448: no
    c.arrays.weights[kLong - 1] = -448;       // -448.25: yes
    c.arrays.update[kLong - 1] = -0.25f;
    WithEachBackend([&] {
      const Result apart = Apply(c), in_place = ApplyInPlace(c);
      EXPECT_EQ(apart.outcome.saturated, 3u) << rule;
      ExpectIdenticalOutcome(apart.outcome, in_place.outcome);
      ExpectSameBits(apart.weights, in_place.weights);
    });
  }
}

}  // namespace
}  // namespace numsim
