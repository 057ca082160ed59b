// Compares the results of layers on a device with those of the CPU.
#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <set>

#include "experiments/linear_speed/operands_device.h"
#include "experiments/linear_speed/timing.h"
#include "numsim/base/error.h"
#include "numsim/quantize/quantize.h"

namespace numsim::experiments::linear_speed {
namespace {

constexpr LinearShape kSmall{.tokens = 64, .in = 128, .out = 96};

// Returns the recipe with accumulation modes that the CPU emulates in place of `library`. Only
// changes the recipe on a Hopper GPU.
LinearRecipe Stated(LinearRecipe recipe) {
  const LinearRecipe stated = ForDevice(recipe);
  for (const LinearGemm product : kProducts) {
    AccumulationMode& mode = recipe[product].accumulation;
    if (mode.kind == AccumulationKind::kLibrary && Device().IsHopper()) {
      mode = stated[product].accumulation;
    }
  }
  return recipe;
}

struct HostResults {
  std::vector<float> y, dx, dw;

  const std::vector<float>& Of(LinearGemm product) const {
    return product == LinearGemm::kForward ? y : product == LinearGemm::kInputGradient ? dx : dw;
  }
};

HostResults RunOnHost(const LinearRecipe& recipe, const LayerTensors& tensors) {
  const WithoutDevice host;
  const std::vector<float> x = tensors.x.Values(), w = tensors.w.Values(), g = tensors.g.Values();
  HostResults results{
      std::vector<float>(g.size()), std::vector<float>(x.size()), std::vector<float>(w.size())};
  Linear layer(recipe);
  LinearSaved saved;
  layer.Forward(
      HostMatrix(x, kSmall.X()), HostMatrix(w, kSmall.W()), results.y, saved, {0, kLayerStream});
  layer.Backward(g, w, saved, results.dx, results.dw, {0, kLayerStream});
  return results;
}

// Returns all elements of a result, without tolerance.
SampledProduct Everything(MatrixShape shape, std::span<const float> values) {
  SampledProduct sample;
  sample.rows.resize(shape.rows);
  sample.cols.resize(shape.cols);
  std::iota(sample.rows.begin(), sample.rows.end(), size_t{0});
  std::iota(sample.cols.begin(), sample.cols.end(), size_t{0});
  sample.codes = Bf16Codes(values);
  sample.tolerance.assign(values.size(), 0.0f);
  return sample;
}

std::string Where(const std::string& name, LinearGemm product) {
  return fmt::format("{}: {} GEMM", name, ToString(product));
}

// Returns the codes of the device's result at the elements of `sample`.
std::vector<uint16_t> Gather(MatrixSpan<const uint16_t> result, const SampledProduct& sample) {
  DeviceStream& stream = result.place.Stream();
  std::vector<uint16_t> gathered(sample.codes.size());
  for (size_t i = 0; i < gathered.size(); ++i) {
    const size_t row = sample.rows[i / sample.cols.size()];
    const size_t col = sample.cols[i % sample.cols.size()];
    device_memory::CopyOut(result.Row(row) + col, &gathered[i], sizeof(uint16_t), stream);
  }
  stream.Wait();
  return gathered;
}

}  // namespace

void CheckSmallLayer(const LinearRecipe& recipe, const std::string& name) {
  static std::set<std::string> checked;
  if (!checked.insert(name).second) return;
  const LinearRecipe stated = Stated(recipe);
  const LayerTensors tensors(kSmall, 0);
  const HostResults expected = RunOnHost(stated, tensors);
  DeviceOperands on(tensors);
  on.SpoilResults();
  Linear layer(stated, ThreadPlace());
  LinearSaved saved;
  on.Run(layer, saved, {0, kLayerStream});
  for (const LinearGemm product : kProducts) {
    if (stated[product].accumulation.kind == AccumulationKind::kLibrary) continue;
    const MatrixShape shape = ResultShape(kSmall, product);
    CompareSample(Where(name, product),
                  shape,
                  Everything(shape, expected.Of(product)),
                  ToVector(on.Result(product).Bf16()));
  }
}

size_t CheckProduct(const LinearRecipe& recipe,
                    const std::string& name,
                    LinearGemm product,
                    const LayerTensors& tensors,
                    DeviceOperands& on) {
  const ConstFloatSpan result = on.Result(product);
  Buffer<float> absmax(result.place, 1);
  AbsmaxOfAll(result, absmax.View());
  if (std::isnan(ToVector(absmax.View())[0])) {
    throw Error::Format("{}: a NaN or an unwritten element in {} x {}",
                        Where(name, product),
                        result.rows,
                        result.cols);
  }
  const WithoutDevice host;
  const std::optional<SampledProduct> sample = SampleOnCpu(recipe, product, tensors);
  if (!sample.has_value()) return 0;
  CompareSample(Where(name, product), result.Shape(), *sample, Gather(result.Bf16(), *sample));
  return sample->codes.size();
}

}  // namespace numsim::experiments::linear_speed
