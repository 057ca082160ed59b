// `numsim gemm` and the limits of an accumulation mode: operands that the device does not take, and
// sums that are longer than those that were compared with it.
#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

class GemmOperands : public BadInputTest {
 protected:
  // Two rows of zeros of e4m3fn.
  void PutCodes(size_t inner) const {
    PutNpy("a.npy", ElementType::kU8, std::vector<uint8_t>(2 * inner), {2, inner});
  }
  static std::string Gemm(const std::string& options) {
    return "gemm a.npy a.npy out.npy --format e4m3fn " + options;
  }
};

TEST_F(GemmOperands, AModeOfADeviceRefusesOtherOperands) {
  PutCodes(4);
  Expect(std::vector<BadCase>{
      {Words(Gemm("--accumulation-mode hopper-bf16")),
       {"hopper-bf16 is for bf16",
        "not for e4m3fn",
        "--any-operands",
        "modes for e4m3fn: hopper-"}},
      {Words(Gemm("--accumulate cdna3-fp8")), {"cdna3-fp8", "e4m3fnuz, e5m2fnuz"}},
      {Words(Gemm("--format-b e5m2 --accumulate hopper-mma-fp8")), {"e4m3fn by e5m2"}},
  });
}

TEST_F(GemmOperands, TheOverrideAndModesWithoutADeviceAreAllowed) {
  PutCodes(4);
  for (const char* const mode : {"hopper-fp8", "exact", "fp16", "trunc:25,16", "library"}) {
    EXPECT_EQ(Numsim(Gemm("--accumulate " + std::string(mode))).exit_code, 0) << mode;
  }
  const Outcome any = Numsim(Gemm("--accumulate hopper-bf16 --any-operands"));
  EXPECT_EQ(any.exit_code, 0);
  EXPECT_EQ(any.err, "");
  EXPECT_THAT(any.out, HasSubstr("accumulation mode hopper-bf16"));
}

// hopper-fp8-fast was compared up to 7168. Segments are summed one by one.
TEST_F(GemmOperands, SumsLongerThanTheMeasuredOnesAreWarnedOf) {
  PutNpy("s.npy", ElementType::kF32, std::vector<float>(4, 1), {2, 2});
  PutCodes(7168);
  EXPECT_EQ(Numsim(Gemm("--accumulate hopper-fp8-fast")).err, "");
  PutCodes(7169);
  const Outcome outcome = Numsim(Gemm("--accumulate hopper-fp8-fast"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  for (const char* const text : {"numsim: warning: hopper-fp8-fast", "7168", "7169", "splits"}) {
    EXPECT_THAT(outcome.err, HasSubstr(text));
  }
  EXPECT_EQ(Numsim(Gemm("--accumulate hopper-fp8-fast --scale-a s.npy --segment 4096")).err, "");
  for (const char* const mode : {"trunc:13,32", "fp32", "ada-fp8"}) {
    EXPECT_EQ(Numsim(Gemm("--accumulate " + std::string(mode))).err, "") << mode;
  }
}

}  // namespace
}  // namespace numsim::apps
