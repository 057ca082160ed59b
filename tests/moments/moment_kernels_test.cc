// The kernels that a device runs, run on the host: codes, scales, values and losses are those of
// MomentStore, bit for bit.
#include "numsim/moments/shared/moment_kernels.h"

#include <gtest/gtest.h>

#include <cstring>

#include "numsim/backend/shared/kernel_threads.h"
#include "numsim/moments/shared/moment_at_place.h"
#include "tests/moments/moment_cases.h"
#include "tests/support/moment_loss.h"

namespace numsim::moment_test {
namespace {

// A moment that kernels store. Threads run in ascending order, or in another one.
class KernelStore {
 public:
  KernelStore(const MomentFormat& format, size_t n, bool is_signed, bool ascending)
      : store_(format, n, is_signed),
        tables_(MomentTablesAt(format, is_signed, {})),
        ranges_(EmptyRanges(format, n, {})),
        codec_(format, is_signed, reinterpret_cast<const MomentTables*>(tables_.View().data)),
        ascending_(ascending) {}

  void Store(std::vector<float> values, RandomStream random) {
    const auto run = [this](const auto& kernel, size_t threads) { Run(kernel, threads); };
    StoreMoment(run, At(values, random), ranges_.View().Elements() / 2);
  }
  std::vector<float> Load() {
    std::vector<float> values(store_.size());
    Run(LoadMomentKernel{At(values, {})}, (values.size() + kMomentRun - 1) / kMomentRun);
    return values;
  }
  MomentLoss Loss(std::vector<float> values) {
    std::vector<MomentLoss> parts((values.size() + kMomentLossPart - 1) / kMomentLossPart);
    Run(MomentLossKernel{At(values, {}), parts.data()}, parts.size());
    MomentLoss loss;
    for (const MomentLoss& part : parts) loss += part;
    return loss;
  }
  std::vector<std::byte> Save() const { return store_.Save(); }

 private:
  template <class Kernel>
  void Run(const Kernel& kernel, size_t threads) {
    if (ascending_) return RunThreads(kernel, threads);
    RunThreads(kernel, threads, threads / 2, threads - 1);
  }
  MomentArguments At(std::vector<float>& values, RandomStream random) {
    const StoredMoment stored{
        store_.Codes(), store_.Scales(), reinterpret_cast<MomentRange*>(ranges_.View().data)};
    return {codec_, stored, values.data(), values.size(), random};
  }

  MomentStore store_;
  Buffer<uint8_t> tables_;
  Buffer<uint32_t> ranges_;
  MomentCodec codec_;
  bool ascending_;
};

// Stores the data twice, so that old codes are replaced.
void Compare(const std::string& text, std::string_view kind, size_t n) {
  SCOPED_TRACE(text + " " + std::string(kind) + " n " + std::to_string(n));
  const MomentFormat format = ParseMomentFormat(text);
  if (format.format.spec.subnormal_shift != 0) return;  // refused by CheckMomentOnDevice
  const bool is_signed = n % 2 == 0 || kind == "normal";
  MomentStore host(format, n, is_signed);
  KernelStore kernels(format, n, is_signed, n % 3 != 0);
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    const std::vector<float> values = MakeData(kind, n, seed);
    const MomentLoss loss = host.Store(values, {seed, 7}, true);
    kernels.Store(values, {seed, 7});
    ASSERT_EQ(kernels.Save(), host.Save());
    ExpectSameLoss(kernels.Loss(values), loss);
    const std::vector<float> expected = LoadAll(host), loaded = kernels.Load();
    for (size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(SameBits(loaded[i], expected[i])) << i;
    }
  }
}

TEST(MomentKernels, EveryFormatGivesTheBitsOfTheHost) {
  for (const std::string& text : FormatTexts()) {
    for (const char* const kind : {"normal", "wide", "specials", "zero"}) Compare(text, kind, 300);
  }
}

TEST(MomentKernels, EveryKindOfDataAndSizeGivesTheBitsOfTheHost) {
  for (const char* const text : {"fp32",
                                 "bf16+sr",
                                 "fp16@tensor",
                                 "e4m3fn",
                                 "e5m2+sr:8",
                                 "e4m3fn@block:100+sr",
                                 "e2m1fn@block+sr",
                                 "int8@none",
                                 "e4m3fn@coat:64+sr",
                                 "int8@coat",
                                 "dynamic+sr",
                                 "dynamic:128"}) {
    for (const std::string& kind : DataKinds()) {
      for (const size_t n : {1, 2, 255}) Compare(text, kind, n);
    }
    for (const size_t n : {0, 4095, 4096, 4097, 40000}) Compare(text, "heavy-tailed", n);
  }
}

}  // namespace
}  // namespace numsim::moment_test
