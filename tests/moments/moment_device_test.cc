// Moments on a device have the bytes, values and losses of those on the host.
#include <gtest/gtest.h>

#include "tests/moments/moment_cases.h"
#include "tests/support/device_test.h"

namespace numsim::moment_test {
namespace {

class MomentOnDevice : public DeviceTest {
 protected:
  void Compare(const std::string& text, std::string_view kind, size_t n) {
    SCOPED_TRACE(text + " " + std::string(kind) + " n " + std::to_string(n));
    const MomentFormat format = ParseMomentFormat(text);
    if (format.format.spec.subnormal_shift != 0) return;
    const bool is_signed = n % 2 == 0;
    MomentStore host(format, n, is_signed), there(format, n, is_signed, place());
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const std::vector<float> values = MakeData(kind, n, seed);
      const Buffer<float> values_there = CopyAt(values, place());
      const MomentLoss loss = host.Store(values, {seed, 7}, true);
      const MomentLoss loss_there = there.Store(values_there.View(), {seed, 7}, true);
      ASSERT_EQ(there.Save(), host.Save());
      EXPECT_EQ(loss_there.nonzero, loss.nonzero);
      EXPECT_EQ(loss_there.flushed, loss.flushed);
      EXPECT_EQ(loss_there.saturated, loss.saturated);
      EXPECT_EQ(loss_there.signal_square, loss.signal_square);
      EXPECT_EQ(loss_there.error_square, loss.error_square);
      Buffer<float> loaded(place(), n);
      there.Load(loaded.View());
      const std::vector<float> values_loaded = ToVector(loaded.View()), expected = LoadAll(host);
      for (size_t i = 0; i < n; ++i) ASSERT_TRUE(SameBits(values_loaded[i], expected[i])) << i;
    }
    // The state moves between places.
    MomentStore again(format, n, is_signed);
    again.Restore(there.Save());
    EXPECT_EQ(again.Save(), host.Save());
    there.Restore(host.Save());
    EXPECT_EQ(there.Save(), host.Save());
  }
};

TEST_F(MomentOnDevice, EveryFormatHasTheBitsOfTheHost) {
  for (const std::string& text : FormatTexts()) {
    for (const char* const kind : {"normal", "wide", "specials"}) Compare(text, kind, 300);
  }
}

TEST_F(MomentOnDevice, EverySizeHasTheBitsOfTheHost) {
  for (const char* const text : {"fp32",
                                 "bf16+sr",
                                 "e4m3fn",
                                 "e5m2+sr:8",
                                 "e4m3fn@block:100+sr",
                                 "e2m1fn@block+sr",
                                 "e4m3fn@coat+sr",
                                 "dynamic+sr"}) {
    for (const size_t n : {1, 2, 255, 4095, 4096, 4097, 100003}) Compare(text, "heavy-tailed", n);
  }
}

TEST_F(MomentOnDevice, AnotherPlaceIsRefused) {
  MomentStore there(ParseMomentFormat("e4m3fn"), 4, true, place());
  std::vector<float> values(4);
  EXPECT_THROW(there.Load(values), Error);
}

}  // namespace
}  // namespace numsim::moment_test
