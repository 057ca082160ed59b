#include "numsim/backend/backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "numsim/backend/backend_call.h"
#include "numsim/backend/device.h"
#include "numsim/base/error.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

// Puts the active backend and NUMSIM_BACKEND back after each test.
class Backend : public testing::Test {
 protected:
  Backend() : active_(BackendName()) {
    const char* variable = std::getenv("NUMSIM_BACKEND");
    if (variable != nullptr) variable_ = variable;
    was_set_ = variable != nullptr;
  }
  ~Backend() override {
    ForceBackend(active_);
    was_set_ ? setenv("NUMSIM_BACKEND", variable_.c_str(), 1) : unsetenv("NUMSIM_BACKEND");
  }

 private:
  std::string active_, variable_;
  bool was_set_ = false;
};

TEST_F(Backend, ScalarIsAlwaysAvailableAndTheLastOfTheProcessor) {
  std::vector<std::string> names = AvailableBackends();
  ASSERT_FALSE(names.empty());
  if (DeviceAvailable()) {
    EXPECT_EQ(names.back(), "cuda");
    names.pop_back();
  }
  EXPECT_EQ(names.back(), "scalar");
  EXPECT_EQ(std::count(names.begin(), names.end(), "scalar"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "cuda"), 0);
}

// The switch waits for the call that runs, and a call that comes later waits for the switch.
TEST_F(Backend, ACallKeepsItsBackendFromBeginToEnd) {
  const std::string best = AvailableBackends().front();
  ForceBackend(best);
  std::atomic<bool> switched = false, began = false;
  std::thread switching, later;
  {
    const BackendCall call;
    switching = std::thread([&] {
      ForceBackend("scalar");
      switched = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    later = std::thread([&] {
      const BackendCall next;
      began = true;
      EXPECT_EQ(BackendName(), "scalar");
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(switched);
    EXPECT_FALSE(began);
    EXPECT_EQ(BackendName(), best);
  }
  switching.join();
  later.join();
  EXPECT_TRUE(switched && began);
}

// Also where calls of several threads overlap without a pause, and where switches do.
TEST_F(Backend, CallsAndSwitchesComeThroughAndNoCallSeesTwoBackends) {
  const std::string best = AvailableBackends().front();
  std::atomic<bool> stop = false;
  std::atomic<int> torn = 0, calls = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      while (!stop) {
        const BackendCall call;
        const bool scalar = UsesScalarReference();
        for (int look = 0; look < 100; ++look) torn += UsesScalarReference() != scalar;
        ++calls;
      }
    });
  }
  for (int i = 0; i < 200 || calls < 200; ++i) ForceBackend(i % 2 == 0 ? "scalar" : best);
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(torn, 0);
}

TEST_F(Backend, CudaWithoutADeviceIsRefusedWithTheReasonAndChangesNothing) {
  if (DeviceAvailable()) GTEST_SKIP() << "there is a device";
  for (const std::string& name : AvailableBackends()) {
    ForceBackend(name);
    EXPECT_EQ(ErrorOf([] { ForceBackend("cuda"); }),
              "backend 'cuda' is not available here: " + DeviceUnavailable());
    EXPECT_EQ(BackendName(), name);
    EXPECT_FALSE(UsesDevice());
  }
}

// In a process of its own, in which nothing has been chosen: a target of the processor is active.
TEST_F(Backend, CudaIsNeverActiveWithoutAChoice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  unsetenv("NUMSIM_BACKEND");
  EXPECT_EXIT(
      std::exit(UsesDevice() || BackendName() == "cuda" ? 1 : 0), testing::ExitedWithCode(0), "");
}

TEST_F(Backend, ForcingEachAvailableOneMakesItActive) {
  for (const std::string& name : AvailableBackends()) {
    ForceBackend(name);
    EXPECT_EQ(BackendName(), name);
    EXPECT_EQ(UsesScalarReference(), name == "scalar");
    EXPECT_EQ(UsesDevice(), name == "cuda");
  }
}

TEST_F(Backend, AskingWhatIsAvailableChangesNothing) {
  const std::vector<std::string> names = AvailableBackends();
  for (const std::string& name : names) {
    ForceBackend(name);
    EXPECT_EQ(AvailableBackends(), names);
    EXPECT_EQ(BackendName(), name);
  }
}

TEST_F(Backend, AnUnknownOneIsRefusedWithTheListOfValidOnes) {
  const std::string message = ErrorOf([] { ForceBackend("abacus"); });
  EXPECT_THAT(message, HasSubstr("'abacus'"));
  for (const std::string& name : AvailableBackends()) {
    EXPECT_THAT(message, HasSubstr(name));
  }
}

TEST_F(Backend, ARefusedOneLeavesTheActiveOneActive) {
  for (const std::string& name : AvailableBackends()) {
    ForceBackend(name);
    EXPECT_THROW(ForceBackend("AVX2"), Error);  // names are lower case
    EXPECT_THROW(ForceBackend(""), Error);
    EXPECT_EQ(BackendName(), name);
  }
}

TEST_F(Backend, TheEnvironmentVariableIsHonoured) {
  for (const std::string& name : AvailableBackends()) {
    setenv("NUMSIM_BACKEND", name.c_str(), 1);
    EXPECT_TRUE(ForceBackendFromEnvironment());
    EXPECT_EQ(BackendName(), name);
  }
}

TEST_F(Backend, AnUnsetOrEmptyEnvironmentVariableChangesNothing) {
  ForceBackend("scalar");
  unsetenv("NUMSIM_BACKEND");
  EXPECT_FALSE(ForceBackendFromEnvironment());
  setenv("NUMSIM_BACKEND", "", 1);
  EXPECT_FALSE(ForceBackendFromEnvironment());
  EXPECT_EQ(BackendName(), "scalar");
}

TEST_F(Backend, AnUnknownOneInTheEnvironmentIsRefused) {
  setenv("NUMSIM_BACKEND", "abacus", 1);
  EXPECT_THAT(ErrorOf([] { ForceBackendFromEnvironment(); }), HasSubstr("'abacus'"));
}

// Elements that a backend converts at a time, 0 when this test does not know.
size_t Lanes(const std::string& backend) {
  if (backend == "scalar" || backend == "none") return 1;
  if (backend.starts_with("avx3")) return 16;
  if (backend == "avx2") return 8;
  if (backend.starts_with("sse") || backend.starts_with("ssse")) return 4;
  return 0;
}

// All backends give the same bits, so the kernel that ran shows in its accesses alone: the input
// ends at a page that must not be read. The process dies there, and the codes stored by then, in
// memory shared with it, are the whole vectors before the end.
TEST_F(Backend, TheKernelThatRunsIsTheForcedOne) {
  constexpr size_t kPage = size_t{1} << 16;  // at least
  constexpr size_t kReadable = 31;           // elements: no multiple of any vector
  constexpr size_t kElements = 64;
  const auto map = [](int protection) {
    void* pages = mmap(nullptr, 2 * kPage, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return static_cast<char*>(pages);
  };
  char* in_pages = map(PROT_READ | PROT_WRITE);
  char* out_pages = map(PROT_READ | PROT_WRITE);
  ASSERT_NE(in_pages, MAP_FAILED);
  ASSERT_NE(out_pages, MAP_FAILED);
  ASSERT_EQ(mprotect(in_pages + kPage, kPage, PROT_NONE), 0);
  const float* in = reinterpret_cast<const float*>(in_pages + kPage) - kReadable;
  const std::span<uint16_t> codes(reinterpret_cast<uint16_t*>(out_pages), kElements);
  const EncodePlan plan = MakeEncodePlan(ParseFormat("bf16").spec);
  for (const std::string& backend : AvailableBackends()) {
    const size_t lanes = Lanes(backend);
    if (lanes == 0) continue;
    ForceBackend(backend);
    std::fill(codes.begin(), codes.end(), uint16_t{0xFFFF});
    EXPECT_DEATH(Encode(plan, std::span(in, kElements), codes), "");
    const auto stored = std::count(codes.begin(), codes.end(), uint16_t{0});  // of the input's +0
    EXPECT_EQ(static_cast<size_t>(stored), kReadable / lanes * lanes) << backend;
  }
  munmap(in_pages, 2 * kPage);
  munmap(out_pages, 2 * kPage);
}

}  // namespace
}  // namespace numsim
