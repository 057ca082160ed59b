// How layers run on the device: which operations, in which order, without waiting; what they
// refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/gemm/gemm_device.h"
#include "tests/linear/linear_device_problem.h"
#include "tests/support/device_test.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using List = std::vector<std::string>;

// The steps, with the device's clock read around each.
class Recorder : public LinearObserver {
 public:
  explicit Recorder(DeviceStream& stream) : stream_(stream) {}

  void Begin(LinearOp step) override {
    EXPECT_EQ(events_.size() % 2, 0u) << ToString(step) << " begins within another step";
    steps.emplace_back(ToString(step));
    events_.emplace_back().Record(stream_);
  }
  void End(LinearOp step) override {
    EXPECT_EQ(steps.back(), ToString(step));
    events_.emplace_back().Record(stream_);
  }

  double Seconds(size_t step) const {
    return DeviceEvent::Seconds(events_[2 * step], events_[2 * step + 1]);
  }

  List steps;

 private:
  DeviceStream& stream_;
  std::vector<DeviceEvent> events_;
};

// Products by rule library where they are not exact: any device takes them.
LinearRecipe RecipeOf(const std::string& kind, const char* format = "") {
  LinearOptions options;
  options.kind = kind;
  options.format = format;
  return ForDevice(MakeLinearRecipe(options), true);
}

class DeviceLinearExecution : public DeviceTest {
 protected:
  struct Steps {
    List forward, backward;
  };

  Steps StepsOf(const std::string& kind, Wanted wanted = {}) {
    Linear layer(RecipeOf(kind), place());
    DeviceProblem p(InBf16(UnevenProblem({32, 48, 64})));
    Recorder forward(stream()), backward(stream());
    ForwardOnDevice(layer, p, {}, &forward);
    BackwardOnDevice(layer, p, {}, wanted, &backward);
    stream().Wait();
    for (size_t i = 0; i < forward.steps.size(); ++i) EXPECT_GE(forward.Seconds(i), 0);
    for (size_t i = 0; i < backward.steps.size(); ++i) EXPECT_GE(backward.Seconds(i), 0);
    return {forward.steps, backward.steps};
  }
};

// bf16 tensors are the operands: nothing but products is done.
TEST_F(DeviceLinearExecution, StandardOnlyMultiplies) {
  const Steps steps = StepsOf("standard");
  EXPECT_EQ(steps.forward, List{"forward product"});
  EXPECT_EQ(steps.backward, (List{"input gradient product", "weight gradient product"}));
}

TEST_F(DeviceLinearExecution, SwitchBackQuantisesFourOperands) {
  for (const char* kind : {"switchback", "switchback-q"}) {
    const Steps steps = StepsOf(kind);
    EXPECT_EQ(steps.forward, (List{"quantize X", "quantize W", "forward product"}));
    EXPECT_EQ(
        steps.backward,
        (List{"quantize G", "quantize W^T", "input gradient product", "weight gradient product"}));
  }
}

TEST_F(DeviceLinearExecution, SwitchBackMDequantisesX) {
  const Steps steps = StepsOf("switchback-m");
  EXPECT_EQ(steps.forward, (List{"quantize X", "quantize W", "forward product"}));
  EXPECT_EQ(
      steps.backward,
      (List{"quantize G", "input gradient product", "dequantize X", "weight gradient product"}));
}

TEST_F(DeviceLinearExecution, LlmInt8QuantisesSixOperands) {
  EXPECT_EQ(StepsOf("llm-int8").backward,
            (List{"quantize G",
                  "quantize W^T",
                  "input gradient product",
                  "quantize G^T",
                  "quantize X^T",
                  "weight gradient product"}));
}

// One pass over each tensor makes the codes of both products.
TEST_F(DeviceLinearExecution, TensorWiseQuantisesEachTensorOnce) {
  for (const char* kind : {"tensor-wise", "te-hybrid"}) {
    const Steps steps = StepsOf(kind);
    EXPECT_EQ(steps.forward, (List{"quantize X", "quantize W", "forward product"}));
    EXPECT_EQ(steps.backward,
              (List{"quantize G", "input gradient product", "weight gradient product"}));
    EXPECT_EQ(StepsOf(kind, {.dx = false}).backward,
              (List{"quantize G", "weight gradient product"}));
  }
}

TEST_F(DeviceLinearExecution, NothingIsDoneForAGradientThatIsNotWanted) {
  EXPECT_EQ(StepsOf("llm-int8", {.dw = false}).backward,
            (List{"quantize G", "quantize W^T", "input gradient product"}));
  EXPECT_EQ(StepsOf("llm-int8", {.dx = false}).backward,
            (List{"quantize G^T", "quantize X^T", "weight gradient product"}));
  EXPECT_EQ(StepsOf("switchback", {.dx = false}).backward, List{"weight gradient product"});
  EXPECT_EQ(StepsOf("standard", {.dx = false, .dw = false}).backward, List{});
}

// Behind work of half a second the calls of a second step come back at once. An allocation that is
// freed again, or a scale that the host reads, would wait.
TEST_F(DeviceLinearExecution, TheSecondStepDoesNotWaitForTheDevice) {
  using Clock = std::chrono::steady_clock;
  const size_t bytes = Device().memory_bytes / 8;
  Buffer<uint8_t> busy(place(), bytes);
  for (const char* kind :
       {"standard", "switchback", "switchback-m", "llm-int8", "tensor-wise", "block", "mx"}) {
    SCOPED_TRACE(kind);
    Linear layer(RecipeOf(kind), place());
    // Odd sizes take the padded paths of the products too.
    DeviceProblem p(InBf16(UnevenProblem({67, 41, 35})));
    for (int i = 0; i < 2; ++i) {
      ForwardOnDevice(layer, p);
      BackwardOnDevice(layer, p);
    }
    stream().Wait();

    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < 100; ++i) {
      device_memory::FillBytes(busy.View().data, static_cast<uint8_t>(i), bytes, stream());
    }
    ForwardOnDevice(layer, p);
    BackwardOnDevice(layer, p);
    const Clock::duration called = Clock::now() - begin;
    stream().Wait();
    const Clock::duration done = Clock::now() - begin;
    EXPECT_LT(called, done / 2);
  }
}

TEST_F(DeviceLinearExecution, RecipesThatNoDeviceRunsAreErrors) {
  LinearOptions options;
  options.kind = "tensor-wise";
  options.format = "e3m4";
  options.accumulate = "hopper-bf16";  // without a container
  EXPECT_THROW(Linear(MakeLinearRecipe(options), place()), Error);
}

// Shapes that a mode cannot serve are refused before the first step, not in it.
TEST_F(DeviceLinearExecution, ShapesWithoutAnAlgorithmAreKnownInAdvance) {
  if (!Device().IsHopper()) GTEST_SKIP() << Device().name << " does not follow the hopper rules";
  LinearOptions options;
  options.kind = "tensor-wise";
  options.format = options.gradient_format = "e4m3fn";
  options.accumulate = "hopper-fp8";
  const Linear layer(MakeLinearRecipe(options), place());
  EXPECT_NO_THROW(layer.CheckShape({4096, 1024, 4096}));
  EXPECT_THAT(ErrorOf([&] {
                layer.CheckShape({64, 8192, 256});
              }),
              AllOf(HasSubstr("forward product of 64 x 256 results of 8192 products"),
                    HasSubstr("hopper-fp8")));
  for (const char* kind : {"standard", "switchback", "llm-int8", "tensor-wise", "mx"}) {
    EXPECT_NO_THROW(Linear(RecipeOf(kind), place()).CheckShape({64, 8192, 256})) << kind;
  }
}

TEST_F(DeviceLinearExecution, TensorsOfAnotherPlaceAreErrors) {
  Linear layer(RecipeOf("switchback"), place());
  std::vector<float> x(32 * 48), w(64 * 48), y(32 * 64);
  LinearSaved saved;
  EXPECT_EQ(ErrorOf([&] {
              layer.Forward(HostMatrix(x, {32, 48}), HostMatrix(w, {64, 48}), y, saved);
            }),
            "Linear: 'x' is host, the layer is on the device");
}

// Sums of int8 products that need not fit 32 bits are computed in float64, one after another.
TEST_F(DeviceLinearExecution, LongSumsOfInt8AreExactToo) {
  LinearOptions options;
  options.kind = "tensor-wise";
  const LinearRecipe recipe = ForDevice(MakeLinearRecipe(options), true);
  const LinearShape shape{kMostProductsOfAnyInt8 + 1, 4, 8};
  LinearProblem p = InBf16(UnevenProblem(shape));
  std::ranges::fill(p.x.data, 1.0f);
  std::ranges::fill(p.g.data, 1.0f);
  Linear there(recipe, place()), here(recipe);
  ExpectSameBits(StepOnDevice(there, p), ExpectedOnDevice(here, p));
}

// 49 layers share one workspace of cuBLASLt, where each once had 64 MiB of its own.
TEST_F(DeviceLinearExecution, LayersShareTheMemoryOfTheirContext) {
  const LinearProblem problem = InBf16(UnevenProblem({32, 48, 64}));
  std::vector<Linear> layers;
  for (int i = 0; i < 49; ++i) layers.emplace_back(RecipeOf("switchback"), place());
  StepOnDevice(layers[0], problem);
  const size_t before = AllocatedDeviceBytes();
  for (Linear& layer : layers) StepOnDevice(layer, problem);
  EXPECT_LT(AllocatedDeviceBytes() - before, size_t{256} << 20);
}

}  // namespace
}  // namespace numsim
