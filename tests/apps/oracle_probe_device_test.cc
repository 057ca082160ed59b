// numsim oracle probe-device, on simulated units and without a device.
#include <nlohmann/json.hpp>

#include "numsim/backend/device.h"
#include "tests/apps/bad_input.h"

namespace numsim::apps {
namespace {

using ::testing::HasSubstr;

class ProbeDevice : public BadInputTest {
 protected:
  static void ExpectContains(const std::string& text, const std::string& part) {
    EXPECT_THAT(text, HasSubstr(part));
  }
};

TEST_F(ProbeDevice, FindsTheRuleOfASimulatedUnit) {
  const std::string out =
      Output("oracle probe-device --simulate hopper-fp8 --operands e4m3fn,e5m2 --products 2000");
  ExpectContains(out, "simulated hopper-fp8");
  ExpectContains(out, "e4m3fn x e5m2");
  ExpectContains(out, "trunc:13,32,128 (hopper-fp8)");
  ExpectContains(out, "bits kept below the largest product: 13, the rest truncated");
}

TEST_F(ProbeDevice, JsonHasRuleAndAgreement) {
  const nlohmann::json json = nlohmann::json::parse(
      Output("oracle probe-device --simulate trunc:9,8 --operands fp16 --products 2000 --json"));
  ASSERT_EQ(json["units"].size(), 1u);
  const nlohmann::json& unit = json["units"][0];
  EXPECT_EQ(unit["rules"], nlohmann::json::array({"trunc:9,8"}));
  EXPECT_EQ(unit["operands"], "fp16 x fp16");
  EXPECT_EQ(unit["same"], unit["compared"]);
  EXPECT_GE(unit["compared"], 2000);
  EXPECT_EQ(unit["seen"]["kept_bits"], 9);
  EXPECT_EQ(unit["seen"]["chunk"], 8);
  EXPECT_TRUE(unit["seen"]["promotion"].is_null());
}

TEST_F(ProbeDevice, WithoutADeviceSaysWhy) {
  if (DeviceAvailable()) GTEST_SKIP() << "there is a device";
  Expect(BadCase{{"oracle", "probe-device"}, {DeviceUnavailable(), "--simulate"}});
}

TEST_F(ProbeDevice, BadOptions) {
  const auto simulate = [](const std::string& words) {
    return Words("oracle probe-device --simulate " + words);
  };
  Expect(std::vector<BadCase>{
      {simulate("hopper-fp8"), {"--operands"}},
      {Words("oracle probe-device --operands bf16"), {"--simulate"}},
      {simulate("nope --operands bf16"), {"'nope'"}},
      {simulate("library --operands bf16"), {"--simulate", "library"}},
      {simulate("fp32 --operands nope"), {"'nope'"}},
      {simulate("fp32 --operands bf16,fp16,e5m2"), {"--operands", "bf16,fp16,e5m2"}},
      {simulate("fp32 --operands e8m0fnu"), {"--operands", "e8m0fnu"}},
      {simulate("fp32 --operands bf16 --unit nope"), {"--unit", "'nope'", "simulated fp32"}},
      {simulate("fp32 --operands bf16 --products x"), {"--products", "x"}},
  });
}

}  // namespace
}  // namespace numsim::apps
