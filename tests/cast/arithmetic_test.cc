// Arithmetic on arrays against the scalar functions, codes and flags bit for bit, on every backend.
#include "numsim/cast/arithmetic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <utility>

#include "tests/cast/arithmetic_problem.h"
#include "tests/support/every_backend.h"
#include "tests/support/sampling.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace numsim {
namespace {

TEST(Arithmetic, ArityIsTheNumberOfOperands) {
  EXPECT_EQ(Arity(ArithmeticOp::kSquareRoot), 1);
  EXPECT_EQ(Arity(ArithmeticOp::kDivide), 2);
  EXPECT_EQ(Arity(ArithmeticOp::kFma), 3);
}

TEST(Arithmetic, EqualsTheScalarFunctionsInEveryFormatModeAndPolicy) {
  for (const Mixture& mixture : kMixtures) {
    for (ArithmeticOp op : kOps) {
      Problem p = MakeProblem(op, mixture, Nearest(mixture.to), 331);
      const std::vector<EncodePlan> plans = Plans(p.to.format);
      for (size_t i = 0; i < plans.size(); i += SampleEvery(5)) {
        p.to = plans[i];
        const Results want = ScalarResults(p);
        WithEachBackend([&] {
          const Results got = ArrayResults(p, Want::kFlagsOfElements);
          EXPECT_TRUE(Same(p, got, want));
          EXPECT_EQ(got.all, want.all) << Describe(p);
        });
        if (HasFailure()) return;
      }
    }
  }
}

// Any format that the library takes: limits of range and precision lie elsewhere in each.
TEST(Arithmetic, EqualsTheScalarFunctionsInMixturesOfRandomFormats) {
  oracle::TestRandom random(61);
  for (unsigned i = 0; i < 300; i += SampleEvery(5)) {
    Problem p;
    for (FormatSpec& format : p.format) format = RandomFormat(random);
    const FormatSpec target = RandomFormat(random);
    const std::vector<EncodePlan> plans = Plans(random.Below(2) == 0 ? target : p.format[0]);
    for (ArithmeticOp op : kOps) {
      p.op = op;
      p.to = plans[random.Below(plans.size())];
      FillWithRandomCodes(p, 331);
      const Results want = ScalarResults(p);
      WithEachBackend([&] {
        const Results got = ArrayResults(p, Want::kFlagsOfElements);
        EXPECT_TRUE(Same(p, got, want));
        EXPECT_EQ(got.all, want.all) << Describe(p);
        EXPECT_TRUE(Same(p, ArrayResults(p, Want::kNothing), want));
      });
      if (HasFailure()) return;
    }
  }
}

TEST(Arithmetic, EqualsTheScalarFunctionsOnAllPairsOf8BitCodes) {
  size_t first = 0;
  for (const Mixture& mixture : {Of("e4m3fn"),
                                 Of("e5m2"),
                                 Of("e4m3fnuz"),
                                 Of("binary8p3se"),
                                 Of("int8"),
                                 Of("e8m0fnu"),
                                 Mixture{"e4m3fn", "e5m2", "e4m3fn", "fp16"}}) {
    // A sample has every operation with some of the mixtures.
    first = (first + 1) % SampleEvery(3);
    for (size_t i = first; i < std::size(kOps); i += SampleEvery(3)) {
      const ArithmeticOp op = kOps[i];
      Problem p = MakeProblem(op, mixture, Nearest(mixture.to), 0x10000);
      for (uint32_t pair = 0; pair < 0x10000; ++pair) {
        p.codes[0][pair] = pair >> 8;
        if (p.Uses(1)) p.codes[1][pair] = pair & 0xFF;
      }
      const Results want = ScalarResults(p);
      WithEachBackend([&] {
        const Results got = ArrayResults(p, Want::kFlagsOfElements);
        EXPECT_TRUE(Same(p, got, want));
        EXPECT_EQ(got.all, want.all) << Describe(p);
      });
    }
  }
}

TEST(Arithmetic, FlagsAreGivenOnlyWhenAskedForAndChangeNoCode) {
  for (const Problem& p : ProblemsOfEveryPath(997)) {
    const Results want = ScalarResults(p);
    WithEachBackend([&] {
      const Results all = ArrayResults(p, Want::kFlagsOfAll);
      const Results none = ArrayResults(p, Want::kNothing);
      EXPECT_TRUE(Same(p, all, want));
      EXPECT_TRUE(Same(p, none, want));
      EXPECT_EQ(all.all, want.all) << Describe(p);
      EXPECT_EQ(none.all, 0) << Describe(p);
    });
  }
}

// One element alone raises each flag, wherever it stands, and no other element's flag is lost.
TEST(Arithmetic, FlagOfASingleElementReachesTheResult) {
  const EncodePlan to = Nearest("fp16");
  Problem p = MakeProblem(ArithmeticOp::kDivide, Of("fp16"), to, 100);
  const std::pair<uint32_t, uint32_t> awkward[] = {
      {0x3C00, 0x4200}, {0x0401, 0x4200}, {0x7BFF, 0x0001}, {0x3C00, 0x0000}, {0x7D00, 0x3C00}};
  for (const auto& [a, b] : awkward) {
    for (size_t at : {0, 1, 31, 63, 64, 98, 99}) {
      p.codes[0].assign(100, 0x3C00);
      p.codes[1].assign(100, 0x3C00);
      p.codes[0][at] = a;
      p.codes[1][at] = b;
      const Results want = ScalarResults(p);
      ASSERT_NE(want.all, 0);
      WithEachBackend([&] {
        EXPECT_EQ(ArrayResults(p, Want::kFlagsOfAll).all, want.all) << Describe(p) << at;
        EXPECT_TRUE(Same(p, ArrayResults(p, Want::kFlagsOfElements), want));
      });
    }
  }
}

TEST(Arithmetic, SignallingNansAreInvalidWhereverTheyStand) {
  for (const char* name : {"fp16", "bf16", "fp32", "e5m2", "e4m3"}) {
    const FormatSpec format = Spec(name);
    for (ArithmeticOp op : kOps) {
      Problem p = MakeProblem(op, Of(name), Nearest(name), 90);
      for (int k = 0; k < Arity(op); ++k) {
        for (size_t i = static_cast<size_t>(k); i < 90; i += 7) {
          p.codes[k][i] = format.InfinityCode() + 1 + (i % 2 == 0 ? 0 : format.SignBit());
        }
      }
      const Results want = ScalarResults(p);
      for (size_t i = 0; i < 90; i += 7) ASSERT_EQ(want.flags[i], kInvalid);
      WithEachBackend([&] { EXPECT_TRUE(Same(p, ArrayResults(p, Want::kFlagsOfElements), want)); });
    }
  }
}

TEST(Arithmetic, EveryLengthAndAlignmentIsComputedToItsLastElement) {
  for (const Problem& p : ProblemsOfEveryPath(70)) {
    const Results want = ScalarResults(p);
    WithEachBackend([&] {
      for (size_t n = 0; n <= 70; ++n) {
        const Want flags = n % 2 == 0 ? Want::kFlagsOfElements : Want::kNothing;
        EXPECT_TRUE(Same(p, ArrayResults(p, flags, kApart, n % 5, n), want, n));
      }
    });
    if (HasFailure()) return;
  }
}

TEST(Arithmetic, OutputMayBeTheMemoryOfAnOperandOfItsWidth) {
  for (const Problem& p : ProblemsOfEveryPath(1031)) {
    const Results want = ScalarResults(p);
    for (int k = 0; k < Arity(p.op); ++k) {
      if (p.bytes[k] != p.to.format.StorageBytes()) continue;
      WithEachBackend([&] {
        EXPECT_TRUE(Same(p, ArrayResults(p, Want::kFlagsOfElements, k), want)) << "operand " << k;
        EXPECT_TRUE(Same(p, ArrayResults(p, Want::kNothing, k, 3), want)) << "operand " << k;
      });
    }
  }
}

TEST(Arithmetic, OperandsMayBeStoredInMoreBytesThanTheyNeed) {
  for (const Mixture& mixture :
       {Of("e4m3fn"), Of("fp16"), Mixture{"e2m1fn", "bf16", "int8", "fp32"}}) {
    for (ArithmeticOp op : kOps) {
      Problem p = MakeProblem(op, mixture, Nearest(mixture.to), 301);
      const Results want = ScalarResults(p);
      for (int wide : {2, 4}) {
        for (int& bytes : p.bytes) bytes = std::max(bytes, wide);
        WithEachBackend([&] {
          EXPECT_TRUE(Same(p, ArrayResults(p, Want::kFlagsOfElements), want)) << wide << " bytes";
        });
      }
    }
  }
}

TEST(Arithmetic, ThreadsDoNotChangeABit) {
  const std::vector<Problem> problems = ProblemsOfEveryPath(kLarge);
  // Each operation with every other mixture.
  for (size_t i = 0; i < problems.size(); i += 2 * SampleEvery(7)) {
    const Problem& p = problems[i];
    WithEachBackend([&] {
      SetThreadCount(1);
      const Results want = ArrayResults(p, Want::kFlagsOfElements);
      for (size_t element = 0; element < p.Size(); element += 101) {
        const Rounded scalar = Scalar(p, element);
        ASSERT_EQ(want.codes[element], scalar.code) << Describe(p) << ", element " << element;
        ASSERT_EQ(want.flags[element], scalar.flags) << Describe(p) << ", element " << element;
      }
      for (int threads : {2, 3}) {
        SetThreadCount(threads);
        const Results got =
            ArrayResults(p, threads == 3 ? Want::kFlagsOfAll : Want::kFlagsOfElements);
        EXPECT_TRUE(Same(p, got, want)) << threads << " threads";
        EXPECT_EQ(got.all, want.all) << Describe(p) << ", " << threads << " threads";
      }
    });
    if (HasFailure()) return;
  }
}

TEST(Arithmetic, DrawsAreThoseOfTheElementsIndexWhereverTheArrayStarts) {
  for (const Mixture& mixture : {Of("e4m3fn"), Of("bf16"), Of("fp16"), Of("fp32")}) {
    for (int bits : {4, 8, 13, 16, 32}) {
      const Rounding rounding = {RoundingMode::kStochastic, StochasticVariant::kB, bits};
      const EncodePlan to = MakeEncodePlan(Spec(mixture.to), rounding);
      for (ArithmeticOp op : {ArithmeticOp::kAdd, ArithmeticOp::kDivide, ArithmeticOp::kFma}) {
        Problem p = MakeProblem(op, mixture, to, 1100);
        for (uint64_t first : {uint64_t{0},
                               uint64_t{1},
                               uint64_t{63},
                               uint64_t{255},
                               (uint64_t{1} << 32) - 70,
                               (uint64_t{1} << 40) + 1000003}) {
          p.random.first_index = first;
          const Results want = ScalarResults(p);
          WithEachBackend([&] {
            EXPECT_TRUE(Same(p, ArrayResults(p, Want::kNothing), want)) << "from " << first;
          });
        }
      }
    }
  }
}

TEST(Arithmetic, RoundingModeOfTheProcessorChangesNothingAndIsKept) {
  for (const Problem& p : ProblemsOfEveryPath(kLarge / 8)) {
    const Results want = ScalarResults(p);
    WithEachBackend([&] {
      for (int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        const int before = std::fegetround();
        ASSERT_EQ(std::fesetround(mode), 0);
        const Results got = ArrayResults(p, Want::kFlagsOfElements);
        const int after = std::fegetround();
        std::fesetround(before);
        EXPECT_TRUE(Same(p, got, want)) << "rounding mode " << mode;
        EXPECT_EQ(after, mode);
      }
    });
  }
}

TEST(Arithmetic, FlushToZeroChangesNothingAndTheControlWordIsKept) {
#if defined(__SSE2__)
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040, kRoundUp = 0x4000;
  constexpr unsigned kSet = kFlushToZero | kDenormalsAreZero | kRoundUp;
  for (const Problem& p : ProblemsOfEveryPath(kLarge / 8)) {
    const Results want = ScalarResults(p);
    WithEachBackend([&] {
      for (int threads : {1, 2}) {
        SetThreadCount(threads);
        const unsigned before = _mm_getcsr();
        _mm_setcsr((before & ~0x3Fu) | kSet);
        const Results got = ArrayResults(p, Want::kFlagsOfElements);
        const unsigned after = _mm_getcsr();
        _mm_setcsr(before);
        EXPECT_TRUE(Same(p, got, want));
        EXPECT_EQ(after & ~0x3Fu, (before & ~0x3Fu) | kSet) << Describe(p);
        EXPECT_EQ(after & 0x3Fu, 0u) << "a floating-point exception was raised: " << Describe(p);
      }
    });
  }
#else
  GTEST_SKIP() << "flush-to-zero is set through MXCSR, which only x86 has";
#endif
}

}  // namespace
}  // namespace numsim
