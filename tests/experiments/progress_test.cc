// The progress line of a run.
#include "experiments/runner/progress.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace numsim::experiments {
namespace {

using ::testing::StartsWith;

constexpr const char* kErase = "\x1b[K";

std::string Printed(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

TEST(Progress, WithAHeadRewritesOneLineAndErasesItAtTheEnd) {
  const std::string text = Printed([] {
    Progress progress(true, 2, 10);
    progress.BeginWith([](double left) { return fmt::format("<{}> ", left); }, 0.75);
    progress.Started("abc");
    progress.Finished("abc", 0.25);
    progress.Finished(std::string(70, 'x'), 1);
  });
  EXPECT_EQ(text,
            fmt::format("\r<0.75> [ 2/10] abc{0}\r<0.5> [ 3/10] abc{0}\r<0> [ 4/10] {1}{0}\r{0}",
                        kErase,
                        std::string(56, 'x')));
}

TEST(Progress, WithoutAHeadShowsTheTimeLeft) {
  const std::string text = Printed([] {
    Progress progress(true, 0, 3);
    progress.Started("abc");
  });
  EXPECT_EQ(text, fmt::format("\r[0/3] ? left  abc{}\n", kErase));
  EXPECT_THAT(Printed([] {
                Progress progress(true, 0, 3);
                progress.Finished("abc", 1);
              }),
              StartsWith("\r[1/3] 0:00 left  abc"));
}

TEST(Progress, IsSilentUnlessVisible) {
  EXPECT_EQ(Printed([] {
              Progress progress(false, 0, 3);
              progress.Started("abc");
              progress.Finished("abc", 1);
            }),
            "");
}

}  // namespace
}  // namespace numsim::experiments
