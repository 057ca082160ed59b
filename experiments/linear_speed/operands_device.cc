#include "experiments/linear_speed/operands_device.h"

#include <algorithm>

namespace numsim::experiments::linear_speed {
namespace {

void Fill(const TiledNormals& tensor, DeviceSpan<uint16_t> out, DeviceStream& stream) {
  const DeviceArray<uint16_t> tile = OnDevice(std::span<const uint16_t>(tensor.tile()), stream);
  tensor.ForEachPiece([&](size_t from, size_t to, size_t count) {
    device_memory::CopyWithin(
        tile.data() + from, out.data() + to, count * sizeof(uint16_t), stream);
  });
  stream.Wait();  // before the tile is freed
}

void Copy(const DeviceArray<uint16_t>& from, DeviceArray<uint16_t>& to, DeviceStream& stream) {
  device_memory::CopyWithin(from.data(), to.data(), from.size() * sizeof(uint16_t), stream);
}

}  // namespace

DeviceOperands::DeviceOperands(const LayerTensors& tensors, DeviceStream& stream)
    : x_shape_(tensors.x.shape()),
      w_shape_(tensors.w.shape()),
      g_shape_(tensors.g.shape()),
      x_(x_shape_.Elements()),
      w_(w_shape_.Elements()),
      g_(g_shape_.Elements()),
      y_(g_.size()),
      dx_(x_.size()),
      dw_(w_.size()) {
  Fill(tensors.x, x_.span(), stream);
  Fill(tensors.w, w_.span(), stream);
  Fill(tensors.g, g_.span(), stream);
}

DeviceOperands::DeviceOperands(const DeviceOperands& other, DeviceStream& stream)
    : x_shape_(other.x_shape_),
      w_shape_(other.w_shape_),
      g_shape_(other.g_shape_),
      x_(other.x_.size()),
      w_(other.w_.size()),
      g_(other.g_.size()),
      y_(g_.size()),
      dx_(x_.size()),
      dw_(w_.size()) {
  Copy(other.x_, x_, stream);
  Copy(other.w_, w_, stream);
  Copy(other.g_, g_, stream);
}

MatrixSpan<float> DeviceOperands::Result(LinearGemm product) {
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

void DeviceOperands::SpoilResults(DeviceStream& stream) {
  for (const LinearGemm product : kProducts) {
    const MatrixSpan<float> result = Result(product);
    device_memory::FillBytes(result.data, 0xFF, result.Bytes(), stream);
  }
}

void DeviceOperands::Run(Linear& layer,
                         LinearSaved& saved,
                         RandomStream random,
                         LinearObserver* observer) {
  layer.Forward(X(), W(), Y(), saved, random, observer, true);
  layer.Backward(G(), W(), saved, Dx(), Dw(), random, observer);
}

std::vector<DeviceOperands> MakeDeviceSets(const LayerTensors& tensors,
                                           size_t bytes,
                                           DeviceStream& stream) {
  std::vector<DeviceOperands> sets;
  sets.emplace_back(tensors, stream);
  const size_t count = (bytes - 1) / sets[0].Bytes() + 1;
  sets.reserve(std::min<size_t>(count, 256));
  while (sets.size() < std::min<size_t>(count, 256)) sets.emplace_back(sets.front(), stream);
  stream.Wait();
  return sets;
}

}  // namespace numsim::experiments::linear_speed
