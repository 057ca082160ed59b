// The device memory of a training step of 49 equal linear layers with 65,536 tokens of dimension
// 768: forward through all of them, then backward through all, with bf16 tensors. The output of a
// layer is the input of the next one and stays for Backward; gradients of inputs alternate between
// two matrices; each gradient of weights has memory of its own. Columns, in MiB by
// AllocatedDeviceBytes():
//   tensors  of the caller
//   peak     of two steps, read before and after each operation of a layer
//   beside   the peak without those tensors: what layers save, and the working memory of a context
// The time is that of the second step.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/device_clock.h"
#include "numsim/linear/linear.h"

namespace numsim::bench {
namespace {

constexpr size_t kLayers = 49;
constexpr LinearShape kShape{.tokens = 65536, .in = 768, .out = 768};

// Observes the largest value of AllocatedDeviceBytes().
class Peak : public LinearObserver {
 public:
  void Begin(LinearOp) override { Read(); }
  void End(LinearOp) override { Read(); }
  size_t bytes() const { return bytes_; }

 private:
  void Read() { bytes_ = std::max(bytes_, AllocatedDeviceBytes()); }

  size_t bytes_ = 0;
};

class Model {
 public:
  Model(const LinearRecipe& recipe, Place place)
      : place_(place), layers_(kLayers, Linear(recipe, place)), saved_(kLayers) {
    activations_.push_back(NewMatrix(kShape.X()));
    for (size_t i = 0; i < kLayers; ++i) {
      activations_.push_back(NewMatrix(kShape.X()));
      weights_.push_back(NewMatrix(kShape.W()));
      weight_gradients_.push_back(NewMatrix(kShape.W()));
    }
    for (FloatBuffer& gradient : gradients_) gradient = NewMatrix(kShape.X());
  }

  void Step(LinearObserver& observer) {
    for (size_t i = 0; i < kLayers; ++i) {
      layers_[i].Forward(activations_[i].View(),
                         weights_[i].View(),
                         activations_[i + 1].View(),
                         saved_[i],
                         {},
                         &observer,
                         true);
    }
    for (size_t i = kLayers; i-- > 0;) {
      layers_[i].Backward(gradients_[(i + 1) % 2].View(),
                          weights_[i].View(),
                          saved_[i],
                          gradients_[i % 2].View(),
                          weight_gradients_[i].View(),
                          {},
                          &observer);
    }
  }

 private:
  // Returns a matrix of equal small numbers.
  FloatBuffer NewMatrix(MatrixShape shape) const {
    FloatBuffer matrix(place_, Element::kBfloat16);
    const FloatSpan view = matrix.Renew(shape.rows, shape.cols);
    device_memory::FillBytes(view.data, 0x3C, view.Bytes(), place_.Stream());
    return matrix;
  }

  Place place_;
  std::vector<Linear> layers_;
  std::vector<LinearSaved> saved_;
  std::vector<FloatBuffer> activations_, weights_, weight_gradients_;
  FloatBuffer gradients_[2];
};

void Run(benchmark::State& state, const LinearRecipe& recipe) {
  DeviceContext context;  // with working memory of its own
  DeviceStream& stream = context.stream();
  const size_t before = AllocatedDeviceBytes();
  Model model(recipe, Place(context));
  const size_t tensors = AllocatedDeviceBytes() - before;
  Peak peak;
  for (auto _ : state) {
    model.Step(peak);
    DeviceEvent begin, end;
    begin.Record(stream);
    model.Step(peak);
    end.Record(stream);
    state.SetIterationTime(DeviceEvent::Seconds(begin, end));
  }
  const auto count = [&](const char* name, size_t bytes) {
    state.counters[name] = static_cast<double>(bytes) / (1 << 20);
  };
  count("tensors", tensors);
  count("peak", peak.bytes() - before);
  count("beside", peak.bytes() - before - tensors);
}

void Add(const std::string& kind, const std::string& format) {
  LinearOptions options;
  options.kind = kind;
  options.format = format;
  const LinearRecipe recipe = ForDevice(MakeLinearRecipe(options), !Device().IsHopper());
  const std::string name = format.empty() ? kind : kind + "/" + format;
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { Run(state, recipe); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  return numsim::bench::DeviceMain(argc, argv, [] {
    numsim::bench::Add("standard", "");
    numsim::bench::Add("switchback", "e4m3fn");
    numsim::bench::Add("switchback-m", "e4m3fn");
  });
}
