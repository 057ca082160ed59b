#include "experiments/linear_speed/operands_device.h"

#include <algorithm>

namespace numsim::experiments::linear_speed {
namespace {

FloatBuffer NewMatrix(MatrixShape shape) {
  FloatBuffer matrix(ThreadPlace(), Element::kBfloat16);
  matrix.Renew(shape.rows, shape.cols);
  return matrix;
}

FloatBuffer CopyOf(const TiledNormals& tensor) {
  const Buffer<uint16_t> tile = CopyAt(tensor.tile(), ThreadPlace());
  FloatBuffer matrix = NewMatrix(tensor.shape());
  const MatrixSpan<uint16_t> codes = matrix.View().Bf16();
  tensor.ForEachPiece([&](size_t from, size_t to, size_t count) {
    CopyMatrix<uint16_t>(tile.View().Columns(from, count),
                         {codes.data + to, MatrixShape{1, count}, codes.place});
  });
  return matrix;
}

}  // namespace

DeviceOperands::DeviceOperands(const LayerTensors& tensors)
    : x_(CopyOf(tensors.x)),
      w_(CopyOf(tensors.w)),
      g_(CopyOf(tensors.g)),
      y_(NewMatrix(tensors.g.shape())),
      dx_(NewMatrix(tensors.x.shape())),
      dw_(NewMatrix(tensors.w.shape())) {}

FloatSpan DeviceOperands::Result(LinearGemm product) {
  switch (product) {
    case LinearGemm::kForward:
      return Y();
    case LinearGemm::kInputGradient:
      return Dx();
    case LinearGemm::kWeightGradient:
      break;
  }
  return Dw();
}

void DeviceOperands::SpoilResults() {
  for (const LinearGemm product : kProducts) {
    const FloatSpan result = Result(product);
    device_memory::FillBytes(result.data, 0xFF, result.Bytes(), ThreadStream());
  }
}

void DeviceOperands::Run(Linear& layer,
                         LinearSaved& saved,
                         RandomStream random,
                         LinearObserver* observer) {
  layer.Forward(X(), W(), Y(), saved, random, observer, true);
  layer.Backward(G(), W(), saved, Dx(), Dw(), random, observer);
}

std::vector<DeviceOperands> MakeDeviceSets(const LayerTensors& tensors, size_t bytes) {
  std::vector<DeviceOperands> sets;
  sets.emplace_back(tensors);
  const size_t count = std::min<size_t>((bytes - 1) / sets[0].Bytes() + 1, 256);
  sets.reserve(count);
  while (sets.size() < count) sets.push_back(sets.front());
  return sets;
}

}  // namespace numsim::experiments::linear_speed
